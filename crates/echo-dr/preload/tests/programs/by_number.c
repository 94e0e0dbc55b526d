// System calls through the C library's `syscall`: results, errors, six arguments, and one that returns twice.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    int pipes[2];
    char got[3] = {0};
    free(malloc(300000));
    assert(pipe(pipes) == 0);
    assert(syscall(SYS_getpid) == getpid());
    assert(syscall(SYS_write, pipes[1], "abc", 3) == 3 && syscall(SYS_read, pipes[0], got, 3) == 3 && got[2] == 'c');
    errno = 0;
    assert(syscall(SYS_read, -1, got, 3) == -1 && errno == EBADF);
    errno = 0;
    assert(syscall(SYS_close, -1) == -1 && errno == EBADF);
    errno = 0;
    assert(ioctl(pipes[0], TIOCGWINSZ, got) == -1 && errno == ENOTTY);
    FILE *file = tmpfile();
    assert(ftruncate(fileno(file), 8192) == 0 && pwrite(fileno(file), "x", 1, 4096) == 1);
    char *page = (char *)syscall(SYS_mmap, NULL, 4096, PROT_READ, MAP_PRIVATE, fileno(file), 4096);
    assert(page != MAP_FAILED && page[0] == 'x');
    errno = 0;
    assert(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    pid_t child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    assert(child >= 0);
    if (child == 0) _exit(7);
    int status;
    assert(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    puts("by number");
    return 0;
}
