// The context of a thread, as uma-abi defines it. build.rs passes the offsets; a mismatch does not compile.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Context Context;

typedef struct {
    uint32_t (*barrier)(Context *, uint32_t op, uint32_t predicate);
    uint64_t (*shuffle)(Context *, uint32_t mask, uint32_t mode, uint32_t value, uint32_t b, uint32_t c);
    uint32_t (*ballot)(Context *, uint32_t mask, uint32_t predicate);
    void (*sync_warp)(Context *, uint32_t mask);
    uint32_t (*active_mask)(Context *, uint32_t site);
    int32_t (*vprintf)(Context *, const char *format, const void *arguments);
    void (*trap)(Context *, const char *message);
    uint64_t (*clock)(void);
} Services;

struct Context {
    uint32_t grid_dim[3], block_dim[3], block_idx[3], thread_idx[3];
    char *shared, *dynamic;
    uint32_t dynamic_shared, linear_thread;
    const Services *services;
    void *runner;
};

_Static_assert(offsetof(Context, shared) == UMA_OFFSET_SHARED, "uma-abi has another layout");
_Static_assert(offsetof(Context, dynamic) == UMA_OFFSET_DYNAMIC, "uma-abi has another layout");
_Static_assert(offsetof(Context, services) == UMA_OFFSET_SERVICES, "uma-abi has another layout");
_Static_assert(offsetof(Context, runner) == UMA_OFFSET_RUNNER, "uma-abi has another layout");
_Static_assert(offsetof(Services, ballot) == UMA_OFFSET_BALLOT, "uma-abi has another layout");
_Static_assert(offsetof(Services, clock) == UMA_OFFSET_CLOCK, "uma-abi has another layout");
