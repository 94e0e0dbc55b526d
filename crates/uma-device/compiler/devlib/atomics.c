// Atomic operations of the scopes that clang has intrinsics for (block and system); those of the device's scope are LLVM's own. One
// strength serves all. Minimum and maximum are missing: the intrinsics do not tell signed from unsigned.
#include <stdbool.h>
#include <stdint.h>

#pragma clang diagnostic ignored "-Wmissing-prototypes"

#define NAMED(OPERATION, KIND, SCOPE, TYPE, SPACE) uma_llvm_nvvm_atomic_##OPERATION##_gen_##KIND##_##SCOPE##_##TYPE##_##SPACE

// The same function for a generic, a global and a shared pointer.
#define SPACES(RESULT, OPERATION, KIND, SCOPE, TYPE, PARAMETERS, BODY)                                                            \
    RESULT NAMED(OPERATION, KIND, SCOPE, TYPE, p0) PARAMETERS BODY RESULT NAMED(OPERATION, KIND, SCOPE, TYPE, p1) PARAMETERS BODY  \
    RESULT NAMED(OPERATION, KIND, SCOPE, TYPE, p3) PARAMETERS BODY
#define SCOPES(RESULT, OPERATION, KIND, TYPE, PARAMETERS, BODY)                                                                   \
    SPACES(RESULT, OPERATION, KIND, cta, TYPE, PARAMETERS, BODY)                                                                  \
    SPACES(RESULT, OPERATION, KIND, sys, TYPE, PARAMETERS, BODY)
#define FETCH(OPERATION, KIND, TYPE, C, FUNCTION)                                                                                 \
    SCOPES(C, OPERATION, KIND, TYPE, (C * p, C v), { return FUNCTION(p, v, __ATOMIC_SEQ_CST); })

#define INTEGER(TYPE, C)                                                                                                          \
    FETCH(add, i, TYPE, C, __atomic_fetch_add)                                                                                    \
    FETCH(and, i, TYPE, C, __atomic_fetch_and)                                                                                    \
    FETCH(or, i, TYPE, C, __atomic_fetch_or)                                                                                      \
    FETCH(xor, i, TYPE, C, __atomic_fetch_xor)                                                                                    \
    FETCH(exch, i, TYPE, C, __atomic_exchange_n)                                                                                  \
    SCOPES(C, cas, i, TYPE, (C * p, C expected, C desired), {                                                                     \
        __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                            \
        return expected;                                                                                                          \
    })
INTEGER(i32, int32_t)
INTEGER(i64, int64_t)
FETCH(add, f, f32, float, __atomic_fetch_add)
FETCH(add, f, f64, double, __atomic_fetch_add)

// Up to a limit and then 0; down to 0 and then the limit.
#define WRAPPING(OPERATION, NEXT)                                                                                                 \
    SCOPES(uint32_t, OPERATION, i, i32, (uint32_t * p, uint32_t limit), {                                                         \
        uint32_t old = __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                      \
        while (!__atomic_compare_exchange_n(p, &old, NEXT, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}                         \
        return old;                                                                                                               \
    })
WRAPPING(inc, old >= limit ? 0 : old + 1)
WRAPPING(dec, old == 0 || old > limit ? limit : old - 1)
