// What must go wrong, and how.
#include "common.h"
#include <cassert>
#include <csetjmp>
#include <csignal>
#include <unistd.h>

__global__ void set(int *to, int value) { *to = value; }
__global__ void traps() { __trap(); }
__global__ void asserts(int x) { assert(x == 1); }
__global__ void spin(int *sink, long long rounds) {
    int x = 0;
    for (long long i = 0; i < rounds; ++i) x = x * 1664525 + 1013904223 + int(i);
    *sink = x;
}

static sigjmp_buf back;
static void *fault_address;
static void on_fault(int, siginfo_t *info, void *) {
    fault_address = info->si_addr;
    siglongjmp(back, 1);
}
// Whether reading `address` is a SIGSEGV at that address.
static bool faults(const volatile int *address) {
    struct sigaction action = {}, old;
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &old);
    bool result = false;
    if (sigsetjmp(back, 1) == 0) (void)*address;
    else result = fault_address == (const void *)address;
    sigaction(SIGSEGV, &old, nullptr);
    return result;
}

static void stays(cudaError_t error) {
    IS(error, cudaDeviceSynchronize());
    IS(error, cudaGetLastError());
    IS(error, cudaGetLastError());
    int *p;
    IS(error, cudaMalloc(&p, 10));
    IS(error, cudaStreamSynchronize(0));
    OK(cudaDeviceReset());
    OK(cudaGetLastError());
    OK(cudaMallocManaged(&p, sizeof *p));
    set<<<1, 1>>>(p, 4);
    OK(cudaDeviceSynchronize());
    EXPECT(*p == 4);
}
static void host_pointer_in_kernel() {
    int *pageable = static_cast<int *>(std::malloc(sizeof(int)));
    set<<<1, 1>>>(pageable, 1);
    stays(cudaErrorIllegalAddress);
}
static void stack_pointer_in_kernel() {
    int local = 0;
    set<<<1, 1>>>(&local, 1);
    stays(cudaErrorIllegalAddress);
}
static void null_in_kernel() {
    set<<<1, 1>>>(nullptr, 1);
    stays(cudaErrorIllegalAddress);
}
static void trap() {
    traps<<<1, 1>>>();
    stays(cudaErrorLaunchFailure);
}
static void failed_assert() {
    asserts<<<1, 1>>>(1);
    OK(cudaDeviceSynchronize());
    asserts<<<1, 1>>>(2);
    stays(cudaErrorAssert);
}
// The error of queued work comes with a later call, also with one that waits for something else.
static void error_of_queued_work() {
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    int host = 0, *device;
    OK(cudaMalloc(&device, sizeof(int)));
    set<<<1, 1, 0, stream>>>(&host, 1);
    IS(cudaErrorIllegalAddress, cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost));
}
static void device_pointer_on_host() {
    int *device;
    OK(cudaMalloc(&device, sizeof(int)));
    EXPECT(faults(device));
    std::fflush(stdout);
    *device = 1; // ends the program
}
static void freed_pointers_on_host() {
    int *managed, *pinned;
    OK(cudaMallocManaged(&managed, sizeof(int)));
    OK(cudaMallocHost(&pinned, sizeof(int)));
    EXPECT(!faults(managed) && !faults(pinned));
    OK(cudaFree(managed));
    OK(cudaFreeHost(pinned));
    EXPECT(faults(managed) && faults(pinned));
}

// Managed memory while the device works; prints whether the host's touch was a fault.
static void managed_during_kernel() {
    int *managed, *other, *sink;
    OK(cudaMallocManaged(&managed, sizeof(int)));
    OK(cudaMallocManaged(&other, 100000));
    OK(cudaMalloc(&sink, sizeof(int)));
    EXPECT(!faults(managed) && !faults(other));
    spin<<<1, 1>>>(sink, 1000); // touches no managed memory at all
    std::printf("during: %s\n", faults(managed) && faults(other + 20000) ? "fault" : "fine");
    int *late;
    OK(cudaMallocManaged(&late, sizeof(int)));
    std::printf("new: %s\n", faults(late) ? "fault" : "fine");
    OK(cudaDeviceSynchronize());
    EXPECT(!faults(managed) && !faults(other) && !faults(late));
}
// The wait must cover the work. In every run the same, however quick the device is.
static void managed_after_wrong_wait() {
    int *managed, *sink;
    OK(cudaMallocManaged(&managed, sizeof(int)));
    OK(cudaMalloc(&sink, sizeof(int)));
    cudaStream_t a, b;
    OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    cudaEvent_t early, late;
    OK(cudaEventCreate(&early));
    OK(cudaEventCreate(&late));
    OK(cudaEventRecord(early, a));
    set<<<1, 1, 0, a>>>(sink, 1);
    OK(cudaEventRecord(late, a));
    usleep(10000);
    EXPECT(faults(managed));
    OK(cudaStreamSynchronize(b));
    EXPECT(faults(managed));
    OK(cudaEventSynchronize(early));
    EXPECT(faults(managed));
    OK(cudaStreamWaitEvent(b, late, 0));
    EXPECT(faults(managed));
    OK(cudaStreamSynchronize(b)); // now it covers the work, by way of the event
    EXPECT(!faults(managed));
    set<<<1, 1, 0, a>>>(sink, 1);
    int got;
    OK(cudaMemcpy(&got, sink, sizeof got, cudaMemcpyDeviceToHost)); // the legacy stream ignores stream a
    EXPECT(faults(managed));
    OK(cudaEventSynchronize(late)); // that was before the second kernel
    EXPECT(faults(managed));
    OK(cudaDeviceSynchronize());
    EXPECT(!faults(managed));
    // The library itself may always.
    set<<<1, 1, 0, a>>>(sink, 1);
    got = 77;
    OK(cudaMemcpy(managed, &got, sizeof got, cudaMemcpyHostToDevice));
    got = 0;
    OK(cudaMemcpy(&got, managed, sizeof got, cudaMemcpyDeviceToHost));
    EXPECT(got == 77);
    EXPECT(faults(managed));
}
static void attached() {
    int *host_attached, *single, *global, *sink;
    OK(cudaMallocManaged(&host_attached, sizeof(int), cudaMemAttachHost));
    OK(cudaMallocManaged(&single, sizeof(int)));
    OK(cudaMallocManaged(&global, sizeof(int)));
    OK(cudaMalloc(&sink, sizeof(int)));
    cudaStream_t a, b;
    OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    OK(cudaStreamAttachMemAsync(a, single, 0, cudaMemAttachSingle));
    OK(cudaStreamSynchronize(a));
    set<<<1, 1, 0, b>>>(sink, 1);
    EXPECT(!faults(host_attached) && !faults(single) && faults(global));
    set<<<1, 1, 0, a>>>(single, 9);
    EXPECT(!faults(host_attached) && faults(single) && faults(global));
    OK(cudaStreamSynchronize(a));
    EXPECT(!faults(single) && *single == 9 && faults(global));
    OK(cudaStreamAttachMemAsync(b, global, 0, cudaMemAttachHost));
    EXPECT(faults(global));
    OK(cudaStreamSynchronize(b));
    set<<<1, 1, 0, b>>>(sink, 1);
    EXPECT(!faults(global));
    IS(cudaErrorInvalidValue, cudaStreamAttachMemAsync(b, sink, 0, cudaMemAttachHost));
}
// Prints the process id of the device process, then waits to be killed.
static void wait_for_death() {
    int *p;
    OK(cudaMalloc(&p, 10));
    spin<<<1, 1>>>(p, 1ll << 60);
    std::printf("ready\n");
    std::fflush(stdout);
    if (fork() == 0) { // a child that outlives the program must not keep the device alive
        close(1);
        sleep(20);
        _exit(0);
    }
    sleep(60);
}
static void idle() {
    int *p;
    OK(cudaMalloc(&p, 10));
    set<<<1, 1>>>(p, 1);
    OK(cudaDeviceSynchronize());
    std::printf("ready\n");
    std::fflush(stdout);
    sleep(60);
}

// Somebody kills the device process.
static void device_killed() {
    int *p;
    OK(cudaMalloc(&p, sizeof *p));
    std::printf("ready\n");
    std::fflush(stdout);
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < 1000 && error == cudaSuccess; ++i) {
        set<<<1, 1>>>(p, i);
        error = cudaDeviceSynchronize();
        usleep(5000);
    }
    IS(cudaErrorUnknown, error);
    IS(cudaErrorUnknown, cudaDeviceSynchronize());
    OK(cudaDeviceReset());
    OK(cudaMalloc(&p, sizeof *p));
    set<<<1, 1>>>(p, 3);
    OK(cudaDeviceSynchronize());
}

MAIN(CASE(host_pointer_in_kernel), CASE(stack_pointer_in_kernel), CASE(null_in_kernel), CASE(trap), CASE(failed_assert),
     CASE(error_of_queued_work), CASE(device_pointer_on_host), CASE(freed_pointers_on_host), CASE(managed_during_kernel),
     CASE(managed_after_wrong_wait), CASE(attached), CASE(wait_for_death), CASE(idle), CASE(device_killed))
