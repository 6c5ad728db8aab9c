#include <math_constants.h>

#include "kernels.h"
#include "warp.cuh"

namespace {

constexpr int kWarps = 4;
constexpr int kTile = 64;  // keys in shared memory at a time
constexpr float kLog2e = 1.4426950408889634f;

// A warp computes one query's output: its lanes share the head's dimensions, and meet in a sum for every key.
// The softmax is the online one: what was summed is scaled whenever a larger score turns up.
template <int kDim, bool kCausal>
__global__ void __launch_bounds__(kWarps *WARP_SIZE)
    attention_kernel(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v,
                     float *__restrict__ out, int queries, int keys, float scale) {
    constexpr int kPerLane = kDim / WARP_SIZE;
    extern __shared__ float shared[];
    float *tile_k = shared;
    float *tile_v = shared + kTile * kDim;

    const int warp = threadIdx.x / WARP_SIZE;
    const int lane = threadIdx.x % WARP_SIZE;
    const int query = blockIdx.x * kWarps + warp;
    const bool active = query < queries;
    const size_t head = blockIdx.y;
    const float *head_k = k + head * keys * kDim;
    const float *head_v = v + head * keys * kDim;

    float mine[kPerLane];
    float sum[kPerLane];
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
        mine[i] = active ? q[(head * queries + query) * kDim + i * WARP_SIZE + lane] * (scale * kLog2e) : 0.0f;
        sum[i] = 0.0f;
    }
    float largest = -CUDART_INF_F;
    float total = 0.0f;
    const int seen = kCausal ? query + keys - queries + 1 : keys;

    for (int first = 0; first < keys; first += kTile) {
        const int held = min(kTile, keys - first);
        for (int i = threadIdx.x; i < held * kDim; i += blockDim.x) {
            tile_k[i] = head_k[static_cast<size_t>(first) * kDim + i];
            tile_v[i] = head_v[static_cast<size_t>(first) * kDim + i];
        }
        __syncthreads();
        const int last = active ? min(held, seen - first) : 0;
        for (int key = 0; key < last; ++key) {
            float dot = 0.0f;
#pragma unroll
            for (int i = 0; i < kPerLane; ++i) {
                dot += mine[i] * tile_k[key * kDim + i * WARP_SIZE + lane];
            }
            const float score = warp_sum(dot);
            const float now = fmaxf(largest, score);
            const float shrink = fast_exp2(largest - now);
            const float weight = fast_exp2(score - now);
            largest = now;
            total = total * shrink + weight;
#pragma unroll
            for (int i = 0; i < kPerLane; ++i) {
                sum[i] = sum[i] * shrink + weight * tile_v[key * kDim + i * WARP_SIZE + lane];
            }
        }
        __syncthreads();
    }
    if (active) {
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) {
            out[(head * queries + query) * kDim + i * WARP_SIZE + lane] = total > 0.0f ? sum[i] / total : 0.0f;
        }
    }
}

template <int kDim, bool kCausal>
cudaError_t launch(const float *q, const float *k, const float *v, float *out, int heads, int queries, int keys,
                   float scale, cudaStream_t stream) {
    const int bytes = 2 * kTile * kDim * static_cast<int>(sizeof(float));
    auto kernel = attention_kernel<kDim, kCausal>;
    // More than 48 KiB of shared memory must be asked for.
    const cudaError_t asked = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (asked != cudaSuccess) {
        return asked;
    }
    const dim3 grid((queries + kWarps - 1) / kWarps, heads);
    kernel<<<grid, kWarps * WARP_SIZE, bytes, stream>>>(q, k, v, out, queries, keys, scale);
    return cudaGetLastError();
}

}  // namespace

cudaError_t attention(const float *q, const float *k, const float *v, float *out, int heads, int queries, int keys,
                      int dim, float scale, bool causal, cudaStream_t stream) {
    if (heads == 0 || queries == 0) {
        return cudaSuccess;
    }
    if (dim == 64) {
        return causal ? launch<64, true>(q, k, v, out, heads, queries, keys, scale, stream)
                      : launch<64, false>(q, k, v, out, heads, queries, keys, scale, stream);
    }
    if (dim == 128) {
        return causal ? launch<128, true>(q, k, v, out, heads, queries, keys, scale, stream)
                      : launch<128, false>(q, k, v, out, heads, queries, keys, scale, stream);
    }
    return cudaErrorInvalidValue;
}
