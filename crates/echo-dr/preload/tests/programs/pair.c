// A host and a device buffer, copied to the device, some GPU work, and copied back, five times. The argument says what the host does to its
// buffer while the GPU has it.
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define BYTES 1000000
#define ROUNDS 5

static unsigned char *h;
static const char *what;
static volatile sig_atomic_t own_faults;

static int is(const char *name) {
    return strcmp(what, name) == 0;
}

__attribute__((noinline)) static void touch_write(volatile unsigned char *at) {
    *at = 99;
}

__attribute__((noinline)) static int touch_read(volatile unsigned char *at) {
    return *at;
}

static void *other_thread(void *at) {
    // Threads of libraries often block all signals.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    touch_write(at);
    return NULL;
}

static void own_handler(int signal) {
    (void)signal;
    own_faults++;
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigaction(SIGSEGV, &action, NULL);
    _exit(own_faults == 1 ? 42 : 43);
}

static void while_the_gpu_works(int round) {
    if (round != 3) return;
    if (is("write")) touch_write(h + 5000);
    if (is("read")) touch_read(h + 5000);
    if (is("alias")) {
        unsigned char *volatile alias = h;
        touch_write(alias + BYTES - 1);
    }
    if (is("thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, other_thread, h + 7);
        pthread_join(thread, NULL);
    }
    if (is("sysread")) {
        int zero = open("/dev/zero", O_RDONLY);
        ssize_t got = read(zero, h + 100, 5000);
        assert(got == 5000);
        close(zero);
    }
    if (is("syswrite")) {
        int null = open("/dev/null", O_WRONLY);
        struct iovec pieces[2] = {{h, 10}, {h + 9000, 10}};
        assert(writev(null, pieces, 2) == 20);
        close(null);
    }
    if (is("fread")) {
        FILE *zero = fopen("/dev/zero", "rb");
        assert(fread(h, 1, 100000, zero) == 100000);
        fclose(zero);
    }
    if (is("child")) {
        pid_t child = fork();
        if (child == 0) _exit(touch_read(h) + touch_read(h + BYTES - 1) == 2 * round ? 0 : 1);
        int status;
        waitpid(child, &status, 0);
        assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    if (is("crash")) {
        signal(SIGSEGV, own_handler);
        *(volatile char *)16 = 1;
    }
}

int main(int count, char **arguments) {
    assert(count == 2);
    what = arguments[1];
    begin();
    void *d, *scratch;
    host_alloc(&h, BYTES);
    // Neighbours that share no page with h must not matter.
    volatile char *neighbour = malloc(3000);
    CHECK(device_alloc(&d, BYTES));
    CHECK(device_alloc(&scratch, BYTES));
    unsigned sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        memset(h, round, BYTES);
        CHECK(upload(d, h, BYTES));
        CHECK(work(scratch, round, BYTES));
        neighbour[round] = 1;
        while_the_gpu_works(round);
        CHECK(download(h, d, BYTES));
        for (int i = 0; i < BYTES; i += 999) sum = sum * 31 + h[i];
    }
    CHECK(synchronize());
    CHECK(device_free(d));
    CHECK(device_free(scratch));
    host_free(h);
    free((void *)neighbour);
    printf("%s %08x\n", what, sum);
    return 0;
}
