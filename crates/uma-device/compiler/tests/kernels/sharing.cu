// Shared memory, barriers, constant memory and device variables.

extern "C" __global__ void reversed(const int *in, int *out) {
    __shared__ int tile[256];
    int t = threadIdx.x, base = blockIdx.x * blockDim.x;
    tile[t] = in[base + t];
    __syncthreads();
    out[base + t] = tile[blockDim.x - 1 - t];
}

// Two static variables with different alignments and a dynamic one after them.
extern "C" __global__ void layout(const double *in, double *out) {
    __shared__ char first[3];
    __shared__ double second[32];
    extern __shared__ double dynamic[];
    int t = threadIdx.x;
    if (t < 3) first[t] = (char)(t + 1);
    second[t] = in[t];
    dynamic[t] = 2 * in[t];
    __syncthreads();
    int other = (t + 1) % blockDim.x;
    out[t] = first[t % 3] + second[other] + dynamic[other];
}

__device__ float block_sum(float value) {
    __shared__ float part[256];
    part[threadIdx.x] = value;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    return part[0];
}
extern "C" __global__ void sums(const float *in, float *out) {
    __shared__ float other[64];
    other[threadIdx.x % 64] = 0;
    float sum = block_sum(in[blockIdx.x * blockDim.x + threadIdx.x]);
    if (threadIdx.x == 0) out[blockIdx.x] = sum + other[0];
}
extern "C" __global__ void squares(const float *in, float *out) {
    float x = in[blockIdx.x * blockDim.x + threadIdx.x];
    float sum = block_sum(x * x);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// Barriers that threads pass different numbers of times: some have left.
extern "C" __global__ void leaving(int *out) {
    __shared__ int step;
    for (int i = 0; i < blockDim.x; i++) {
        if (threadIdx.x == i) {
            step = i;
            out[i] = step;
            return;
        }
        __syncthreads();
    }
}

extern "C" __global__ void votes(const int *in, int *out) {
    int p = in[blockIdx.x * blockDim.x + threadIdx.x];
    int count = __syncthreads_count(p > 0), all = __syncthreads_and(p > 0), any = __syncthreads_or(p > 0);
    if (threadIdx.x == blockDim.x - 1) out[3 * blockIdx.x] = count, out[3 * blockIdx.x + 1] = all != 0, out[3 * blockIdx.x + 2] = any != 0;
}

__constant__ float coefficients[4] = {0.5f, 1.5f, 2.5f, 3.5f};
__device__ int counter = 40;
__device__ float zeroed[100];
static __device__ int hidden_counter;
__device__ const char *const names[2] = {"even", "odd"};
extern "C" __global__ void globals(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&counter, 1);
    atomicAdd(&hidden_counter, 2);
    out[i] = coefficients[i % 4] * in[i] + zeroed[i % 100];
    if (i == 0) zeroed[99] = 7;
}
extern "C" __global__ void hidden(int *out) { *out = hidden_counter; }
extern "C" __global__ void named(char *out) { out[threadIdx.x] = names[threadIdx.x % 2][threadIdx.x / 2]; }
__device__ int never_used = 5;

extern "C" __global__ void matrix_product(const float *a, const float *b, float *c, int n) {
    __shared__ float as[16][16], bs[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        as[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
        __syncthreads();
        for (int j = 0; j < 16; j++) sum += as[threadIdx.y][j] * bs[j][threadIdx.x];
        __syncthreads();
    }
    c[y * n + x] = sum;
}

extern "C" __global__ void is_shared(int *out, int *global) {
    __shared__ int inside;
    int local = threadIdx.x;
    out[0] = __isShared(&inside), out[1] = __isShared(global), out[2] = __isShared(&local);
}
