// A program with an allocator of its own, exported as an executable with a statically linked allocator has it.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char pool[64 << 20];
static size_t used;

__attribute__((visibility("default"))) void *malloc(size_t bytes) {
    size_t start = __atomic_fetch_add(&used, (bytes + 31) / 16 * 16, __ATOMIC_RELAXED);
    if (start + bytes > sizeof pool) return NULL;
    *(size_t *)(pool + start) = bytes;
    return pool + start + 16;
}

// A block from anywhere else is a mixture of allocators, which is what this program is here to show that there is none.
__attribute__((visibility("default"))) void free(void *block) {
    if (block != NULL && !((char *)block >= pool && (char *)block < pool + sizeof pool)) __builtin_trap();
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes) {
    void *block = malloc(count * bytes);
    return block == NULL ? NULL : memset(block, 0, count * bytes);
}

__attribute__((visibility("default"))) void *realloc(void *block, size_t bytes) {
    void *new = malloc(bytes);
    if (block != NULL && new != NULL) {
        size_t old = *(size_t *)((char *)block - 16);
        memcpy(new, block, old < bytes ? old : bytes);
    }
    return new;
}

int main(void) {
    char *block = malloc(1000000);
    assert(block != NULL && block >= pool && block < pool + sizeof pool);
    strcpy(block, "own malloc");
    block = realloc(block, 2000000);
    puts(block);
    free(block);
    return 0;
}
