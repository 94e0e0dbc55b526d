// Operations that name their rounding mode. Those that do not round to nearest change the mode of the thread around one operation, so they
// are slow, exact, and never inlined into code that does not know of modes.
#include <fenv.h>
#include <math.h>
#include <stdint.h>

#pragma clang diagnostic ignored "-Wmissing-prototypes"
#pragma STDC FENV_ACCESS ON

// What fesetround calls the modes differs between CPUs; the kernel compiler gives these their values.
extern const int uma_round_nearest, uma_round_down, uma_round_up, uma_round_zero;

#define IN_MODE(MODE, TYPE, EXPRESSION)                                                                                           \
    {                                                                                                                             \
        int before = fegetround();                                                                                                \
        fesetround(MODE);                                                                                                         \
        volatile TYPE result = EXPRESSION;                                                                                        \
        fesetround(before);                                                                                                       \
        return result;                                                                                                            \
    }

// One function for each of CUDA's four suffixes.
#define MODES(TYPE, NAME, PARAMETERS, EXPRESSION)                                                                                 \
    TYPE uma___nv_##NAME##_rn PARAMETERS IN_MODE(uma_round_nearest, TYPE, EXPRESSION)                                                  \
    TYPE uma___nv_##NAME##_rd PARAMETERS IN_MODE(uma_round_down, TYPE, EXPRESSION)                                                   \
    TYPE uma___nv_##NAME##_ru PARAMETERS IN_MODE(uma_round_up, TYPE, EXPRESSION)                                                     \
    TYPE uma___nv_##NAME##_rz PARAMETERS IN_MODE(uma_round_zero, TYPE, EXPRESSION)
#define DIRECTED(TYPE, NAME, PARAMETERS, EXPRESSION)                                                                              \
    TYPE uma___nv_##NAME##_rd PARAMETERS IN_MODE(uma_round_down, TYPE, EXPRESSION)                                                   \
    TYPE uma___nv_##NAME##_ru PARAMETERS IN_MODE(uma_round_up, TYPE, EXPRESSION)                                                     \
    TYPE uma___nv_##NAME##_rz PARAMETERS IN_MODE(uma_round_zero, TYPE, EXPRESSION)

DIRECTED(float, fadd, (float a, float b), a + b)
DIRECTED(float, fsub, (float a, float b), a - b)
DIRECTED(float, fmul, (float a, float b), a *b)
DIRECTED(float, fdiv, (float a, float b), a / b)
DIRECTED(float, frcp, (float a), 1 / a)
DIRECTED(float, fsqrt, (float a), sqrtf(a))
DIRECTED(float, fmaf, (float a, float b, float c), fmaf(a, b, c))
MODES(float, fmaf_ieee, (float a, float b, float c), fmaf(a, b, c))
DIRECTED(double, dadd, (double a, double b), a + b)
DIRECTED(double, dsub, (double a, double b), a - b)
DIRECTED(double, dmul, (double a, double b), a *b)
DIRECTED(double, ddiv, (double a, double b), a / b)
DIRECTED(double, drcp, (double a), 1 / a)
DIRECTED(double, dsqrt, (double a), sqrt(a))
DIRECTED(double, fma, (double a, double b, double c), fma(a, b, c))
DIRECTED(float, double2float, (double a), (float)a)
DIRECTED(float, int2float, (int a), (float)a)
DIRECTED(float, uint2float, (unsigned a), (float)a)
DIRECTED(float, ll2float, (long long a), (float)a)
DIRECTED(float, ull2float, (unsigned long long a), (float)a)
DIRECTED(double, ll2double, (long long a), (double)a)
DIRECTED(double, ull2double, (unsigned long long a), (double)a)
