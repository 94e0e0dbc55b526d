// Cancels threads that wait in system calls.
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static int fds[2];

static void *in_read(void *unused) {
    char byte;
    (void)!read(fds[0], &byte, 1);
    return unused;
}

static void *in_readv(void *unused) {
    char byte;
    struct iovec piece = {&byte, 1};
    (void)!readv(fds[0], &piece, 1);
    return unused;
}

static void *in_recvmsg(void *unused) {
    char byte;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    (void)!recvmsg(fds[0], &message, 0);
    return unused;
}

int main(void) {
    void *(*functions[])(void *) = {in_read, in_readv, in_recvmsg};
    free(malloc(300000));
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        void *result;
        assert(pthread_create(&thread, NULL, functions[i], NULL) == 0);
        usleep(20000);
        assert(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
    puts("cancelled");
    return 0;
}
