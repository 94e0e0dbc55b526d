// Integer and bit operations, conversions, and rounding to nearest (the mode that is always on).
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#pragma clang diagnostic ignored "-Wmissing-prototypes"

typedef long long ll;
typedef unsigned long long ull;

int uma___nv_abs(int a) { return a < 0 ? (int)-(unsigned)a : a; }
ll uma___nv_llabs(ll a) { return a < 0 ? (ll) - (ull)a : a; }
int uma___nv_min(int a, int b) { return a < b ? a : b; }
int uma___nv_max(int a, int b) { return a > b ? a : b; }
unsigned uma___nv_umin(unsigned a, unsigned b) { return a < b ? a : b; }
unsigned uma___nv_umax(unsigned a, unsigned b) { return a > b ? a : b; }
ll uma___nv_llmin(ll a, ll b) { return a < b ? a : b; }
ll uma___nv_llmax(ll a, ll b) { return a > b ? a : b; }
ull uma___nv_ullmin(ull a, ull b) { return a < b ? a : b; }
ull uma___nv_ullmax(ull a, ull b) { return a > b ? a : b; }

int uma___nv_clz(int a) { return a ? __builtin_clz((unsigned)a) : 32; }
int uma___nv_clzll(ll a) { return a ? __builtin_clzll((ull)a) : 64; }
int uma___nv_popc(int a) { return __builtin_popcount((unsigned)a); }
int uma___nv_popcll(ll a) { return __builtin_popcountll((ull)a); }
int uma___nv_ffs(int a) { return __builtin_ffs(a); }
int uma___nv_ffsll(ll a) { return __builtin_ffsll(a); }
int uma___nv_brev(int a) { return (int)__builtin_bitreverse32((unsigned)a); }
ll uma___nv_brevll(ll a) { return (ll)__builtin_bitreverse64((ull)a); }

// PTX prmt, default mode: each nibble of the selector picks a byte of b:a, its top bit replicates the byte's sign.
int uma___nv_byte_perm(int a, int b, int selector) {
    uint64_t bytes = (uint32_t)a | (uint64_t)(uint32_t)b << 32;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t nibble = (uint32_t)selector >> (4 * i) & 15;
        uint32_t byte = bytes >> (8 * (nibble & 7)) & 255;
        if (nibble & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << (8 * i);
    }
    return (int)result;
}
int uma_llvm_nvvm_prmt(int a, int b, int selector) { return uma___nv_byte_perm(a, b, selector); }

int uma___nv_mulhi(int a, int b) { return (int)((ll)a * b >> 32); }
unsigned uma___nv_umulhi(unsigned a, unsigned b) { return (unsigned)((ull)a * b >> 32); }
ll uma___nv_mul64hi(ll a, ll b) { return (ll)((__int128)a * b >> 64); }
ull uma___nv_umul64hi(ull a, ull b) { return (ull)((unsigned __int128)a * b >> 64); }
static int low24(int a) { return (int)((unsigned)a << 8) >> 8; }
int uma___nv_mul24(int a, int b) { return (int)((unsigned)low24(a) * (unsigned)low24(b)); }
unsigned uma___nv_umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
static unsigned distance(int a, int b) { return a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a; }
int uma___nv_sad(int a, int b, int c) { return (int)(distance(a, b) + (unsigned)c); }
unsigned uma___nv_usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
int uma___nv_hadd(int a, int b) { return (int)(((ll)a + b) >> 1); }
int uma___nv_rhadd(int a, int b) { return (int)(((ll)a + b + 1) >> 1); }
unsigned uma___nv_uhadd(unsigned a, unsigned b) { return (unsigned)(((ull)a + b) >> 1); }
unsigned uma___nv_urhadd(unsigned a, unsigned b) { return (unsigned)(((ull)a + b + 1) >> 1); }

// Funnel shifts: 32 bits of high:low, shifted by n modulo 32 or by at most 32.
static ull pair(unsigned low, unsigned high) { return (ull)high << 32 | low; }
static unsigned at_most_32(unsigned n) { return n < 32 ? n : 32; }
unsigned uma_ptx_shf_l_wrap_b32(unsigned low, unsigned high, unsigned n) { return (unsigned)(pair(low, high) << (n & 31) >> 32); }
unsigned uma_ptx_shf_r_wrap_b32(unsigned low, unsigned high, unsigned n) { return (unsigned)(pair(low, high) >> (n & 31)); }
unsigned uma_ptx_shf_l_clamp_b32(unsigned low, unsigned high, unsigned n) {
    return (unsigned)(pair(low, high) << at_most_32(n) >> 32);
}
unsigned uma_ptx_shf_r_clamp_b32(unsigned low, unsigned high, unsigned n) { return (unsigned)(pair(low, high) >> at_most_32(n)); }

// Bits as they are.
#define SAME_BITS(TO, NAME, FROM)                                                                                                 \
    TO uma___nv_##NAME(FROM a) {                                                                                                  \
        TO result;                                                                                                                \
        _Static_assert(sizeof(TO) == sizeof(FROM), "other sizes");                                                                \
        memcpy(&result, &a, sizeof result);                                                                                       \
        return result;                                                                                                            \
    }
SAME_BITS(int, float_as_int, float)
SAME_BITS(unsigned, float_as_uint, float)
SAME_BITS(float, int_as_float, int)
SAME_BITS(float, uint_as_float, unsigned)
SAME_BITS(ll, double_as_longlong, double)
SAME_BITS(double, longlong_as_double, ll)
int uma___nv_double2hiint(double a) { return (int)((ull)uma___nv_double_as_longlong(a) >> 32); }
int uma___nv_double2loint(double a) { return (int)uma___nv_double_as_longlong(a); }
double uma___nv_hiloint2double(int high, int low) {
    return uma___nv_longlong_as_double((ll)((ull)(unsigned)high << 32 | (unsigned)low));
}

// Floating point to integer: values out of range go to the nearest end; NaN goes to 0, or to the top bit alone where the source is a
// double or the result has 64 bits (PTX ISA, cvt).
#define CONVERT(TO, NAME, FROM, ROUND, LOWEST, ABOVE, HIGHEST, NOT_A_NUMBER)                                                      \
    TO uma___nv_##NAME(FROM a) {                                                                                                  \
        if (a != a) return (TO)(NOT_A_NUMBER);                                                                                    \
        a = ROUND(a);                                                                                                             \
        return a < (FROM)(LOWEST) ? (TO)(LOWEST) : a >= (FROM)(ABOVE) ? (TO)(HIGHEST) : (TO)a;                                    \
    }
#define CONVERT_MODES(TO, NAME, FROM, F, LOWEST, ABOVE, HIGHEST, NOT_A_NUMBER)                                                    \
    CONVERT(TO, NAME##_rn, FROM, rint##F, LOWEST, ABOVE, HIGHEST, NOT_A_NUMBER)                                                   \
    CONVERT(TO, NAME##_rd, FROM, floor##F, LOWEST, ABOVE, HIGHEST, NOT_A_NUMBER)                                                  \
    CONVERT(TO, NAME##_ru, FROM, ceil##F, LOWEST, ABOVE, HIGHEST, NOT_A_NUMBER)                                                   \
    CONVERT(TO, NAME##_rz, FROM, trunc##F, LOWEST, ABOVE, HIGHEST, NOT_A_NUMBER)
CONVERT_MODES(int, float2int, float, f, INT_MIN, 0x1p31, INT_MAX, 0)
CONVERT_MODES(unsigned, float2uint, float, f, 0, 0x1p32, UINT_MAX, 0)
CONVERT_MODES(ll, float2ll, float, f, LLONG_MIN, 0x1p63, LLONG_MAX, LLONG_MIN)
CONVERT_MODES(ull, float2ull, float, f, 0, 0x1p64, ULLONG_MAX, 1ull << 63)
CONVERT_MODES(int, double2int, double, , INT_MIN, 0x1p31, INT_MAX, INT_MIN)
CONVERT_MODES(unsigned, double2uint, double, , 0, 0x1p32, UINT_MAX, 1u << 31)
CONVERT_MODES(ll, double2ll, double, , LLONG_MIN, 0x1p63, LLONG_MAX, LLONG_MIN)
CONVERT_MODES(ull, double2ull, double, , 0, 0x1p64, ULLONG_MAX, 1ull << 63)

// To nearest.
float uma___nv_int2float_rn(int a) { return (float)a; }
float uma___nv_uint2float_rn(unsigned a) { return (float)a; }
float uma___nv_ll2float_rn(ll a) { return (float)a; }
float uma___nv_ull2float_rn(ull a) { return (float)a; }
double uma___nv_int2double_rn(int a) { return a; }
double uma___nv_uint2double_rn(unsigned a) { return a; }
double uma___nv_ll2double_rn(ll a) { return (double)a; }
double uma___nv_ull2double_rn(ull a) { return (double)a; }
float uma___nv_double2float_rn(double a) { return (float)a; }
float uma___nv_fadd_rn(float a, float b) { return a + b; }
float uma___nv_fsub_rn(float a, float b) { return a - b; }
float uma___nv_fmul_rn(float a, float b) { return a * b; }
float uma___nv_fdiv_rn(float a, float b) { return a / b; }
float uma___nv_frcp_rn(float a) { return 1 / a; }
float uma___nv_fsqrt_rn(float a) { return sqrtf(a); }
float uma___nv_frsqrt_rn(float a) { return (float)(1 / sqrt((double)a)); }
float uma___nv_fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
double uma___nv_dadd_rn(double a, double b) { return a + b; }
double uma___nv_dsub_rn(double a, double b) { return a - b; }
double uma___nv_dmul_rn(double a, double b) { return a * b; }
double uma___nv_ddiv_rn(double a, double b) { return a / b; }
double uma___nv_drcp_rn(double a) { return 1 / a; }
double uma___nv_dsqrt_rn(double a) { return sqrt(a); }
double uma___nv_fma_rn(double a, double b, double c) { return fma(a, b, c); }
