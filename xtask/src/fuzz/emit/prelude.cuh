#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t status = (call);                                                                                   \
        if (status != cudaSuccess) {                                                                                   \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));                       \
            std::exit(99);                                                                                             \
        }                                                                                                              \
    } while (0)

#define CHECK_GOTO(call)                                                                                               \
    do {                                                                                                               \
        if ((call) != cudaSuccess) {                                                                                   \
            rc = 98;                                                                                                   \
            goto cleanup;                                                                                              \
        }                                                                                                              \
    } while (0)

static inline void check_throw(cudaError_t status, const char *what) {
    if (status != cudaSuccess) throw std::runtime_error(what);
}

#define APART __attribute__((noinline))

using Acc = unsigned long long;

static inline int blocks(int count) { return count > 0 ? (count + 63) / 64 : 1; }

template <class T> static inline void fill(T *p, int lo, int hi, Acc a, Acc c) {
    for (int i = lo; i < hi; i++) p[i] = T(i * a + c);
}
template <class T> static APART void fill_apart(T *p, int lo, int hi, Acc a, Acc c) {
    for (int i = lo; i < hi; i++) p[i] = T(i * a + c);
}
template <class T> static inline void update(T *p, int lo, int hi, Acc a, Acc c) {
    for (int i = lo; i < hi; i++) p[i] = T(p[i] * a + c);
}
template <class T> static APART void update_apart(T *p, int lo, int hi, Acc a, Acc c) {
    for (int i = lo; i < hi; i++) p[i] = T(p[i] * a + c);
}
template <class T> static inline Acc digest(const T *p, int lo, int hi, Acc acc) {
    for (int i = lo; i < hi; i++) acc = acc * 31 + p[i];
    return acc;
}
template <class T> static APART Acc digest_apart(const T *p, int lo, int hi, Acc acc) {
    for (int i = lo; i < hi; i++) acc = acc * 31 + p[i];
    return acc;
}
template <class T> static APART void copy_apart(T *to, const T *from, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = from[i];
}

template <class T> static inline T *device_new(size_t count) {
    T *p = nullptr;
    CHECK(cudaMalloc(&p, count * sizeof(T)));
    return p;
}

template <class T> class Device {
  public:
    explicit Device(size_t count) { CHECK(cudaMalloc(&data_, count * sizeof(T))); }
    ~Device() { cudaFree(data_); }
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    T *get() const { return data_; }

  private:
    T *data_ = nullptr;
};
