#include "kernels.h"
#include "warp.cuh"

namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) rms_norm_kernel(const float *__restrict__ x, const float *__restrict__ weight,
                                                            float *__restrict__ y, int columns, float epsilon) {
    const float *row = x + static_cast<size_t>(blockIdx.x) * columns;
    float *out = y + static_cast<size_t>(blockIdx.x) * columns;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < columns; c += kThreads) {
        const float value = __ldg(row + c);
        sum += value * value;
    }
    const float scale = rsqrtf(block_sum(sum) / columns + epsilon);
    for (int c = threadIdx.x; c < columns; c += kThreads) {
        out[c] = __ldg(row + c) * scale * __ldg(weight + c);
    }
}

}  // namespace

cudaError_t rms_norm(const float *x, const float *weight, float *y, int rows, int columns, float epsilon,
                     cudaStream_t stream) {
    if (rows == 0 || columns == 0) {
        return cudaSuccess;
    }
    rms_norm_kernel<<<rows, kThreads, 0, stream>>>(x, weight, y, columns, epsilon);
    return cudaGetLastError();
}
