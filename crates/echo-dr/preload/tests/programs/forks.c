// Forks 100 children while other threads allocate; each child allocates, and ends by exit, by _exit or by a signal.
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;

static void *allocate(void *unused) {
    while (!stop) {
        volatile char *block = malloc(400000);
        block[0] = 1;
        free((void *)block);
        usleep(10);
    }
    return unused;
}

int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, allocate, NULL);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        assert(child >= 0);
        if (child == 0) {
            volatile char *block = malloc(500000 + i);
            block[0] = 2;
            free((void *)block);
            if (i % 3 == 0) exit(i);
            if (i % 3 == 1) _exit(i);
            raise(SIGTERM);
        }
        int status;
        assert(waitpid(child, &status, 0) == child);
        if (i % 3 == 2) assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        else assert(WIFEXITED(status) && WEXITSTATUS(status) == i);
    }
    stop = 1;
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    puts("forks");
    return 0;
}
