// Mathematical functions that round to nearest or not at all.
#include <math.h>
#include <stdint.h>
#include <string.h>

// Prototypes would only repeat the definitions.
#pragma clang diagnostic ignored "-Wmissing-prototypes"

// NAME for double and NAMEf for float, by the C functions of the same names.
#define BOTH1(NAME) BOTH1_AS(NAME, NAME)
#define BOTH1_AS(NAME, C)                                                                                                         \
    double uma___nv_##NAME(double a) { return C(a); }                                                                             \
    float uma___nv_##NAME##f(float a) { return C##f(a); }
#define BOTH2(NAME)                                                                                                               \
    double uma___nv_##NAME(double a, double b) { return NAME(a, b); }                                                             \
    float uma___nv_##NAME##f(float a, float b) { return NAME##f(a, b); }

BOTH1(acos) BOTH1(acosh) BOTH1(asin) BOTH1(asinh) BOTH1(atan) BOTH1(atanh) BOTH1(cbrt) BOTH1(ceil) BOTH1(cos) BOTH1(cosh)
BOTH1(erf) BOTH1(erfc) BOTH1(exp) BOTH1(exp2) BOTH1(expm1) BOTH1(fabs) BOTH1(floor) BOTH1(lgamma) BOTH1(log) BOTH1(log10)
BOTH1(log1p) BOTH1(log2) BOTH1(logb) BOTH1(nearbyint) BOTH1(rint) BOTH1(round) BOTH1(sin) BOTH1(sinh) BOTH1(sqrt) BOTH1(tan)
BOTH1(tanh) BOTH1(tgamma) BOTH1(trunc)
BOTH2(atan2) BOTH2(copysign) BOTH2(fdim) BOTH2(fmax) BOTH2(fmin) BOTH2(fmod) BOTH2(hypot) BOTH2(nextafter) BOTH2(pow) BOTH2(remainder)

// GNU functions, declared here because their headers ask for _GNU_SOURCE.
double exp10(double);
float exp10f(float);
double j0(double), j1(double), jn(int, double), y0(double), y1(double), yn(int, double);
float j0f(float), j1f(float), jnf(int, float), y0f(float), y1f(float), ynf(int, float);
BOTH1(exp10) BOTH1(j0) BOTH1(j1) BOTH1(y0) BOTH1(y1)
double uma___nv_jn(int n, double a) { return jn(n, a); }
float uma___nv_jnf(int n, float a) { return jnf(n, a); }
double uma___nv_yn(int n, double a) { return yn(n, a); }
float uma___nv_ynf(int n, float a) { return ynf(n, a); }

double uma___nv_fma(double a, double b, double c) { return fma(a, b, c); }
float uma___nv_fmaf(float a, float b, float c) { return fmaf(a, b, c); }
double uma___nv_frexp(double a, int *b) { return frexp(a, b); }
float uma___nv_frexpf(float a, int *b) { return frexpf(a, b); }
double uma___nv_modf(double a, double *b) { return modf(a, b); }
float uma___nv_modff(float a, float *b) { return modff(a, b); }
double uma___nv_remquo(double a, double b, int *c) { return remquo(a, b, c); }
float uma___nv_remquof(float a, float b, int *c) { return remquof(a, b, c); }
double uma___nv_ldexp(double a, int b) { return ldexp(a, b); }
float uma___nv_ldexpf(float a, int b) { return ldexpf(a, b); }
double uma___nv_scalbn(double a, int b) { return scalbn(a, b); }
float uma___nv_scalbnf(float a, int b) { return scalbnf(a, b); }
int uma___nv_ilogb(double a) { return ilogb(a); }
int uma___nv_ilogbf(float a) { return ilogbf(a); }
long long uma___nv_llrint(double a) { return llrint(a); }
long long uma___nv_llrintf(float a) { return llrintf(a); }
long long uma___nv_llround(double a) { return llround(a); }
long long uma___nv_llroundf(float a) { return llroundf(a); }
double uma___nv_powi(double a, int b) { return pow(a, b); }
float uma___nv_powif(float a, int b) { return powf(a, (float)b); }
double uma___nv_rsqrt(double a) { return 1 / sqrt(a); }
float uma___nv_rsqrtf(float a) { return 1 / sqrtf(a); }
double uma___nv_rcbrt(double a) { return 1 / cbrt(a); }
float uma___nv_rcbrtf(float a) { return 1 / cbrtf(a); }
double uma___nv_normcdf(double a) { return 0.5 * erfc(-a * 0.70710678118654752440); }
float uma___nv_normcdff(float a) { return (float)uma___nv_normcdf(a); }
void uma___nv_sincos(double a, double *s, double *c) { *s = sin(a), *c = cos(a); }
void uma___nv_sincosf(float a, float *s, float *c) { *s = sinf(a), *c = cosf(a); }

// Norms: hypot keeps the intermediate squares in range.
double uma___nv_norm3d(double a, double b, double c) { return hypot(hypot(a, b), c); }
float uma___nv_norm3df(float a, float b, float c) { return (float)sqrt((double)a * a + (double)b * b + (double)c * c); }
double uma___nv_norm4d(double a, double b, double c, double d) { return hypot(hypot(a, b), hypot(c, d)); }
float uma___nv_norm4df(float a, float b, float c, float d) {
    return (float)sqrt((double)a * a + (double)b * b + (double)c * c + (double)d * d);
}
double uma___nv_rhypot(double a, double b) { return 1 / hypot(a, b); }
float uma___nv_rhypotf(float a, float b) { return (float)(1 / hypot(a, b)); }
double uma___nv_rnorm3d(double a, double b, double c) { return 1 / uma___nv_norm3d(a, b, c); }
float uma___nv_rnorm3df(float a, float b, float c) { return 1 / uma___nv_norm3df(a, b, c); }
double uma___nv_rnorm4d(double a, double b, double c, double d) { return 1 / uma___nv_norm4d(a, b, c, d); }
float uma___nv_rnorm4df(float a, float b, float c, float d) { return 1 / uma___nv_norm4df(a, b, c, d); }
double uma___nv_norm(int n, const double *p) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum = hypot(sum, p[i]);
    return sum;
}
float uma___nv_normf(int n, const float *p) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)p[i] * p[i];
    return (float)sqrt(sum);
}
double uma___nv_rnorm(int n, const double *p) { return 1 / uma___nv_norm(n, p); }
float uma___nv_rnormf(int n, const float *p) { return 1 / uma___nv_normf(n, p); }

// Multiples of pi: the argument is reduced exactly to [-1/4, 1/4] before pi comes in.
static const double PI = 3.14159265358979323846;
static double sin_pi_reduced(double r, int quarter) {
    switch (quarter & 3) {
    case 0: return sin(PI * r);
    case 1: return cos(PI * r);
    case 2: return -sin(PI * r);
    default: return -cos(PI * r);
    }
}
double uma___nv_sinpi(double a) {
    if (!isfinite(a)) return NAN;
    if (a == trunc(a)) return copysign(0.0, a);
    double m = fmod(a, 2), q = rint(2 * m);
    return sin_pi_reduced(m - q / 2, (int)q);
}
double uma___nv_cospi(double a) {
    if (!isfinite(a)) return NAN;
    double m = fmod(fabs(a), 2), q = rint(2 * m);
    return sin_pi_reduced(m - q / 2, (int)q + 1) + 0.0;
}
float uma___nv_sinpif(float a) { return (float)uma___nv_sinpi(a); }
float uma___nv_cospif(float a) { return (float)uma___nv_cospi(a); }
void uma___nv_sincospi(double a, double *s, double *c) { *s = uma___nv_sinpi(a), *c = uma___nv_cospi(a); }
void uma___nv_sincospif(float a, float *s, float *c) { *s = uma___nv_sinpif(a), *c = uma___nv_cospif(a); }

// The fast functions may be less exact than the others; they are not.
float uma___nv_fast_cosf(float a) { return cosf(a); }
float uma___nv_fast_sinf(float a) { return sinf(a); }
float uma___nv_fast_tanf(float a) { return tanf(a); }
float uma___nv_fast_tanhf(float a) { return tanhf(a); }
float uma___nv_fast_expf(float a) { return expf(a); }
float uma___nv_fast_exp10f(float a) { return exp10f(a); }
float uma___nv_fast_logf(float a) { return logf(a); }
float uma___nv_fast_log2f(float a) { return log2f(a); }
float uma___nv_fast_log10f(float a) { return log10f(a); }
float uma___nv_fast_powf(float a, float b) { return powf(a, b); }
float uma___nv_fast_fdividef(float a, float b) { return a / b; }
void uma___nv_fast_sincosf(float a, float *s, float *c) { *s = sinf(a), *c = cosf(a); }

float uma___nv_saturatef(float a) { return a > 0 ? (a < 1 ? a : 1) : 0; }

// Classification.
int uma___nv_finitef(float a) { return isfinite(a) != 0; }
int uma___nv_isfinited(double a) { return isfinite(a) != 0; }
int uma___nv_isinff(float a) { return isinf(a) != 0; }
int uma___nv_isinfd(double a) { return isinf(a) != 0; }
int uma___nv_isnanf(float a) { return isnan(a) != 0; }
int uma___nv_isnand(double a) { return isnan(a) != 0; }
int uma___nv_signbitf(float a) { return signbit(a) != 0; }
int uma___nv_signbitd(double a) { return signbit(a) != 0; }
double uma___nv_nan(const signed char *tag) { (void)tag; return NAN; }
float uma___nv_nanf(const signed char *tag) { (void)tag; return NAN; }
