// What threads do together, print, or ask of the device.
#include "context.h"
#include <stdarg.h>
#include <string.h>

#pragma clang diagnostic ignored "-Wmissing-prototypes"

enum { BARRIER_ONLY, BARRIER_COUNT, BARRIER_AND, BARRIER_OR };
enum { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BUTTERFLY, SHUFFLE_INDEX };

// __syncthreads and its reductions. The compiler has checked that the barrier is number 0.
void uma_wait_llvm_nvvm_barrier_cta_sync_aligned_all(int32_t id, Context *k) { (void)id, k->services->barrier(k, BARRIER_ONLY, 0); }
void uma_wait_llvm_nvvm_barrier_cta_sync_all(int32_t id, Context *k) { (void)id, k->services->barrier(k, BARRIER_ONLY, 0); }
int32_t uma_wait_llvm_nvvm_barrier_cta_red_popc_aligned_all(int32_t id, bool p, Context *k) {
    return (void)id, (int32_t)k->services->barrier(k, BARRIER_COUNT, p);
}
bool uma_wait_llvm_nvvm_barrier_cta_red_and_aligned_all(int32_t id, bool p, Context *k) {
    return (void)id, k->services->barrier(k, BARRIER_AND, p) != 0;
}
bool uma_wait_llvm_nvvm_barrier_cta_red_or_aligned_all(int32_t id, bool p, Context *k) {
    return (void)id, k->services->barrier(k, BARRIER_OR, p) != 0;
}

// __syncwarp and votes.
void uma_wait_llvm_nvvm_bar_warp_sync(int32_t mask, Context *k) { k->services->sync_warp(k, (uint32_t)mask); }
int32_t uma_wait_llvm_nvvm_vote_ballot_sync(int32_t mask, bool p, Context *k) {
    return (int32_t)k->services->ballot(k, (uint32_t)mask, p);
}
bool uma_wait_llvm_nvvm_vote_any_sync(int32_t mask, bool p, Context *k) { return k->services->ballot(k, (uint32_t)mask, p) != 0; }
bool uma_wait_llvm_nvvm_vote_all_sync(int32_t mask, bool p, Context *k) { return k->services->ballot(k, (uint32_t)mask, !p) == 0; }
bool uma_wait_llvm_nvvm_vote_uni_sync(int32_t mask, bool p, Context *k) {
    uint32_t yes = k->services->ballot(k, (uint32_t)mask, p), all = k->services->ballot(k, (uint32_t)mask, true);
    return yes == 0 || yes == all;
}

// The compiler appends the number of the call.
int32_t uma_wait_llvm_nvvm_activemask(uint32_t site, Context *k) { return (int32_t)k->services->active_mask(k, site); }

// Shuffles.
typedef struct {
    int32_t value;
    bool in_range;
} Shuffled;

static Shuffled shuffle(Context *k, int32_t mask, uint32_t mode, int32_t value, int32_t b, int32_t c) {
    uint64_t answer = k->services->shuffle(k, (uint32_t)mask, mode, (uint32_t)value, (uint32_t)b, (uint32_t)c);
    return (Shuffled){(int32_t)answer, answer >> 32 & 1};
}
static float as_float(int32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static int32_t as_bits(float value) {
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
#define SHUFFLE(NAME, MODE)                                                                                                       \
    int32_t uma_wait_llvm_nvvm_shfl_sync_##NAME##_i32(int32_t mask, int32_t value, int32_t b, int32_t c, Context *k) {            \
        return shuffle(k, mask, MODE, value, b, c).value;                                                                         \
    }                                                                                                                             \
    float uma_wait_llvm_nvvm_shfl_sync_##NAME##_f32(int32_t mask, float value, int32_t b, int32_t c, Context *k) {                \
        return as_float(shuffle(k, mask, MODE, as_bits(value), b, c).value);                                                      \
    }
SHUFFLE(up, SHUFFLE_UP)
SHUFFLE(down, SHUFFLE_DOWN)
SHUFFLE(bfly, SHUFFLE_BUTTERFLY)
SHUFFLE(idx, SHUFFLE_INDEX)

// Match and reductions: every lane of the mask shows its value to the others in turn.
static int32_t shown(Context *k, int32_t mask, int32_t value, int32_t lane) {
    return shuffle(k, mask, SHUFFLE_INDEX, value, lane, 31).value;
}
static uint32_t here(Context *k, int32_t mask) { return k->services->ballot(k, (uint32_t)mask, true); }

int32_t uma_wait_llvm_nvvm_match_any_sync_i32(int32_t mask, int32_t value, Context *k) {
    uint32_t same = 0, lanes = here(k, mask);
    for (int32_t lane = 0; lane < 32; lane++)
        if (lanes >> lane & 1) same |= (uint32_t)(shown(k, mask, value, lane) == value) << lane;
    return (int32_t)same;
}
int32_t uma_wait_llvm_nvvm_match_any_sync_i64(int32_t mask, int64_t value, Context *k) {
    uint32_t low = (uint32_t)uma_wait_llvm_nvvm_match_any_sync_i32(mask, (int32_t)value, k);
    uint32_t high = (uint32_t)uma_wait_llvm_nvvm_match_any_sync_i32(mask, (int32_t)(value >> 32), k);
    return (int32_t)(low & high);
}

#define REDUCE(NAME, TYPE, STEP)                                                                                                  \
    int32_t uma_wait_llvm_nvvm_redux_sync_##NAME(int32_t value, int32_t mask, Context *k) {                                       \
        uint32_t lanes = here(k, mask);                                                                                           \
        TYPE sum = 0;                                                                                                             \
        bool first = true;                                                                                                        \
        for (int32_t lane = 0; lane < 32; lane++)                                                                                 \
            if (lanes >> lane & 1) {                                                                                              \
                TYPE other = (TYPE)shown(k, mask, value, lane);                                                                   \
                sum = first ? other : (STEP);                                                                                     \
                first = false;                                                                                                    \
            }                                                                                                                     \
        return (int32_t)sum;                                                                                                      \
    }
REDUCE(add, uint32_t, sum + other)
REDUCE(min, int32_t, sum < other ? sum : other)
REDUCE(max, int32_t, sum > other ? sum : other)
REDUCE(umin, uint32_t, sum < other ? sum : other)
REDUCE(umax, uint32_t, sum > other ? sum : other)
REDUCE(and, uint32_t, sum &other)
REDUCE(or, uint32_t, sum | other)
REDUCE(xor, uint32_t, sum ^ other)

// Fences: one strength serves all scopes.
void uma_llvm_nvvm_membar_cta(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void uma_llvm_nvvm_membar_gl(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void uma_llvm_nvvm_membar_sys(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// Printing and failing.
int32_t uma_vprintf(const char *format, const void *arguments, Context *k) { return k->services->vprintf(k, format, arguments); }
void uma_llvm_trap(Context *k) { k->services->trap(k, NULL); }

static char *append(char *to, char *end, const char *text) {
    while (*text && to < end) *to++ = *text++;
    *to = 0;
    return to;
}
void uma___assertfail(const char *expression, const char *file, int32_t line, const char *function, int64_t size, Context *k) {
    char message[512], digits[12], *end = message + sizeof message - 1, *digit = digits + sizeof digits - 1;
    (void)size;
    *digit = 0;
    do *--digit = (char)('0' + line % 10); while (line /= 10);
    char *to = append(message, end, file ? file : "?");
    to = append(append(append(to, end, ":"), end, digit), end, ": ");
    to = append(append(to, end, function ? function : "?"), end, ": assertion `");
    append(append(to, end, expression ? expression : "?"), end, "` failed");
    k->services->trap(k, message);
}

// Time. clock() ticks once a nanosecond here.
int32_t uma_llvm_nvvm_read_ptx_sreg_clock(Context *k) { return (int32_t)k->services->clock(); }
int64_t uma_llvm_nvvm_read_ptx_sreg_clock64(Context *k) { return (int64_t)k->services->clock(); }
int64_t uma_llvm_nvvm_read_ptx_sreg_globaltimer(Context *k) { return (int64_t)k->services->clock(); }
int64_t uma_llvm_readcyclecounter(Context *k) { return (int64_t)k->services->clock(); }
// Sleeping is advice.
void uma_llvm_nvvm_nanosleep(int32_t nanoseconds) { (void)nanoseconds; }

// Address spaces of a generic pointer: shared memory is the block's; everything else that kernels reach is global memory. (A local
// variable counts as global too; there is no way to tell it.)
static bool is_shared(const void *p, const Context *k) {
    return (uintptr_t)p - (uintptr_t)k->shared < (uintptr_t)k->dynamic + k->dynamic_shared - (uintptr_t)k->shared;
}
bool uma_llvm_nvvm_isspacep_shared(const void *p, Context *k) { return is_shared(p, k); }
