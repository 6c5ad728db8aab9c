#include "kernels.h"
#include "warp.cuh"

namespace {

constexpr int kThreads = 256;

// Each warp counts its values with a vote, and one lane asks for room for all of them.
__global__ void keep_above_kernel(const float *__restrict__ x, float threshold, float *__restrict__ out, int *count, int n) {
    const int stride = gridDim.x * blockDim.x;
    const int lane = static_cast<int>(lane_id());
    // All lanes of a warp take the same number of turns: the votes below need every one of them.
    for (int base = blockIdx.x * blockDim.x + threadIdx.x - lane; base < n; base += stride) {
        const int i = base + lane;
        const float value = i < n ? x[i] : threshold;
        const unsigned kept = __ballot_sync(0xffffffff, value > threshold);
        const int before = __popc(kept & ((1u << lane) - 1));
        int room = 0;
        if (lane == 0 && kept != 0) {
            room = atomicAdd(count, __popc(kept));
        }
        room = __shfl_sync(0xffffffff, room, 0);
        if (value > threshold) {
            out[room + before] = value;
        }
    }
}

}  // namespace

cudaError_t keep_above(const float *x, float threshold, float *out, int *count, int n, cudaStream_t stream) {
    if (n == 0) {
        return cudaSuccess;
    }
    const int blocks = (n + kThreads - 1) / kThreads;
    keep_above_kernel<<<blocks < 1024 ? blocks : 1024, kThreads, 0, stream>>>(x, threshold, out, count, n);
    return cudaGetLastError();
}
