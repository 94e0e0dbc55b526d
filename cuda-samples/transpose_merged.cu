// transpose.cu merged by hand.

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
    const int ny = nx / 2 + 1;
    const size_t count = (size_t)nx * ny;
    const size_t mem_size = count * sizeof(float);

    float *idata, *odata;
    CHECK(cudaMallocManaged(&idata, mem_size));
    CHECK(cudaMallocManaged(&odata, mem_size));

    const dim3 dimGrid((nx + TILE_DIM - 1) / TILE_DIM, (ny + TILE_DIM - 1) / TILE_DIM);
    const dim3 dimBlock(TILE_DIM, BLOCK_ROWS);
    uint32_t result = 0;
    Timer timer;
    for (int t = 0; t < options.iterations; t++) {
        produce(idata, count, t);
        transpose<<<dimGrid, dimBlock>>>(odata, idata, nx, ny);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        result = result * 31 + word_sum(odata, count);
    }
    timer.report();

    printf("result %08x checksum %016llx\n", result, (unsigned long long)fnv1a(odata, mem_size));
    CHECK(cudaFree(idata));
    CHECK(cudaFree(odata));
    return 0;
}
