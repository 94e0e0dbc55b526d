// Every function of the malloc family, below and above the threshold; each block is used and freed by the family.
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void use(void *block, size_t bytes, size_t align) {
    assert(block != NULL);
    assert((uintptr_t)block % align == 0);
    assert(malloc_usable_size(block) >= bytes);
    memset(block, 0x5a, bytes);
}

static void family(size_t bytes) {
    errno = 77;
    void *block = malloc(bytes);
    assert(errno == 77);
    use(block, bytes, 16);
    block = realloc(block, 2 * bytes);
    use(block, 2 * bytes, 16);
    block = reallocarray(block, 3, bytes);
    use(block, 3 * bytes, 16);
    block = realloc(block, bytes / 2);
    use(block, bytes / 2, 16);
    free(block);
    assert(errno == 77);

    unsigned char *zeroed = calloc(bytes / 4, 4);
    for (size_t i = 0; i < bytes / 4 * 4; i++) assert(zeroed[i] == 0);
    use(zeroed, bytes / 4 * 4, 16);
    free(zeroed);

    for (size_t align = 16; align <= 65536; align *= 4) {
        void *aligned = aligned_alloc(align, bytes);
        use(aligned, bytes, align);
        free(aligned);
        assert(posix_memalign(&aligned, align, bytes) == 0);
        use(aligned, bytes, align);
        aligned = realloc(aligned, bytes + 1);
        use(aligned, bytes + 1, 16);
        free(aligned);
        aligned = memalign(align, bytes);
        use(aligned, bytes, align);
        free(aligned);
    }
    void *page = valloc(bytes);
    use(page, bytes, 4096);
    free(page);
    page = pvalloc(bytes);
    use(page, bytes, 4096);
    free(page);
}

// No compiler may know that the requests are absurd.
static volatile size_t huge = SIZE_MAX;

int main(int count, char **arguments) {
    family(100);
    family(300000);
    if (count > 1 && strcmp(arguments[1], "huge") == 0) family(64 << 20);
    assert(malloc(huge) == NULL && errno == ENOMEM);
    assert(calloc(huge, 2) == NULL && errno == ENOMEM);
    void *block = malloc(300000);
    assert(realloc(block, huge - 100) == NULL);
    assert(reallocarray(block, huge, 4) == NULL);
    use(block, 300000, 16);
    free(block);
    void *out = &out;
    assert(posix_memalign(&out, 3, 300000) == EINVAL && out == &out);
    free(NULL);
    assert(malloc_usable_size(NULL) == 0);
    free(malloc(0));
    puts("blocks");
    return 0;
}
