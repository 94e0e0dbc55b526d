// Makes one kind of call $CALLS times, for tests that count instructions. (Not an argument: a plan is bound to those.)
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { UP = 1, DOWN = 2, BYTES = 1000000 };

struct dim { unsigned x, y, z; };
int cudaMalloc(void **out, size_t bytes);
int cudaFree(void *address);
int cudaMemcpy(void *dst, const void *src, size_t bytes, int kind);
int cudaDeviceSynchronize(void);
int cudaLaunchKernel(const void *function, struct dim grid, struct dim block, void **arguments, size_t shared, void *stream);

static void kernel(void) {}

int main(int argc, char **argv) {
    const struct dim one = {1, 1, 1};
    const char *what = argc > 1 ? argv[1] : "";
    const long calls = atol(getenv("CALLS"));
    char *h = malloc(BYTES);
    void *d = NULL;
    memset(h, 1, BYTES);
    if (cudaMalloc(&d, BYTES) != 0) return 1;
    int failed = 0;
    for (long i = 0; i < calls; i++) {
        if (strcmp(what, "pair") == 0) {
            char *volatile small = malloc(100);
            free(small);
        } else if (strcmp(what, "copy") == 0) {
            failed |= cudaMemcpy(d, h, BYTES, UP);
        } else if (strcmp(what, "launch") == 0) {
            failed |= cudaLaunchKernel((const void *)kernel, one, one, NULL, 0, NULL);
        } else if (strcmp(what, "wait") == 0) {
            failed |= cudaDeviceSynchronize();
        } else if (strcmp(what, "round") == 0) {
            failed |= cudaMemcpy(d, h, BYTES, UP);
            failed |= cudaMemcpy(h, d, BYTES, DOWN);
        } else {
            return 2;
        }
    }
    free(h);
    failed |= cudaFree(d);
    return failed;
}
