// 64 threads allocate hard, twice: small and large blocks, freed by another thread than made them.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 64
#define ROUNDS 300

static void *slots[THREADS];

static void *work(void *argument) {
    size_t self = (size_t)argument;
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t bytes = round % 10 == 0 ? 250000 + self : 16 + (round * 37) % 2000;
        char *block = malloc(bytes);
        memset(block, (int)self, bytes < 64 ? bytes : 64);
        block[bytes - 1] = (char)self;
        void *old = __atomic_exchange_n(&slots[(self + round) % THREADS], block, __ATOMIC_ACQ_REL);
        free(old);
    }
    return NULL;
}

int main(void) {
    for (int times = 0; times < 2; times++) {
        pthread_t threads[THREADS];
        for (size_t i = 0; i < THREADS; i++) assert(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
        for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < THREADS; i++) free(slots[i]);
    puts("threads");
    return 0;
}
