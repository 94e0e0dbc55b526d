// Threads allocate before and after the program opens 40 libraries with thread-local storage, each a copy of the one that the argument names.
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LIBRARIES 40
#define THREADS 4

static int (*touches[LIBRARIES])(int);
static pthread_barrier_t barrier;

static void *run(void *unused) {
    for (int i = 0; i < LIBRARIES; i++) {
        // The main thread opens a library, then all use it; the first call after that is a malloc of a size that is looked at.
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        volatile char *block = malloc(50000);
        block[0] = 1;
        assert(touches[i](i + 1) == i + 1);
        free((void *)block);
    }
    return unused;
}

int main(int count, char **arguments) {
    assert(count == 2);
    pthread_t threads[THREADS];
    assert(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
    for (int i = 0; i < THREADS; i++) assert(pthread_create(&threads[i], NULL, run, NULL) == 0);
    for (int i = 0; i < LIBRARIES; i++) {
        pthread_barrier_wait(&barrier);
        char name[64], line[4096];
        snprintf(name, sizeof name, "/tmp/echo-dr-locals-%d-%d.so", i, (int)getpid());
        FILE *from = fopen(arguments[1], "rb"), *to = fopen(name, "wb");
        assert(from && to);
        for (size_t got; (got = fread(line, 1, sizeof line, from)) > 0;) fwrite(line, 1, got, to);
        fclose(from);
        fclose(to);
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        assert(library && remove(name) == 0);
        *(void **)&touches[i] = dlsym(library, "touch");
        assert(touches[i]);
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < THREADS; i++) assert(pthread_join(threads[i], NULL) == 0);
    puts("locals");
    return 0;
}
