// Shuffles, votes and other operations of a warp.
const unsigned ALL = 0xffffffff;

extern "C" __global__ void shuffles(const int *in, int *out, int delta, int width) {
    int t = threadIdx.x, v = in[t], n = blockDim.x;
    out[t] = __shfl_up_sync(ALL, v, delta, width);
    out[n + t] = __shfl_down_sync(ALL, v, delta, width);
    out[2 * n + t] = __shfl_xor_sync(ALL, v, delta, width);
    out[3 * n + t] = __shfl_sync(ALL, v, delta, width);
}
extern "C" __global__ void wide_shuffles(const double *in, double *out, const float *fin, float *fout) {
    out[threadIdx.x] = __shfl_xor_sync(ALL, in[threadIdx.x], 5);
    fout[threadIdx.x] = __shfl_down_sync(ALL, fin[threadIdx.x], 3);
}
extern "C" __global__ void warp_sums(const float *in, float *out) {
    float v = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(ALL, v, d);
    if (threadIdx.x % 32 == 0) out[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = v;
}
extern "C" __global__ void ballots(const int *in, unsigned *out) {
    int t = threadIdx.x, p = in[t] > 0, n = blockDim.x;
    out[t] = __ballot_sync(ALL, p);
    out[n + t] = __all_sync(ALL, p), out[2 * n + t] = __any_sync(ALL, p), out[3 * n + t] = __uni_sync(ALL, p);
}
// Even and odd lanes meet in operations of their own.
extern "C" __global__ void halves(const int *in, int *out) {
    int t = threadIdx.x;
    if (t % 2) {
        out[t] = __shfl_xor_sync(0xaaaaaaaa, in[t], 2);
    } else {
        out[t] = __shfl_xor_sync(0x55555555, in[t], 4) + (int)__ballot_sync(0x55555555, in[t] > 0);
        __syncwarp(0x55555555);
    }
}
// Lanes that are gone do not hold up the others.
extern "C" __global__ void gone(int *out) {
    if (threadIdx.x >= 10) return;
    out[threadIdx.x] = (int)__ballot_sync(ALL, 1);
}
extern "C" __global__ void active(unsigned *out) {
    if (threadIdx.x % 3 == 0)
        out[threadIdx.x] = __activemask();
    else
        out[threadIdx.x] = __activemask() | 0;
}
extern "C" __global__ void matches(const int *in, unsigned *out, const long long *lin, unsigned *lout) {
    out[threadIdx.x] = __match_any_sync(ALL, in[threadIdx.x]);
    lout[threadIdx.x] = __match_any_sync(ALL, lin[threadIdx.x]);
}
extern "C" __global__ void reductions(const int *in, int *out) {
    int v = in[threadIdx.x];
    int r[8] = {(int)__reduce_add_sync(ALL, v), __reduce_min_sync(ALL, v), __reduce_max_sync(ALL, v), (int)__reduce_and_sync(ALL, v),
                (int)__reduce_or_sync(ALL, v), (int)__reduce_xor_sync(ALL, v), (int)__reduce_min_sync(ALL, (unsigned)v),
                (int)__reduce_max_sync(ALL, (unsigned)v)};
    for (int k = 0; k < 8; k++) out[8 * threadIdx.x + k] = r[k];
}
// Lane k writes, all read after the warp has met.
extern "C" __global__ void meets(int *out) {
    __shared__ int box;
    int sum = 0;
    for (int k = 0; k < 32; k++) {
        if (threadIdx.x == k) box = k * k;
        __syncwarp();
        sum += box;
        __syncwarp();
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void stuck() {
    if (threadIdx.x == 0)
        __syncthreads();
    else
        __shfl_sync(ALL, 1, 0);
}
extern "C" __global__ void wrong_mask() { __syncwarp(0x2); }
