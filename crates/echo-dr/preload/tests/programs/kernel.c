// As pair.c; what touches the host buffer is the kernel, by a system call of the kind that the argument names. Each checks that it got what it asked
// for: the program must never see that pages were closed.
#define _GNU_SOURCE
#include <aio.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <net/if.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pair.h"

#define BYTES 1000000
#define ROUNDS 5
#define SOME 5000
#define MUCH 300000

static unsigned char *h;
static const char *what;
static unsigned char pattern[MUCH];
static int fds[2];

static int is(const char *name) {
    return strcmp(what, name) == 0;
}

static struct iovec vectors[2];

// Vectors for SOME bytes of h in two pieces.
static const struct iovec *pieces(void) {
    vectors[0] = (struct iovec){h + 100, 1000};
    vectors[1] = (struct iovec){h + 20000, SOME - 1000};
    return vectors;
}

static void have(const unsigned char *at, size_t bytes, const unsigned char *expected) {
    for (size_t i = 0; i < bytes; i++) assert(at[i] == expected[i]);
}

static void have_pieces(void) {
    have(h + 100, 1000, pattern);
    have(h + 20000, SOME - 1000, pattern + 1000);
}

static int file_with_pattern(void) {
    char name[] = "/tmp/echo-dr-kernel-XXXXXX";
    int fd = mkstemp(name);
    assert(fd >= 0 && unlink(name) == 0);
    assert(write(fd, pattern, MUCH) == MUCH && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

// What is written must be read back through another door.
static void wrote(int fd, size_t bytes, unsigned char value) {
    static unsigned char back[MUCH];
    assert(pread(fd, back, bytes, 0) == (ssize_t)bytes);
    for (size_t i = 0; i < bytes; i++) assert(back[i] == value);
}

static struct mmsghdr message(void) {
    pieces();
    struct mmsghdr all = {.msg_hdr = {.msg_iov = vectors, .msg_iovlen = 2}};
    return all;
}

static void synchronous_reads(void) {
    int fd = file_with_pattern();
    if (is("pread")) assert(pread(fd, h + 100, SOME, 0) == SOME), have(h + 100, SOME, pattern);
    if (is("readv")) assert(readv(fd, pieces(), 2) == SOME), have_pieces();
    if (is("preadv")) assert(preadv(fd, pieces(), 2, 0) == SOME), have_pieces();
    if (is("preadv2")) assert(preadv2(fd, pieces(), 2, 0, 0) == SOME), have_pieces();
    if (is("syscall-read")) assert(syscall(SYS_read, fd, h, SOME) == SOME), have(h, SOME, pattern);
    if (is("syscall-preadv2")) assert(syscall(SYS_preadv2, fd, pieces(), 2, 0, 0, 0) == SOME), have_pieces();
    if (is("getrandom")) assert(getrandom(h, 100, 0) == 100);
    if (is("getentropy")) assert(getentropy(h + BYTES - 100, 100) == 0);
    if (is("readlink")) assert(readlink("/proc/self/exe", (char *)h, 4000) > 0 && h[0] == '/');
    if (is("ioctl")) assert(ioctl(fd, FIONREAD, h) == 0 && *(int *)h == MUCH);
    if (is("vm-readv")) {
        struct iovec theirs = {pattern, SOME};
        assert(process_vm_readv(getpid(), pieces(), 2, &theirs, 1, 0) == SOME);
        have_pieces();
    }
    if (is("vm-writev-to-self")) {
        struct iovec mine = {pattern, SOME};
        assert(process_vm_writev(getpid(), &mine, 1, pieces(), 2, 0) == SOME);
        have_pieces();
    }
    if (is("recvmsg") || is("recvmmsg") || is("syscall-recvfrom")) {
        assert(send(fds[0], pattern, SOME, 0) == SOME);
        struct mmsghdr all = message();
        if (is("recvmsg")) assert(recvmsg(fds[1], &all.msg_hdr, 0) == SOME), have_pieces();
        if (is("recvmmsg")) assert(recvmmsg(fds[1], &all, 1, 0, NULL) == 1 && all.msg_len == SOME), have_pieces();
        if (is("syscall-recvfrom")) assert(syscall(SYS_recvfrom, fds[1], h, SOME, 0, 0, 0) == SOME), have(h, SOME, pattern);
    }
    if (is("msgrcv")) {
        int queue = msgget(IPC_PRIVATE, 0600);
        struct { long kind; char text[100]; } out = {1, "a message"};
        assert(queue >= 0 && msgsnd(queue, &out, 100, 0) == 0);
        assert(msgrcv(queue, h, 100, 0, 0) == 100 && strcmp((char *)h + sizeof(long), "a message") == 0);
        msgctl(queue, IPC_RMID, NULL);
    }
    if (is("fread-unlocked")) {
        FILE *file = fdopen(dup(fd), "rb");
        assert(fread_unlocked(h, 1, MUCH, file) == MUCH);
        have(h, MUCH, pattern);
        fclose(file);
    }
    close(fd);
}

static void synchronous_writes(int value) {
    int fd = file_with_pattern();
    if (is("pwrite")) assert(pwrite(fd, h + 7, SOME, 0) == SOME), wrote(fd, SOME, value);
    if (is("pwritev2")) assert(pwritev2(fd, pieces(), 2, 0, 0) == SOME), wrote(fd, SOME, value);
    if (is("fwrite")) {
        FILE *file = fdopen(dup(fd), "wb");
        assert(fwrite(h, 1, MUCH, file) == MUCH && fclose(file) == 0);
        wrote(fd, MUCH, value);
    }
    if (is("sendmmsg")) {
        struct mmsghdr all = message();
        unsigned char got[SOME];
        assert(sendmmsg(fds[0], &all, 1, 0) == 1 && all.msg_len == SOME);
        assert(recv(fds[1], got, SOME, 0) == SOME);
        for (int i = 0; i < SOME; i++) assert(got[i] == value);
    }
    if (is("vm-writev")) {
        static unsigned char out[SOME];
        struct iovec theirs = {out, SOME};
        assert(process_vm_writev(getpid(), pieces(), 2, &theirs, 1, 0) == SOME && out[SOME - 1] == value);
    }
    close(fd);
}

// Memory that the driver is told of by a structure which only it knows.
static void by_driver(void) {
    if (!is("ioctl-nested")) return;
    int interfaces = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifconf list = {.ifc_len = 4096, .ifc_buf = (char *)h};
    assert(interfaces >= 0 && ioctl(interfaces, SIOCGIFCONF, &list) == 0 && list.ifc_len > 0);
    assert(list.ifc_req[0].ifr_name[0] != 0);
    close(interfaces);
}

static void asynchronous(void) {
    int fd = file_with_pattern();
    struct aiocb request = {.aio_fildes = fd, .aio_buf = h, .aio_nbytes = SOME, .aio_lio_opcode = LIO_READ};
    struct aiocb *list[1] = {&request};
    if (is("aio")) {
        assert(aio_read(&request) == 0);
        while (aio_error(&request) == EINPROGRESS) usleep(100);
        assert(aio_return(&request) == SOME);
        have(h, SOME, pattern);
    }
    if (is("lio")) {
        assert(lio_listio(LIO_WAIT, list, 1, NULL) == 0 && aio_return(&request) == SOME);
        have(h, SOME, pattern);
    }
    if (is("kernel-aio")) {
        aio_context_t context = 0;
        assert(syscall(SYS_io_setup, 1, &context) == 0);
        struct iocb one = {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd, .aio_buf = (unsigned long)h, .aio_nbytes = SOME};
        struct iocb *all[1] = {&one};
        struct io_event event;
        assert(syscall(SYS_io_submit, context, 1, all) == 1);
        assert(syscall(SYS_io_getevents, context, 1, 1, &event, NULL) == 1 && event.res == SOME);
        have(h, SOME, pattern);
        syscall(SYS_io_destroy, context);
    }
    if (is("vmsplice")) {
        struct iovec piece = {h, SOME};
        int pipes[2];
        unsigned char got[SOME];
        assert(pipe(pipes) == 0 && vmsplice(pipes[1], &piece, 1, 0) == SOME && read(pipes[0], got, SOME) == SOME);
    }
    if (is("setvbuf")) {
        FILE *file = fdopen(dup(fd), "rb");
        assert(setvbuf(file, (char *)h, _IOFBF, 8192) == 0);
        char line[100];
        assert(fread(line, 1, 100, file) == 100);
        have((unsigned char *)line, 100, pattern);
        fclose(file);
    }
    close(fd);
}

// A ring that no hook sees being made.
static long by_instruction(long number, long a, long b) {
    long result;
#ifdef __x86_64__
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b) : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
    result = x0;
#endif
    return result;
}

static void rings(void) {
    char parameters[120] = {0};
    if (is("ring")) assert(syscall(SYS_io_uring_setup, 4, parameters) >= 0);
    if (is("ring-unseen")) assert(by_instruction(SYS_io_uring_setup, 4, (long)parameters) >= 0);
}

static void pages_change(int round) {
    void *page = (void *)(((unsigned long)h + 8191) / 4096 * 4096);
    if (is("mprotect")) assert(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
    if (is("dontneed")) assert(madvise(page, 4096, MADV_DONTNEED) == 0);
    if (is("hugepage")) madvise(page, 4096 * 64, MADV_HUGEPAGE);
    if (is("mlock")) assert(mlock(page, 4096) == 0);
    if (is("fixed")) {
        void *got = mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        assert(got == page);
    }
    (void)round;
}

// A call that is under way when the window opens.
static volatile int thread_number;
static int is_late;

static void *late_call(void *unused) {
    thread_number = (int)syscall(SYS_gettid);
    if (is("late-read")) assert(read(fds[1], h, SOME) == SOME), have(h, SOME, pattern);
    if (is("late-recv")) assert(recv(fds[1], h, SOME, 0) == SOME), have(h, SOME, pattern);
    if (is("late-fread")) {
        FILE *file = fdopen(fds[1], "rb");
        assert(fread(h, 1, MUCH, file) == MUCH);
        have(h, MUCH, pattern);
    }
    if (is("late-write")) assert(write(fds[0], h, MUCH) == MUCH);
    if (is("late-fwrite")) {
        FILE *file = fdopen(fds[0], "wb");
        assert(fwrite(h, 1, MUCH, file) == MUCH && fflush(file) == 0);
    }
    if (is("late-cancelled")) {
        (void)!read(fds[1], h, SOME);
        assert(0);
    }
    return unused;
}

static void until_in_kernel(void) {
    char path[100], text[100];
    for (;;) {
        while (thread_number == 0) usleep(100);
        snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread_number);
        FILE *file = fopen(path, "r");
        long number = file && fgets(text, sizeof text, file) && text[0] >= '0' && text[0] <= '9' ? atol(text) : -1;
        if (file) fclose(file);
        if (number == SYS_read || number == SYS_write || number == SYS_recvfrom) return;
        usleep(100);
    }
}

static void finish_late_call(pthread_t thread, int value) {
    if (is("late-cancelled")) {
        void *result;
        assert(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        return;
    }
    if (is("late-read") || is("late-recv")) assert(send(fds[0], pattern, SOME, 0) == SOME);
    if (is("late-fread")) assert(write(fds[0], pattern, MUCH) == MUCH);
    if (is("late-write") || is("late-fwrite")) {
        static unsigned char got[MUCH];
        for (size_t all = 0; all < MUCH;) {
            ssize_t some = read(fds[1], got + all, MUCH - all);
            assert(some > 0);
            all += some;
        }
        for (int i = 0; i < MUCH; i++) assert(got[i] == value);
    }
    assert(pthread_join(thread, NULL) == 0);
}

int main(int count, char **arguments) {
    assert(count == 2);
    what = arguments[1];
    is_late = strncmp(what, "late-", 5) == 0;
    for (int i = 0; i < MUCH; i++) pattern[i] = i * 7 + i / 251;
    // Datagrams can't be received twice; a stream is needed where one call does not take all.
    int stream = is("late-fread") || is("late-write") || is("late-fwrite");
    assert(socketpair(AF_UNIX, stream ? SOCK_STREAM : SOCK_DGRAM, 0, fds) == 0);
    begin();
    void *d, *scratch;
    h = malloc(BYTES);
    CHECK(device_alloc(&d, BYTES));
    CHECK(device_alloc(&scratch, BYTES));
    unsigned sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        memset(h, round, BYTES);
        pthread_t thread;
        if (is_late && round == 3) {
            assert(pthread_create(&thread, NULL, late_call, NULL) == 0);
            until_in_kernel();
        }
        CHECK(upload(d, h, BYTES));
        CHECK(work(scratch, round, BYTES));
        if (is_late && round == 3) finish_late_call(thread, round);
        if (round == 3) {
            synchronous_reads();
            synchronous_writes(round);
            by_driver();
            asynchronous();
            rings();
            pages_change(round);
        }
        CHECK(download(h, d, BYTES));
        for (int i = 0; i < BYTES; i += 999) sum = sum * 31 + h[i];
    }
    CHECK(synchronize());
    CHECK(device_free(d));
    CHECK(device_free(scratch));
    if (is("mlock")) munlock(h, BYTES);
    free(h);
    printf("%s %08x\n", what, sum);
    return 0;
}
