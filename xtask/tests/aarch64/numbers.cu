// Where the two CPUs could differ: rounding modes, conversions that saturate, shuffles, shared memory behind a barrier, printing.
#include <cmath>
#include <cstdio>
#include <cstring>

constexpr int N = 64;

__global__ void numbers(const float *in, double *out) {
    __shared__ float row[N];
    int i = threadIdx.x;
    row[i] = in[i];
    __syncthreads();
    float a = row[i], b = row[N - 1 - i] + 0.1f;
    double *mine = out + 12 * i;
    mine[0] = __fadd_rd(a, b);
    mine[1] = __fadd_ru(a, b);
    mine[2] = __fadd_rz(a, b);
    mine[3] = __fdiv_rn(a, b);
    mine[4] = __fdiv_ru(a, b);
    mine[5] = __double2float_rd(1.0 / (i + 3));
    mine[6] = __float2int_rz(a * 1e9f);
    mine[7] = __float2uint_rn(-a * 1e9f);
    mine[8] = __shfl_xor_sync(0xffffffffu, a, 5);
    mine[9] = __popc(__float_as_int(a)) + __clz(i);
    mine[10] = fmaf(a, b, -a);
    mine[11] = sqrtf(fabsf(a)) + rsqrtf(1.0f + i);
    if (i == N - 1) printf("thread %d of %d\n", i, blockDim.x);
}

int main() {
    float in[N], *d_in;
    double out[12 * N], *d_out;
    for (int i = 0; i < N; i++) in[i] = (i - 20) * 1.7f;
    if (cudaMalloc(&d_in, sizeof in) || cudaMalloc(&d_out, sizeof out)) return 1;
    cudaMemcpy(d_in, in, sizeof in, cudaMemcpyHostToDevice);
    numbers<<<1, N>>>(d_in, d_out);
    if (cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost)) return 2;
    for (int i = 0; i < 12 * N; i++) {
        unsigned long long bits;
        std::memcpy(&bits, &out[i], sizeof bits);
        std::printf("%016llx%c", bits, i % 12 == 11 ? '\n' : ' ');
    }
}
