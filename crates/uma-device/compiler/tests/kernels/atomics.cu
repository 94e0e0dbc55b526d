// Atomic operations on 32 and 64 bits.
typedef unsigned long long ull;

extern "C" __global__ void integers(const int *in, int *r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = in[i];
    atomicAdd(r + 0, v), atomicSub(r + 1, v), atomicMin(r + 2, v), atomicMax(r + 3, v);
    atomicAnd(r + 4, v), atomicOr(r + 5, v), atomicXor(r + 6, v);
    atomicMin((unsigned *)r + 7, (unsigned)v), atomicMax((unsigned *)r + 8, (unsigned)v);
    atomicInc((unsigned *)r + 9, 6), atomicDec((unsigned *)r + 10, 9);
    atomicAdd(r + 11, atomicExch(r + 12, v));
}
extern "C" __global__ void longs(const long long *in, ull *r, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long v = in[i];
    atomicAdd(r + 0, (ull)v), atomicMin((long long *)r + 1, v), atomicMax((long long *)r + 2, v);
    atomicAnd(r + 3, (ull)v), atomicOr(r + 4, (ull)v), atomicXor(r + 5, (ull)v);
    atomicAdd(r + 6, atomicExch(r + 7, (ull)v));
}
extern "C" __global__ void reals(const float *in, float *f, double *d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(f, in[i]);
    atomicAdd(d, (double)in[i]);
}
// Products by compare-and-swap.
extern "C" __global__ void swaps(const unsigned *in, unsigned *r, ull *s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned old = *r, assumed;
    do assumed = old, old = atomicCAS(r, assumed, assumed * in[i]);
    while (old != assumed);
    ull wide = *s, before;
    do before = wide, wide = atomicCAS(s, before, before * in[i]);
    while (wide != before);
}
extern "C" __global__ void histogram(const unsigned char *in, unsigned *bins, int n) {
    __shared__ unsigned local[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd_block(&local[in[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&bins[b], local[b]);
}
// The last block to finish adds up what the others wrote before their fences.
extern "C" __global__ void last_block(const int *in, int *part, unsigned *done, int *total) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        part[blockIdx.x] = in[blockIdx.x];
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < gridDim.x; i++) sum += part[i];
        *total = sum;
    }
}
