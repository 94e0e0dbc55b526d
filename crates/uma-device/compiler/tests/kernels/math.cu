// Mathematical functions: one kernel a function, so that a failure has a name.
#define UNARY(NAME)                                                                                                               \
    extern "C" __global__ void d_##NAME(const double *x, double *y, int n) {                                                      \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                            \
        if (i < n) y[i] = NAME(x[i]);                                                                                             \
    }                                                                                                                             \
    extern "C" __global__ void s_##NAME(const float *x, float *y, int n) {                                                        \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                            \
        if (i < n) y[i] = NAME##f(x[i]);                                                                                          \
    }
UNARY(sin) UNARY(cos) UNARY(tan) UNARY(asin) UNARY(acos) UNARY(atan) UNARY(sinh) UNARY(cosh) UNARY(tanh) UNARY(exp) UNARY(exp2)
UNARY(expm1) UNARY(log) UNARY(log2) UNARY(log10) UNARY(log1p) UNARY(sqrt) UNARY(cbrt) UNARY(rsqrt) UNARY(floor) UNARY(ceil) UNARY(trunc)
UNARY(rint) UNARY(round) UNARY(fabs) UNARY(sinpi) UNARY(cospi) UNARY(erf) UNARY(normcdf) UNARY(tgamma)

extern "C" __global__ void two(const double *a, const double *b, double *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double s, c;
    sincos(a[i], &s, &c);
    int e;
    double m = frexp(a[i], &e);
    double r[12] = {pow(fabs(a[i]), b[i]), atan2(a[i], b[i]), fmod(a[i], b[i]), hypot(a[i], b[i]), fmax(a[i], b[i]), fmin(a[i], b[i]),
                    copysign(a[i], b[i]), fma(a[i], b[i], 1.0), s, c, m, (double)e};
    for (int k = 0; k < 12; k++) y[12 * i + k] = r[k];
}
extern "C" __global__ void fast(const float *a, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float r[8] = {__sinf(a[i]), __cosf(a[i]), __expf(a[i]), __logf(a[i]), __fdividef(a[i], 3), __saturatef(a[i]), __powf(a[i], 1.5f), __frcp_rn(a[i])};
    for (int k = 0; k < 8; k++) y[8 * i + k] = r[k];
}
// The four roundings of each operation.
#define FOUR(OP, ...) OP##_rn(__VA_ARGS__), OP##_rd(__VA_ARGS__), OP##_ru(__VA_ARGS__), OP##_rz(__VA_ARGS__)
extern "C" __global__ void rounded(const float *a, const float *b, float *y, const double *d, double *z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float r[16] = {FOUR(__fadd, a[i], b[i]), FOUR(__fmul, a[i], b[i]), FOUR(__fdiv, a[i], b[i]), FOUR(__double2float, d[i])};
    double s[8] = {FOUR(__dadd, d[i], (double)a[i]), FOUR(__dsqrt, fabs(d[i]))};
    for (int k = 0; k < 16; k++) y[16 * i + k] = r[k];
    for (int k = 0; k < 8; k++) z[8 * i + k] = s[k];
}
extern "C" __global__ void converted(const float *a, int *y, long long *z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int r[8] = {FOUR(__float2int, a[i]), (int)__float2uint_rn(a[i]), (int)__float2uint_rd(a[i]), __float_as_int(a[i]), __double2int_rz((double)a[i])};
    long long s[4] = {__float2ll_rn(a[i]), __float2ll_rd(a[i]), (long long)__float2ull_rz(a[i]), __double_as_longlong((double)a[i])};
    for (int k = 0; k < 8; k++) y[8 * i + k] = r[k];
    for (int k = 0; k < 4; k++) z[4 * i + k] = s[k];
}
extern "C" __global__ void bits(const unsigned *a, const unsigned *b, unsigned *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned u = a[i], v = b[i];
    unsigned long long w = (unsigned long long)u << 32 | v;
    unsigned r[18] = {(unsigned)__popc(u), (unsigned)__clz(u), (unsigned)__ffs(u), __brev(u), __byte_perm(u, v, 0x5a03), __umulhi(u, v),
                      (unsigned)__mulhi((int)u, (int)v), (unsigned)__popcll(w), (unsigned)__clzll(w), (unsigned)__ffsll(w),
                      __funnelshift_l(u, v, 9), (unsigned)__mul24((int)u, (int)v), __usad(u, v, 5), (unsigned)(__brevll(w) >> 32), __funnelshift_lc(u, v, v & 63), __funnelshift_r(u, v, v), __funnelshift_rc(u, v, v & 63),
                      (unsigned)__rhadd((int)u, (int)v)};
    for (int k = 0; k < 18; k++) y[18 * i + k] = r[k];
}
