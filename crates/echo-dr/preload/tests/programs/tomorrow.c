// A function of CUDA that is newer than Echo: as a library whose name begins as CUDA's do (-DLIBRARY), and a program that calls it while its pair is
// alive, found in the way that its argument names.
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <string.h>

typedef int function(void *dst, const void *src, size_t bytes, double scale, long five, long six, long seven, long eight);

#ifdef LIBRARY
int cuMemcpyOfTomorrow(void *dst, const void *src, size_t bytes, double scale, long five, long six, long seven, long eight) {
    assert(scale == 0.5 && five == 5 && six == 6 && seven == 7 && eight == 8);
    (void)dst, (void)src;
    return (int)bytes;
}
int cuMemGetInfoOfTomorrow(void) { return 1; }
int cuGetProcAddress_v2(const char *name, void **out, int version, unsigned long flags, int *status) {
    if (strcmp(name, "cuMemcpyOfTomorrow") == 0) return *out = (void *)cuMemcpyOfTomorrow, 0;
    if (strcmp(name, "cuMemGetInfoOfTomorrow") == 0) return *out = (void *)cuMemGetInfoOfTomorrow, 0;
    int (*real)(const char *, void **, int, unsigned long, int *);
    *(void **)&real = dlsym(RTLD_NEXT, "cuGetProcAddress_v2");
    return real(name, out, version, flags, status);
}
#else
#include "pair.h"

#define BYTES 1000000

#ifdef IMPORTS
function cuMemcpyOfTomorrow;
#endif

static function *find(const char *how) {
    void *library = dlopen(TOMORROW, RTLD_NOW | RTLD_LOCAL);
    assert(library);
    if (strcmp(how, "proc") != 0) return (function *)dlsym(library, "cuMemcpyOfTomorrow");
    int (*look_up)(const char *, void **, int, unsigned long, int *);
    *(void **)&look_up = dlsym(library, "cuGetProcAddress_v2");
    void *found, *harmless;
    int status;
    assert(look_up("cuMemGetInfoOfTomorrow", &harmless, 13000, 0, &status) == 0 && ((int (*)(void))harmless)() == 1);
    assert(look_up("cuMemcpyOfTomorrow", &found, 13000, 0, &status) == 0 && found);
    return (function *)found;
}

int main(int count, char **arguments) {
    assert(count == 2);
    const char *how = arguments[1];
    function *tomorrow = strcmp(how, "clean") == 0 ? NULL : find(how);
#ifdef IMPORTS
    if (strcmp(how, "clean") != 0) tomorrow = cuMemcpyOfTomorrow;
#endif
    begin();
    void *d;
    unsigned char *h = malloc(BYTES);
    CHECK(device_alloc(&d, BYTES));
    unsigned sum = 0;
    for (int round = 0; round < 5; round++) {
        memset(h, round, BYTES);
        CHECK(upload(d, h, BYTES));
        // Found, and called only where the argument says so.
        if (tomorrow && strcmp(how, "not-called") != 0) assert(tomorrow(d, h, 77, 0.5, 5, 6, 7, 8) == 77);
        CHECK(download(h, d, BYTES));
        for (int i = 0; i < BYTES; i += 999) sum = sum * 31 + h[i];
    }
    CHECK(device_free(d));
    free(h);
    printf("%s %08x\n", how, sum);
    return 0;
}
#endif
