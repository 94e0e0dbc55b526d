// A program that lives by its own SIGSEGV handler, on a stack of its own, and looks at what is installed.
#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile sig_atomic_t faults;
static char *page;

static void jumping(int signal) {
    (void)signal;
    faults++;
    siglongjmp(back, 1);
}

static void opening(int signal, siginfo_t *info, void *context) {
    (void)signal;
    (void)context;
    char here;
    stack_t stack;
    sigaltstack(NULL, &stack);
    assert(stack.ss_flags == SS_ONSTACK);
    assert(&here > (char *)stack.ss_sp && &here < (char *)stack.ss_sp + stack.ss_size);
    assert(info->si_addr == page + 5);
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    assert(sigismember(&mask, SIGUSR1));
    faults++;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

int main(void) {
    struct sigaction old, action;
    // What nobody has installed is the default.
    assert(sigaction(SIGSEGV, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
    assert(sigaction(SIGTERM, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
    assert(signal(SIGSEGV, jumping) == SIG_DFL);
    assert(sigaction(SIGSEGV, NULL, &old) == 0 && old.sa_handler == jumping);
    for (volatile int i = 0; i < 100; i++) {
        if (sigsetjmp(back, 1) == 0) *(volatile char *)16 = 1;
    }
    assert(faults == 100);

    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = opening;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaddset(&action.sa_mask, SIGUSR1);
    assert(sigaction(SIGSEGV, &action, &old) == 0 && old.sa_handler == jumping);
    page[5] = 7;
    assert(faults == 101 && page[5] == 7);

    // A handler for one time, then the default again, which ends the program.
    action.sa_handler = jumping;
    action.sa_flags = (int)SA_RESETHAND;
    assert(sigaction(SIGSEGV, &action, &old) == 0 && old.sa_sigaction == opening);
    if (sigsetjmp(back, 1) == 0) *(volatile char *)16 = 1;
    assert(faults == 102);
    assert(sigaction(SIGSEGV, NULL, &old) == 0 && old.sa_handler == SIG_DFL);
    assert(signal(SIGTERM, SIG_IGN) == SIG_DFL);
    raise(SIGTERM);
    free(malloc(500000));
    puts("own handler");
    fflush(stdout);
    *(volatile char *)16 = 1;
    return 0;
}
