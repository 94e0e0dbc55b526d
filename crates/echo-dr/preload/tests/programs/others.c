// As pair.c; what the argument names is another function of CUDA, called while the pair is alive.
#include <assert.h>
#include <string.h>

#include "pair.h"

#define BYTES 1000000
#define ROUNDS 5

static const char *what;

static int is(const char *name) {
    return strcmp(what, name) == 0;
}

#ifdef DRIVER
int cuCtxCreate_v2(void **context, unsigned flags, int device);
int cuCtxDestroy_v2(void *context);
int cuDevicePrimaryCtxRelease_v2(int device);
static void *own, *second;
static void start(int early) {
    void *context;
    if (is("primary") || is("release-alive") || is("release-at-end")) {
        if (early) begin();
        return;
    }
    CHECK(cuInit(0));
    if (early != is("context-late")) CHECK(cuCtxCreate_v2(&own, 0, 0));
    if (early && is("contexts-in-turn")) {
        CHECK(cuCtxDestroy_v2(own));
        CHECK(cuCtxCreate_v2(&own, 0, 0));
    }
    if (early && is("two-contexts")) {
        CHECK(cuCtxCreate_v2(&second, 0, 0));
        CHECK(cuMemAlloc_v2(&context, 4096));
        CHECK(cuMemsetD8Async(context, 1, 4096, NULL));
        CHECK(cuCtxSetCurrent(own));
    }
}
static void call_other(void *d, void *h, void *scratch) {
    (void)d, (void)h, (void)scratch;
    if (is("release-alive")) CHECK(cuDevicePrimaryCtxRelease_v2(0));
}
static void end(void) {
    if (is("release-at-end")) CHECK(cuDevicePrimaryCtxRelease_v2(0));
    if (own) CHECK(cuCtxDestroy_v2(own));
}
#define device_alloc_other device_alloc
#else
struct pitched { void *at; size_t pitch, width, height; };
struct parameters {
    void *src_array; size_t src_position[3]; struct pitched src;
    void *dst_array; size_t dst_position[3]; struct pitched dst;
    size_t extent[3]; int kind;
};
int cudaMallocAsync(void **address, size_t bytes, void *stream);
int cudaDeviceReset(void);
int cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t bytes);
int cudaGraphAddMemcpyNode1D(void **node, void *graph, void *before, size_t count, void *dst, void *src, size_t bytes, int kind);
int cudaGraphAddMemcpyNode(void **node, void *graph, void *before, size_t count, struct parameters *what);
int cudaGraphExecMemcpyNodeSetParams(void *graph, void *node, struct parameters *what);
int cudaGraphAddNode(void **node, void *graph, void *before, void *data, size_t count, void *what);
int cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count, void *, size_t *, size_t, void *stream);
int cudaMemcpy3DBatchAsync(size_t count, void *operations, unsigned long long flags, void *stream);
static void start(int early) {
    if (early) begin();
}
// The CPU device has no graphs and no batches: what counts is that they were asked for.
static void call_other(void *d, void *h, void *scratch) {
    void *node, *words[64] = {0};
    size_t size = BYTES, index = 0;
    struct parameters of_pair = {.src = {h, BYTES, BYTES, 1}, .dst = {d, BYTES, BYTES, 1}, .extent = {BYTES, 1, 1}, .kind = 1};
    struct parameters of_others = {.src = {scratch, 8, 8, 1}, .dst = {words, 8, 8, 1}, .extent = {8, 1, 1}, .kind = 2};
    if (is("node-1d")) cudaGraphAddMemcpyNode1D(&node, words, NULL, 0, d, h, BYTES, 1);
    if (is("node-3d")) cudaGraphAddMemcpyNode(&node, words, NULL, 0, &of_pair);
    if (is("node-changed")) cudaGraphExecMemcpyNodeSetParams(words, words, &of_pair);
    if (is("node-of-others")) cudaGraphAddMemcpyNode(&node, words, NULL, 0, &of_others);
    if (is("node-any")) cudaGraphAddNode(&node, words, NULL, NULL, 0, words);
    if (is("batch")) cudaMemcpyBatchAsync(&d, &h, &size, 1, words, &index, 0, NULL);
    if (is("batch-3d")) cudaMemcpy3DBatchAsync(0, words, 0, NULL);
    if (is("peer")) CHECK(cudaMemcpyPeer(scratch, 0, d, 0, BYTES));
    if (is("reset")) CHECK(cudaDeviceReset());
}
static void end(void) {}
static int device_alloc_other(void **address, size_t bytes) {
    return is("pool") ? cudaMallocAsync(address, bytes, NULL) : cudaMalloc(address, bytes);
}
#endif

int main(int count, char **arguments) {
    assert(count == 2);
    what = arguments[1];
    start(1);
    void *d, *scratch;
    unsigned char *h = malloc(BYTES);
    start(0);
    CHECK(device_alloc_other(&d, BYTES));
    CHECK(device_alloc(&scratch, BYTES));
    unsigned sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        memset(h, round, BYTES);
        CHECK(upload(d, h, BYTES));
        CHECK(work(scratch, round, BYTES));
        CHECK(download(h, d, BYTES));
        for (int i = 0; i < BYTES; i += 999) sum = sum * 31 + h[i];
        if (round == 3) call_other(d, h, scratch);
        if (round == 3 && (is("reset") || is("release-alive"))) {
            printf("%s %08x\n", what, sum + h[5]);
            return 0;
        }
    }
    CHECK(synchronize());
    CHECK(device_free(d));
    CHECK(device_free(scratch));
    free(h);
    end();
    printf("%s %08x\n", what, sum);
    return 0;
}
