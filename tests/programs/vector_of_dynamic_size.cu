// EXPECT h * accept
// std::vector on the host, whose size is known only at run time; an owning class on the device.
#include "common.h"
#include <vector>
template <class T> class DeviceBuffer {
  public:
    explicit DeviceBuffer(size_t count) : bytes_(count * sizeof(T)) { CHECK(cudaMalloc(&data_, bytes_)); }
    ~DeviceBuffer() { cudaFree(data_); }
    DeviceBuffer(const DeviceBuffer &) = delete;
    DeviceBuffer &operator=(const DeviceBuffer &) = delete;
    void upload(const T *from) { CHECK(cudaMemcpy(data_, from, bytes_, cudaMemcpyHostToDevice)); }
    void download(T *to) const { CHECK(cudaMemcpy(to, data_, bytes_, cudaMemcpyDeviceToHost)); }
    T *get() { return data_; }

  private:
    T *data_ = nullptr;
    size_t bytes_;
};
int main(int argc, char **argv) {
    int n = size_argument(argc, argv, 100000);
    std::vector<float> h(n);
    for (int i = 0; i < n; i++) h[i] = i;
    DeviceBuffer<float> d(n);
    d.upload(h.data());
    twice<<<blocks(n), BLOCK>>>(d.get(), n);
    d.download(h.data());
    print_sum("h", h.data(), n * sizeof(float));
}
