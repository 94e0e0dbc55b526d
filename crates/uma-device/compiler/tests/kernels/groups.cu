// Cooperative groups that are blocks and parts of warps.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void tiles(const int *in, int *out) {
    __shared__ int values[64];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    values[block.thread_rank()] = in[block.thread_rank()];
    block.sync();
    int v = values[63 - block.thread_rank()];
    for (int d = tile.size() / 2; d > 0; d /= 2) v += tile.shfl_down(v, d);
    tile.sync();
    out[block.thread_rank()] = tile.thread_rank() == 0 ? v : tile.thread_rank();
}

extern "C" __global__ void coalesced(const int *in, int *out) {
    int t = threadIdx.x;
    if (in[t] > 0) {
        cg::coalesced_group group = cg::coalesced_threads();
        out[t] = 100 * group.size() + group.thread_rank();
    } else {
        out[t] = -1;
    }
}
