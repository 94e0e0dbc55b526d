// One n-body step after another, all on the device; positions and velocities go in once and come back once. A program whose time is
// spent computing: the merge is right, and gains little.

#include <cstdio>
#include <memory>

#include "common/check.h"
#include "common/checksum.h"
#include "common/options.h"
#include "common/timer.h"

struct Body {
    float x, y, z, mass;
};

__global__ void velocities(const Body *body, float3 *velocity, float dt, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float fx = 0.0f, fy = 0.0f, fz = 0.0f;
    for (int j = 0; j < n; j++) {
        const float dx = body[j].x - body[i].x;
        const float dy = body[j].y - body[i].y;
        const float dz = body[j].z - body[i].z;
        const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
        const float pull = body[j].mass * inverse * inverse * inverse;
        fx += dx * pull;
        fy += dy * pull;
        fz += dz * pull;
    }
    velocity[i].x += dt * fx;
    velocity[i].y += dt * fy;
    velocity[i].z += dt * fz;
}

__global__ void positions(Body *body, const float3 *velocity, float dt, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    body[i].x += dt * velocity[i].x;
    body[i].y += dt * velocity[i].y;
    body[i].z += dt * velocity[i].z;
}

// Device memory that frees itself.
template <typename T>
class DeviceBuffer {
  public:
    explicit DeviceBuffer(size_t count) { CHECK(cudaMalloc(&data_, count * sizeof(T))); }
    ~DeviceBuffer() { cudaFree(data_); }
    DeviceBuffer(const DeviceBuffer &) = delete;
    DeviceBuffer &operator=(const DeviceBuffer &) = delete;
    T *get() const { return data_; }

  private:
    T *data_ = nullptr;
};

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "bodies", 16384, 1 << 20, 2);
    const int n = (int)options.size;

    std::unique_ptr<Body[]> bodies(new Body[n]);
    std::unique_ptr<float3[]> speeds(new float3[n]);
    unsigned int random = 12345;
    auto uniform = [&random] {
        random = random * 1664525u + 1013904223u;
        return (float)(random >> 8) / (float)(1 << 24) - 0.5f;
    };
    for (int i = 0; i < n; i++) {
        bodies[i] = {uniform(), uniform(), uniform(), 1.0f / n};
        speeds[i] = make_float3(0.0f, 0.0f, 0.0f);
    }

    DeviceBuffer<Body> d_bodies(n);
    DeviceBuffer<float3> d_speeds(n);
    Timer timer;
    CHECK(cudaMemcpy(d_bodies.get(), bodies.get(), n * sizeof(Body), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_speeds.get(), speeds.get(), n * sizeof(float3), cudaMemcpyHostToDevice));
    const int block = 128;
    const int grid = (n + block - 1) / block;
    for (int step = 0; step < options.iterations; step++) {
        velocities<<<grid, block>>>(d_bodies.get(), d_speeds.get(), 0.01f, n);
        positions<<<grid, block>>>(d_bodies.get(), d_speeds.get(), 0.01f, n);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaMemcpy(bodies.get(), d_bodies.get(), n * sizeof(Body), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(speeds.get(), d_speeds.get(), n * sizeof(float3), cudaMemcpyDeviceToHost));
    timer.report();

    const uint64_t hash = fnv1a(speeds.get(), n * sizeof(float3), fnv1a(bodies.get(), n * sizeof(Body)));
    printf("body 0 at %.6f %.6f %.6f, checksum %016llx\n", bodies[0].x, bodies[0].y, bodies[0].z, (unsigned long long)hash);
    return 0;
}
