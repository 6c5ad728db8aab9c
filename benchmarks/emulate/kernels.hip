// Kernels whose machine code is changed by mutants.py. All take the same arguments.
#include <hip/hip_runtime.h>

#define ARGUMENTS const float *x, const int *k, float *y, int *out, int count

// A sum over the workgroup by halving, with barriers.
__global__ void block_sum(ARGUMENTS) {
  __shared__ float held[256];
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  held[threadIdx.x] = at < count ? x[at] : 0.0f;
  __syncthreads();
  for (int step = 128; step > 0; step >>= 1) {
    if (threadIdx.x < step) held[threadIdx.x] += held[threadIdx.x + step];
    __syncthreads();
  }
  if (at < count) y[at] = held[0] * x[at];
}

// A neighbour's value through the LDS.
__global__ void stencil(ARGUMENTS) {
  __shared__ float held[258];
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  held[threadIdx.x + 1] = at < count ? x[at] : 0.0f;
  if (threadIdx.x == 0) held[0] = at > 0 ? x[at - 1] : 0.0f;
  if (threadIdx.x == 255) held[257] = at + 1 < count ? x[at + 1] : 0.0f;
  __syncthreads();
  if (at < count) y[at] = held[threadIdx.x] + 2.0f * held[threadIdx.x + 1] + held[threadIdx.x + 2];
}

// A histogram in the LDS, added to memory atomically.
__global__ void histogram(ARGUMENTS) {
  __shared__ int bins[64];
  if (threadIdx.x < 64) bins[threadIdx.x] = 0;
  __syncthreads();
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) atomicAdd(&bins[k[at] & 63], 1);
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

// Values in reverse, block by block, through the LDS.
__global__ void reverse(ARGUMENTS) {
  __shared__ int held[256];
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  held[threadIdx.x] = at < count ? k[at] : -1;
  __syncthreads();
  if (at < count) out[at] = held[255 - threadIdx.x];
}

// A loop of each thread's own length.
__global__ void collatz(ARGUMENTS) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  int value = k[at] + 1, steps = 0;
  while (value > 1 && steps < 100) {
    value = value & 1 ? 3 * value + 1 : value >> 1;
    ++steps;
  }
  out[at] = steps;
  y[at] = x[at] * steps;
}

// A prefix sum in two buffers of the LDS.
__global__ void scan(ARGUMENTS) {
  __shared__ int held[2][256];
  int at = blockIdx.x * blockDim.x + threadIdx.x, from = 0;
  held[0][threadIdx.x] = at < count ? k[at] : 0;
  __syncthreads();
  for (int step = 1; step < 256; step <<= 1) {
    held[1 - from][threadIdx.x] = held[from][threadIdx.x] + (threadIdx.x >= step ? held[from][threadIdx.x - step] : 0);
    from = 1 - from;
    __syncthreads();
  }
  if (at < count) out[at] = held[from][threadIdx.x];
}
