// Coordinates, guards, device functions, templates, structures by value, local arrays, function pointers, recursion, virtual functions.

extern "C" __global__ void coordinates(int *out, int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < nx && y < ny && z < nz) out[(z * ny + y) * nx + x] = x + 1000 * y + 1000000 * z + gridDim.x * 7 + gridDim.y * 11 + gridDim.z * 13;
}

extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

template <typename T, int N> __device__ T polynomial(const T (&c)[N], T x) {
    T sum = c[N - 1];
    for (int i = N - 2; i >= 0; i--) sum = sum * x + c[i];
    return sum;
}
template <typename T> __global__ void evaluate(const T *x, T *y, int n) {
    const T c[4] = {1, 2, -3, 4};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = polynomial(c, x[i]);
}
template __global__ void evaluate<int>(const int *, int *, int);
template __global__ void evaluate<double>(const double *, double *, int);

struct Weights {
    int count;
    float w[5];
};
extern "C" __global__ void weighted(Weights p, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int k = 0; k < p.count; k++) sum += p.w[k] * x[(i + k) % n];
    y[i] = sum;
}
// Each thread changes its own copy of the parameter, at a place that only the thread knows.
extern "C" __global__ void changed(Weights p, const int *at, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    p.w[at[i] % 5] = -1;
    y[i] = p.w[0] + 2 * p.w[1] + 4 * p.w[2] + 8 * p.w[3] + 16 * p.w[4];
}
// A local array that stays in memory, and reads of what the same thread wrote.
extern "C" __global__ void sorted(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int local[8];
    for (int k = 0; k < 8; k++) local[k] = in[8 * i + k];
    for (int a = 1; a < 8; a++)
        for (int b = a; b > 0 && local[b - 1] > local[b]; b--) {
            int t = local[b];
            local[b] = local[b - 1], local[b - 1] = t;
        }
    for (int k = 0; k < 8; k++) out[8 * i + k] = local[k];
}
// The thread reads at q what it has just written at p; p and q are the same memory.
extern "C" __global__ void own_writes(int *p, const int *q, const int *at, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    p[2 * i] = at[i] * 3;
    int seen = q[2 * i];
    p[2 * i + 1] = seen + 1;
    p[2 * i] = q[2 * i + 1] * 2;
}
// The same without a guard, where LLVM would group the accesses two by two and move them past each other if it were let.
extern "C" __global__ void own_pairs(int *p, const int *q, const int *at, int *seen) {
    unsigned i = threadIdx.x;
    p[2 * i] = at[i] * 3;
    int first = q[2 * i];
    p[2 * i + 1] = first + 1;
    seen[i] = q[2 * i + 1];
}

__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
__device__ int negate(int x) { return -x; }
extern "C" __global__ void chosen(const int *in, int *out, int n) {
    int (*const table[3])(int) = {twice, square, negate};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[in[i] % 3](in[i]) + threadIdx.x;
}

__device__ __noinline__ unsigned long long fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2) + (threadIdx.x & 0); }
extern "C" __global__ void recursion(unsigned long long *out) { out[threadIdx.x] = fibonacci(threadIdx.x); }

struct Shape {
    __device__ virtual float area() const = 0;
};
struct Square : Shape {
    float a;
    __device__ Square(float a) : a(a) {}
    __device__ float area() const override { return a * a; }
};
struct Circle : Shape {
    float r;
    __device__ Circle(float r) : r(r) {}
    __device__ float area() const override { return 3 * r * r; }
};
extern "C" __global__ void areas(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Square square(in[i]);
    Circle circle(in[i]);
    const Shape *shape = i % 3 == 0 ? static_cast<const Shape *>(&circle) : &square;
    out[i] = shape->area();
}

extern "C" __global__ void strided(float *y, const float *x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = x[i] * 0.5f;
}

extern "C" __global__ void empty() {}
