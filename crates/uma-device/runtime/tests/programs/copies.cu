// Copies and memsets of every kind, with random data.
#include "common.h"

__device__ unsigned char symbol[3000];
__constant__ int table[16];

__global__ void add_one(unsigned char *data, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] += 1;
}
__global__ void read_table(int *out) { out[threadIdx.x] = table[threadIdx.x]; }

enum Kind { PAGEABLE, PINNED, REGISTERED, MANAGED, DEVICE };

struct Buffer {
    Kind kind;
    unsigned char *data;
    size_t size;
    Buffer(Kind kind, size_t size) : kind(kind), data(nullptr), size(size) {
        void *p = nullptr;
        switch (kind) {
        case PAGEABLE: p = std::malloc(size); break;
        case PINNED: OK(cudaMallocHost(&p, size)); break;
        case REGISTERED:
            p = std::malloc(size);
            OK(cudaHostRegister(p, size, cudaHostRegisterDefault));
            break;
        case MANAGED: OK(cudaMallocManaged(&p, size)); break;
        case DEVICE: OK(cudaMalloc(&p, size)); break;
        }
        data = static_cast<unsigned char *>(p);
    }
    ~Buffer() {
        switch (kind) {
        case REGISTERED: OK(cudaHostUnregister(data)); // fall through
        case PAGEABLE: std::free(data); break;
        case PINNED: OK(cudaFreeHost(data)); break;
        default: OK(cudaFree(data));
        }
    }
    bool on_host() const { return kind != DEVICE; }
    // Through a way that no case tests by itself: pinned memory and a kernel-free device copy.
    void set(const std::vector<unsigned char> &bytes) {
        OK(cudaDeviceSynchronize());
        if (on_host()) std::memcpy(data, bytes.data(), size);
        else OK(cudaMemcpy(data, bytes.data(), size, cudaMemcpyHostToDevice));
        OK(cudaDeviceSynchronize());
    }
    std::vector<unsigned char> get() {
        OK(cudaDeviceSynchronize());
        std::vector<unsigned char> bytes(size);
        if (on_host()) std::memcpy(bytes.data(), data, size);
        else OK(cudaMemcpy(bytes.data(), data, size, cudaMemcpyDeviceToHost));
        return bytes;
    }
};

static cudaMemcpyKind kind_of(const Buffer &from, const Buffer &to) {
    if (from.on_host()) return to.on_host() ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return to.on_host() ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

static void every_pair() {
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    for (size_t size : {1ul, 4099ul, 300001ul}) {
        for (int f = PAGEABLE; f <= DEVICE; ++f) {
            for (int t = PAGEABLE; t <= DEVICE; ++t) {
                Buffer from(Kind(f), size), to(Kind(t), size);
                for (int way = 0; way < 4; ++way) {
                    auto bytes = random_bytes(size);
                    from.set(bytes);
                    to.set(random_bytes(size));
                    auto kind = way % 2 ? cudaMemcpyDefault : kind_of(from, to);
                    if (way < 2) OK(cudaMemcpy(to.data, from.data, size, kind));
                    else OK(cudaMemcpyAsync(to.data, from.data, size, kind, stream));
                    OK(cudaStreamSynchronize(stream));
                    EXPECT(to.get() == bytes);
                }
            }
        }
    }
    OK(cudaStreamDestroy(stream));
}

static void two_dimensions() {
    size_t width = 97, height = 13, host_pitch = 200, pitch;
    unsigned char *device;
    OK(cudaMallocPitch(&device, &pitch, width, height));
    EXPECT(pitch >= width && pitch % 512 == 0);
    auto source = random_bytes(host_pitch * height);
    auto target = random_bytes(host_pitch * height);
    auto before = target;
    OK(cudaMemcpy2D(device, pitch, source.data(), host_pitch, width, height, cudaMemcpyHostToDevice));
    OK(cudaMemset2D(device + pitch, pitch, 0x5A, 7, 2));
    OK(cudaMemcpy2DAsync(target.data(), host_pitch, device, pitch, width, height, cudaMemcpyDeviceToHost, 0));
    OK(cudaDeviceSynchronize());
    for (size_t y = 0; y < height; ++y) {
        for (size_t x = 0; x < host_pitch; ++x) {
            bool set = (y == 1 || y == 2) && x < 7;
            unsigned char expected = x >= width ? before[y * host_pitch + x] : set ? 0x5A : source[y * host_pitch + x];
            EXPECT(target[y * host_pitch + x] == expected);
        }
    }
    IS(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, pitch, source.data(), width - 1, width, height, cudaMemcpyHostToDevice));
    OK(cudaFree(device));
}

static void three_dimensions() {
    cudaExtent extent = make_cudaExtent(20, 6, 5);
    cudaPitchedPtr device;
    OK(cudaMalloc3D(&device, extent));
    auto source = random_bytes(20 * 6 * 5);
    std::vector<unsigned char> target(20 * 6 * 5);
    cudaMemcpy3DParms in = {};
    in.srcPtr = make_cudaPitchedPtr(source.data(), 20, 20, 6);
    in.dstPtr = device;
    in.extent = extent;
    in.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&in));
    cudaMemcpy3DParms out = {};
    out.srcPtr = device;
    out.srcPos = make_cudaPos(3, 1, 2);
    out.dstPtr = make_cudaPitchedPtr(target.data(), 20, 20, 6);
    out.extent = make_cudaExtent(10, 4, 3);
    out.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3DAsync(&out, 0));
    OK(cudaDeviceSynchronize());
    for (int z = 0; z < 3; ++z)
        for (int y = 0; y < 4; ++y)
            for (int x = 0; x < 10; ++x)
                EXPECT(target[(z * 6 + y) * 20 + x] == source[((z + 2) * 6 + y + 1) * 20 + x + 3]);
    OK(cudaMemset3D(device, 9, extent));
    OK(cudaMemcpy3D(&out));
    EXPECT(target[0] == 9 && target[(2 * 6 + 3) * 20 + 9] == 9);
    OK(cudaFree(device.ptr));
}

static void symbols() {
    auto bytes = random_bytes(3000);
    std::vector<unsigned char> back(3000);
    OK(cudaMemcpyToSymbol(symbol, bytes.data(), 3000));
    void *address;
    size_t size;
    OK(cudaGetSymbolAddress(&address, symbol));
    OK(cudaGetSymbolSize(&size, symbol));
    EXPECT(size == 3000);
    OK(cudaMemcpy(back.data(), address, 3000, cudaMemcpyDeviceToHost));
    EXPECT(back == bytes);
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    OK(cudaMemcpyToSymbolAsync(symbol, bytes.data() + 100, 50, 7, cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyFromSymbolAsync(back.data(), symbol, 60, 0, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT(std::memcmp(back.data(), bytes.data(), 7) == 0 && std::memcmp(back.data() + 7, bytes.data() + 100, 50) == 0);
    IS(cudaErrorInvalidValue, cudaMemcpyToSymbol(symbol, bytes.data(), 10, 2995));
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpyToSymbol(symbol, bytes.data(), 10, 0, cudaMemcpyDeviceToHost));
    int other;
    IS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, &other));

    int values[16], *out;
    for (int &value : values) value = int(generator()());
    OK(cudaMemcpyToSymbol(table, values, sizeof values));
    OK(cudaMallocManaged(&out, sizeof values));
    read_table<<<1, 16>>>(out);
    OK(cudaDeviceSynchronize());
    EXPECT(std::memcmp(out, values, sizeof values) == 0);
    OK(cudaFree(out));
}

static void memsets() {
    Buffer device(DEVICE, 5000), managed(MANAGED, 5000), pinned(PINNED, 5000);
    OK(cudaMemset(device.data, 0x11, 5000));
    OK(cudaMemsetAsync(device.data + 100, 0x122, 50, 0)); // only the low byte counts
    auto bytes = device.get();
    EXPECT(bytes[99] == 0x11 && bytes[100] == 0x22 && bytes[149] == 0x22 && bytes[150] == 0x11);
    // Synchronous for these two: no wait is needed.
    OK(cudaMemset(managed.data, 3, 5000));
    EXPECT(managed.data[0] == 3 && managed.data[4999] == 3);
    OK(cudaMemset(pinned.data, 4, 5000));
    EXPECT(pinned.data[0] == 4 && pinned.data[4999] == 4);
    unsigned char local[4];
    IS(cudaErrorInvalidValue, cudaMemset(local, 0, 4));
    IS(cudaErrorInvalidValue, cudaMemset(device.data, 0, 5001));
}

// What asynchronous copies promise about pageable memory: the source may be changed at once, the target is complete at return.
static void pageable_async() {
    const int count = 1 << 20;
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    Buffer device(DEVICE, count);
    auto bytes = random_bytes(count);
    auto source = bytes;
    OK(cudaMemcpyAsync(device.data, source.data(), count, cudaMemcpyHostToDevice, stream));
    std::fill(source.begin(), source.end(), 0);
    add_one<<<(count + 255) / 256, 256, 0, stream>>>(device.data, count);
    std::vector<unsigned char> target(count);
    OK(cudaMemcpyAsync(target.data(), device.data, count, cudaMemcpyDeviceToHost, stream));
    for (int i = 0; i < count; ++i) EXPECT(target[i] == (unsigned char)(bytes[i] + 1));
    OK(cudaStreamDestroy(stream));
}

static void bad_arguments() {
    Buffer device(DEVICE, 100), pinned(PINNED, 100);
    unsigned char local[100] = {};
    IS(cudaErrorInvalidValue, cudaMemcpy(device.data, local, 101, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidValue, cudaMemcpy(device.data + 1, local, 100, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidValue, cudaMemcpy(local, device.data, 10, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidValue, cudaMemcpy(local, local + 50, 10, cudaMemcpyDeviceToDevice));
    IS(cudaErrorInvalidValue, cudaMemcpy(device.data, nullptr, 10, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(device.data, local, 10, cudaMemcpyKind(9)));
    IS(cudaErrorInvalidMemcpyDirection, cudaGetLastError());
    OK(cudaGetLastError());
    OK(cudaMemcpy(device.data, local, 0, cudaMemcpyHostToDevice));
    void *freed;
    OK(cudaMalloc(&freed, 100));
    OK(cudaFree(freed));
    IS(cudaErrorInvalidValue, cudaMemcpy(freed, local, 10, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidValue, cudaFree(freed));
    IS(cudaErrorInvalidResourceHandle, cudaMemcpyAsync(device.data, local, 10, cudaMemcpyHostToDevice, cudaStream_t(0x77777)));
}

// Where the host can see the target, or names no direction for managed memory, a synchronous copy is complete at return.
static void managed_sync() {
    Buffer managed(MANAGED, 100000), device(DEVICE, 100000), pinned(PINNED, 100000);
    auto bytes = random_bytes(100000), others = random_bytes(100000);
    OK(cudaMemcpy(managed.data, bytes.data(), 100000, cudaMemcpyHostToDevice));
    EXPECT(std::memcmp(managed.data, bytes.data(), 100000) == 0);
    OK(cudaMemcpy(device.data, others.data(), 100000, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(managed.data, device.data, 100000, cudaMemcpyDefault));
    EXPECT(std::memcmp(managed.data, others.data(), 100000) == 0);
    OK(cudaMemcpy(pinned.data, bytes.data(), 100000, cudaMemcpyHostToDevice));
    EXPECT(std::memcmp(pinned.data, bytes.data(), 100000) == 0);
}

MAIN(CASE(every_pair), CASE(two_dimensions), CASE(three_dimensions), CASE(symbols), CASE(memsets), CASE(pageable_async),
     CASE(bad_arguments), CASE(managed_sync))
