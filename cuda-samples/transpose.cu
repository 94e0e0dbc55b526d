// Transposes one matrix after another. Host buffers are page-locked.

#include <cstdio>
#include <cstdlib>

#include "common/check.h"
#include "common/checksum.h"
#include "common/options.h"
#include "common/timer.h"
#include "transpose.cuh"

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv, "width", 2048, 16384, 8);
    const int nx = (int)options.size;
    const int ny = nx / 2 + 1;  // not square, and the last tiles are not full
    const size_t count = (size_t)nx * ny;
    const size_t mem_size = count * sizeof(float);

    float *h_idata, *h_odata;
    CHECK(cudaMallocHost(&h_idata, mem_size));
    CHECK(cudaMallocHost(&h_odata, mem_size));
    float *d_idata, *d_odata;
    CHECK(cudaMalloc(&d_idata, mem_size));
    CHECK(cudaMalloc(&d_odata, mem_size));

    const dim3 dimGrid((nx + TILE_DIM - 1) / TILE_DIM, (ny + TILE_DIM - 1) / TILE_DIM);
    const dim3 dimBlock(TILE_DIM, BLOCK_ROWS);
    uint32_t result = 0;
    Timer timer;
    for (int t = 0; t < options.iterations; t++) {
        produce(h_idata, count, t);
        CHECK(cudaMemcpy(d_idata, h_idata, mem_size, cudaMemcpyHostToDevice));
        transpose<<<dimGrid, dimBlock>>>(d_odata, d_idata, nx, ny);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(h_odata, d_odata, mem_size, cudaMemcpyDeviceToHost));
        result = result * 31 + word_sum(h_odata, count);
    }
    timer.report();

    printf("result %08x checksum %016llx\n", result, (unsigned long long)fnv1a(h_odata, mem_size));
    CHECK(cudaFree(d_idata));
    CHECK(cudaFree(d_odata));
    CHECK(cudaFreeHost(h_idata));
    CHECK(cudaFreeHost(h_odata));
    return 0;
}
