// Ends in the way that its argument says, after three blocks of 700001 bytes.
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// A handler that returns: abort then ends the program all the same.
static void nothing(int signal) {
    (void)signal;
}

static char *environment[] = {"PATH=/bin:/usr/bin", NULL};
static char *next[] = {"true", NULL};

// Becomes another program. In the environment that it inherits, that would take the trace over.
static void become(const char *how) {
    unsetenv("ECHO_DR_MODE");
    if (strcmp(how, "execv") == 0) execv("/bin/true", next);
    if (strcmp(how, "execve") == 0) execve("/bin/true", next, environment);
    if (strcmp(how, "execvp") == 0) execvp("true", next);
    if (strcmp(how, "execvpe") == 0) execvpe("true", next, environment);
    if (strcmp(how, "execl") == 0) execl("/bin/sh", "sh", "-c", "exit $((1$1$2$3$4$5 - 112345))", "sh", "1", "2", "3", "4", "5", (char *)NULL);
    if (strcmp(how, "execle") == 0) execle("/bin/sh", "sh", "-c", "test $PATH = /bin:/usr/bin", (char *)NULL, environment);
    if (strcmp(how, "execlp") == 0) execlp("true", "true", (char *)NULL);
    if (strcmp(how, "exec-file") == 0) fexecve(open("/bin/true", O_RDONLY), next, environment);
    if (strcmp(how, "execveat") == 0) execveat(AT_FDCWD, "/bin/true", next, environment, 0);
    if (strcmp(how, "exec-syscall") == 0) syscall(SYS_execve, "/bin/true", next, environment);
}

int main(int count, char **arguments) {
    assert(count == 2);
    for (int i = 0; i < 3; i++) {
        volatile char *block = malloc(700001);
        block[0] = 1;
    }
    const char *how = arguments[1];
    if (strcmp(how, "return") == 0) return 0;
    if (strcmp(how, "exit") == 0) exit(0);
    if (strcmp(how, "_exit") == 0) _exit(0);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "segv") == 0) *(volatile char *)16 = 1;
    if (strcmp(how, "term") == 0) kill(getpid(), SIGTERM);
    if (strcmp(how, "_Exit") == 0) _Exit(0);
    if (strcmp(how, "quick_exit") == 0) quick_exit(0);
    if (strcmp(how, "exit_group") == 0) syscall(SYS_exit_group, 0);
    if (strcmp(how, "abort-handled") == 0) {
        signal(SIGABRT, nothing);
        abort();
    }
    if (strcmp(how, "prof") == 0) kill(getpid(), SIGPROF);
    if (strncmp(how, "exec", 4) == 0) become(how);
    if (strcmp(how, "spawn") == 0 || strcmp(how, "system") == 0) {
        int status;
        pid_t child;
        if (strcmp(how, "system") == 0) return system("exit 0");
        assert(posix_spawn(&child, "/bin/true", NULL, NULL, next, environment) == 0);
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    if (strcmp(how, "vfork-exec") == 0) {
        pid_t child = vfork();
        if (child == 0) execle("/bin/true", "true", (char *)NULL, environment);
        int status;
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    if (strcmp(how, "kill") == 0) {
        usleep(400000);
        kill(getpid(), SIGKILL);
    }
    if (strcmp(how, "vfork") == 0) {
        pid_t child = vfork();
        if (child == 0) _exit(9);
        int status;
        waitpid(child, &status, 0);
        assert(WEXITSTATUS(status) == 9);
        volatile char *block = malloc(700001);
        block[0] = 1;
        return 0;
    }
    return 1;
}
