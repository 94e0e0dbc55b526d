// Order: streams, events, host functions, schedules.
#include "common.h"
#include <atomic>
#include <thread>
#include <unistd.h>

__global__ void append(int *log, int what) { log[++log[0]] = what; }
__global__ void add(int *value, int what) { *value += what; }
__global__ void spin(int *sink, long long rounds) {
    int x = 0;
    for (long long i = 0; i < rounds; ++i) x = x * 1664525 + 1013904223 + int(i);
    *sink = x;
}
__global__ void copy_value(int *to, const int *from) { *to = *from; }
__global__ void set(int *to, int value) { *to = value; }

template <class T> static T *device_zero(size_t count) {
    T *p;
    OK(cudaMalloc(&p, count * sizeof(T)));
    OK(cudaMemset(p, 0, count * sizeof(T)));
    OK(cudaDeviceSynchronize());
    return p;
}
static int fetch(const int *device) {
    int value;
    OK(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

// A slow kernel writes, then a fast one of another stream reads: the reader must see the write exactly where the rules say so.
static void order() {
    int *sink = device_zero<int>(1), *value = device_zero<int>(1), *seen = device_zero<int>(1);
    cudaStream_t blocking, other, free;
    OK(cudaStreamCreate(&blocking));
    OK(cudaStreamCreate(&other));
    OK(cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking));
    int next = 1;
    auto slow_write = [&](cudaStream_t stream) {
        spin<<<1, 1, 0, stream>>>(sink, 2000000);
        set<<<1, 1, 0, stream>>>(value, next);
    };
    auto read_in = [&](cudaStream_t stream) {
        copy_value<<<1, 1, 0, stream>>>(seen, value);
        OK(cudaStreamSynchronize(stream));
        int got;
        OK(cudaMemcpyAsync(&got, seen, sizeof got, cudaMemcpyDeviceToHost, stream));
        return got;
    };
    slow_write(blocking); // same stream
    EXPECT(read_in(blocking) == next++);
    slow_write(blocking); // legacy after blocking
    EXPECT(read_in(0) == next++);
    slow_write(0); // blocking after legacy
    EXPECT(read_in(blocking) == next++);
    slow_write(blocking); // blocking after blocking, by way of the legacy stream
    spin<<<1, 1>>>(sink, 1);
    EXPECT(read_in(other) == next++);
    slow_write(cudaStreamPerThread); // a thread's own stream is a blocking one
    EXPECT(read_in(cudaStreamLegacy) == next++);
    cudaEvent_t event; // an event orders streams that ignore each other
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    slow_write(blocking);
    OK(cudaEventRecord(event, blocking));
    OK(cudaStreamWaitEvent(free, event, 0));
    EXPECT(read_in(free) == next++);
    OK(cudaDeviceSynchronize());
    OK(cudaStreamDestroy(blocking));
    OK(cudaStreamDestroy(other));
    OK(cudaStreamDestroy(free));
    IS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(free));
}

// In the lazy schedule, work that nothing waits for does not run: the wait that is missing here shows.
static void missing_wait() {
    int *value, *device = device_zero<int>(1);
    OK(cudaMallocHost(&value, sizeof(int)));
    *value = 1;
    cudaStream_t stream, other;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    set<<<1, 1, 0, stream>>>(device, 2);
    OK(cudaMemcpyAsync(value, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(other)); // the wrong stream
    usleep(20000);
    std::printf("without wait: %d\n", *static_cast<volatile int *>(value));
    OK(cudaStreamSynchronize(stream));
    std::printf("with wait: %d\n", *static_cast<volatile int *>(value));
}

// A pageable copy that its stream's next work waits for, but another stream's does not.
static void staged_copy() {
    int *device = device_zero<int>(1), *seen = device_zero<int>(1), one = 1;
    cudaStream_t free;
    OK(cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking));
    OK(cudaMemcpy(device, &one, sizeof one, cudaMemcpyHostToDevice));
    copy_value<<<1, 1, 0, free>>>(seen, device);
    OK(cudaStreamSynchronize(free));
    int got;
    OK(cudaMemcpyAsync(&got, seen, sizeof got, cudaMemcpyDeviceToHost, free));
    std::printf("other stream saw %d\n", got);
    EXPECT(fetch(device) == 1);
}

// Three streams that nothing orders; prints the order in which their work ran.
static void interleaving() {
    int *log = device_zero<int>(64);
    cudaStream_t streams[3];
    for (auto &stream : streams) OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 36; ++i) append<<<1, 1, 0, streams[i % 3]>>>(log, i);
    OK(cudaDeviceSynchronize());
    int host[64];
    OK(cudaMemcpy(host, log, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT(host[0] == 36);
    int last[3] = {-1, -1, -1};
    for (int i = 1; i <= 36; ++i) {
        EXPECT(host[i] > last[host[i] % 3]);
        last[host[i] % 3] = host[i];
        std::printf("%d ", host[i]);
    }
    std::printf("\n");
}

static void events() {
    int *sink = device_zero<int>(1);
    cudaEvent_t a, b, untimed, unrecorded;
    OK(cudaEventCreate(&a));
    OK(cudaEventCreate(&b));
    OK(cudaEventCreate(&unrecorded));
    OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    float ms;
    IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, b));
    OK(cudaEventQuery(unrecorded));
    OK(cudaEventSynchronize(unrecorded));
    OK(cudaEventRecord(a, 0));
    spin<<<1, 1>>>(sink, 60000000);
    OK(cudaEventRecord(b, 0));
    OK(cudaEventRecord(untimed, 0));
    OK(cudaEventSynchronize(b));
    OK(cudaEventElapsedTime(&ms, a, b));
    EXPECT(ms > 0.5f && ms < 5000.f);
    float back;
    OK(cudaEventElapsedTime(&back, b, a));
    EXPECT(back == -ms);
    OK(cudaDeviceSynchronize());
    IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, untimed));
    // A query says "not yet" until the work is done, and the program may just go on asking.
    spin<<<1, 1>>>(sink, 200000000);
    OK(cudaEventRecord(b, 0));
    cudaGetLastError();
    int asked = 0;
    cudaError_t answer;
    while ((answer = cudaEventQuery(b)) == cudaErrorNotReady) ++asked;
    EXPECT(answer == cudaSuccess);
    // In the random schedule the first answer may already be yes.
    const char *schedule = std::getenv("UMA_DEVICE_SCHEDULE");
    EXPECT(asked > 0 || (schedule && std::strncmp(schedule, "random", 6) == 0));
    EXPECT(cudaGetLastError() == (asked > 0 ? cudaErrorNotReady : cudaSuccess));
    OK(cudaStreamQuery(0));
    OK(cudaEventDestroy(a));
    IS(cudaErrorInvalidResourceHandle, cudaEventRecord(a, 0));
    IS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&a, 0x80));
}

static void host_functions() {
    struct Data {
        std::atomic<int> step{0};
        int inside = -1;
        const int *value;
    } data;
    int *value;
    OK(cudaMallocHost(&value, sizeof(int)));
    *value = 0;
    data.value = value;
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    set<<<1, 1, 0, stream>>>(value, 5);
    OK(cudaLaunchHostFunc(stream, [](void *p) {
        auto &data = *static_cast<Data *>(p);
        data.inside = *data.value;
        usleep(2000);
        if (cudaDeviceSynchronize() == cudaErrorNotPermitted) data.step = 1;
    }, &data));
    set<<<1, 1, 0, stream>>>(value, 6);
    OK(cudaStreamAddCallback(stream, [](cudaStream_t, cudaError_t status, void *p) {
        auto &data = *static_cast<Data *>(p);
        if (status == cudaSuccess && data.step == 1 && *data.value == 6) data.step = 2;
    }, &data, 0));
    OK(cudaStreamSynchronize(stream));
    EXPECT(data.inside == 5);
    EXPECT(data.step == 2);
    // A program may wait for a host function by its own means.
    OK(cudaLaunchHostFunc(stream, [](void *p) { static_cast<Data *>(p)->step = 3; }, &data));
    while (data.step != 3) usleep(100);
}

static void two_threads() {
    int *value = device_zero<int>(2);
    auto work = [&](int index) {
        cudaStream_t stream;
        OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (int i = 0; i < 2000; ++i) {
            add<<<1, 1, 0, stream>>>(value + index, i);
            if (i % 100 == 0) OK(cudaStreamSynchronize(stream));
            if (i % 150 == 0) OK(cudaMemcpyAsync(&i, &i, sizeof i, cudaMemcpyHostToHost, stream));
        }
        OK(cudaStreamSynchronize(stream));
        OK(cudaStreamDestroy(stream));
    };
    std::thread a(work, 0), b(work, 1);
    a.join();
    b.join();
    EXPECT(fetch(value) == 2000 * 1999 / 2);
    EXPECT(fetch(value + 1) == 2000 * 1999 / 2);
}

static void many_streams() {
    int *value = device_zero<int>(1);
    for (int round = 0; round < 3; ++round) {
        std::vector<cudaStream_t> streams(600);
        for (auto &stream : streams) OK(cudaStreamCreate(&stream));
        for (auto &stream : streams) add<<<1, 1, 0, stream>>>(value, 1);
        for (auto &stream : streams) OK(cudaStreamDestroy(stream)); // with work still queued
    }
    OK(cudaDeviceSynchronize());
    EXPECT(fetch(value) == 1800);
}

// More commands than the ring holds, from one thread that never waits.
static void full_ring() {
    int *value = device_zero<int>(1);
    for (int i = 0; i < 30000; ++i) add<<<1, 1>>>(value, 1);
    EXPECT(fetch(value) == 30000);
}

static void stream_properties() {
    cudaStream_t stream;
    int least, greatest, priority;
    unsigned flags;
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(least == 0 && greatest < 0);
    OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 7));
    OK(cudaStreamGetPriority(stream, &priority));
    OK(cudaStreamGetFlags(stream, &flags));
    EXPECT(priority == greatest && flags == cudaStreamNonBlocking);
    unsigned long long id, other;
    OK(cudaStreamGetId(stream, &id));
    OK(cudaStreamGetId(0, &other));
    EXPECT(id != other);
    OK(cudaStreamDestroy(stream));
    IS(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&stream, 8));
}

// A synchronous copy on the default stream waits for blocking streams, so behind it the host may touch managed memory: also where the work was
// done long before the copy came.
static void copy_behind_finished_work() {
    int *value = device_zero<int>(1), *managed;
    OK(cudaMallocManaged(&managed, sizeof(int)));
    cudaStream_t blocking;
    OK(cudaStreamCreate(&blocking));
    set<<<1, 1, 0, blocking>>>(value, 7);
    usleep(50000);
    EXPECT(fetch(value) == 7);
    *managed = 1;
    set<<<1, 1, 0, cudaStreamPerThread>>>(value, 8);
    usleep(50000);
    EXPECT(fetch(value) == 8);
    EXPECT(++*managed == 2);
}

MAIN(CASE(order), CASE(missing_wait), CASE(staged_copy), CASE(interleaving), CASE(events), CASE(host_functions), CASE(two_threads),
     CASE(many_streams), CASE(full_ring), CASE(stream_properties),
     CASE(copy_behind_finished_work))
