// A block reduction with 32-lane arithmetic, `warpSize` mixed with a constant, and a last warp that is not whole.
#include <cuda_runtime.h>

#define WARP_SIZE 32
#define FULL_MASK 0xffffffffu

template <typename T>
__device__ T warp_sum(T value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(FULL_MASK, value, offset);
  return value;
}

__device__ float warp_max(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    float other = __shfl_down_sync(0xffffffff, value, offset);
    value = other > value ? other : value;
  }
  return __shfl_sync(0xFFFFFFFFu, value, 0);
}

template <typename T>
__global__ void block_sum(const T* in, T* out, float* top, int n) {
  __shared__ T sums[32];
  int lane = threadIdx.x % WARP_SIZE;
  int warp = threadIdx.x >> 5;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  T value = i < n ? in[i] : T(0);
  top[i] = warp_max(static_cast<float>(value));
  value = warp_sum(value);
  if (lane == 0) sums[warp] = value;
  __syncthreads();
  int warps = (blockDim.x + warpSize - 1) / warpSize;
  if (threadIdx.x < WARP_SIZE) DIVERGED(1) {
    value = threadIdx.x < warps ? sums[threadIdx.x] : T(0);
    value = warp_sum(value);
    if (threadIdx.x == 0) out[blockIdx.x] = value;
  }
}

template <typename T>
void run(unsigned threads, int n) {
  std::vector<T> in(n), out(4);
  std::vector<float> top(4 * threads);
  for (int i = 0; i < n; ++i) in[i] = T((i * 2654435761u) % 1000) - T(300);
  simt::launch(4, {threads, 1, 1}, [&] { block_sum<T>(in.data(), out.data(), top.data(), n); });
  for (T value : out) std::printf("%.1f ", static_cast<double>(value));
  double all = 0;
  for (float value : top) all = all * 0.5 + value;
  std::printf("%.6f\n", all);
}

int main() {
  for (unsigned threads : {32u, 64u, 96u, 128u, 224u, 256u}) {
    run<float>(threads, 4 * threads - 13);
    run<int>(threads, 4 * threads);
    run<double>(threads, 2 * threads + 5);
    run<long long>(threads, 3 * threads);
  }
}
