// Ends in the way that its argument says, after three blocks of 700001 bytes.
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
    if (strcmp(how, "exec") == 0) {
        // In the environment it inherits, the next program would take the trace over.
        unsetenv("ECHO_DR_MODE");
        char *next[] = {"true", NULL};
        execv("/bin/true", next);
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
