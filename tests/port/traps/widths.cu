// Lanes, masks and literals of a warp's width.
//// lane_by_remainder
__global__ void k(int* out) {
  out[threadIdx.x] = threadIdx.x % 32;
}
//// warps_by_remainder
//= 64: sum(range(64)) if i == 0 else None
__global__ void k(const int* in, int* out) {
  __shared__ int sums[32];
  int v = in[threadIdx.x], lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);  //! CU01
  if (lane == 0) sums[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32 ? sums[lane] : 0;
  if (warp == 0) {
    for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);  //! CU01
  }
  out[threadIdx.x] = v;
}
//// partly_ported
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x], lane = threadIdx.x % 32;
  for (int step = warpSize / 2; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);  //! CU09, CU01
  if (lane == 0) out[threadIdx.x / 32] = v;
}
//// partly_ported_to_64
#ifdef USE_ROCM
#define WARP_SIZE 64  //! CU07 manual
#else
#define WARP_SIZE 32
#endif
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int step = WARP_SIZE / 2; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = v;
}
//// both_of_64
#ifdef USE_ROCM
#define WARP_SIZE 64  //! CU07 manual
#define SHFL_DOWN(v, by) __shfl_down(v, by)
#else
#define WARP_SIZE 32
#define SHFL_DOWN(v, by) __shfl_down_sync(0xffffffff, v, by)
#endif
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int step = WARP_SIZE / 2; step > 0; step /= 2) v += SHFL_DOWN(v, step);
  if (threadIdx.x % WARP_SIZE == 0) out[threadIdx.x / WARP_SIZE] = v;
}
//// array_of_warp_size
__global__ void k(const int* in, int* out) {
  __shared__ int sums[1024 / warpSize];  //! CU09
  if (threadIdx.x % warpSize == 0) sums[threadIdx.x / warpSize] = in[threadIdx.x];  //! CU09, CU09
  __syncthreads();
  out[threadIdx.x] = sums[threadIdx.x / warpSize];  //! CU09
}
//// own_warp_size
struct Tile {
  int warpSize;
};
__global__ void k(Tile tile, int* out) { out[threadIdx.x] = tile.warpSize; }
//// width_of_the_device
void run(int* out) {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  k<<<1, 4 * properties.warpSize>>>(out);  //! CU11
}
//// width_by_attribute
int width() {
  int lanes;
  cudaDeviceGetAttribute(&lanes, cudaDevAttrWarpSize, 0);  //! CU11 manual
  return lanes;
}
//// width_only_printed
#include <cstdio>
void show(cudaDeviceProp p) { printf("%d lanes\n", p.warpSize); }
//// bit_of_a_lane
//= 64: 1 << (i % 32) if i % 32 < 31 else -2**31
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = 1u << (threadIdx.x % 32);
}
//// bit_of_a_wave_lane
__global__ void k(unsigned* out) {
  out[threadIdx.x] = 1u << __lane_id();  //! CU06 manual
}
//// lanes_below_ptx
__global__ void k(unsigned* out) {
  unsigned below;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));  //! CU13
  out[threadIdx.x] = below;
}
//// lane_of_ptx
__global__ void k(unsigned* out) {
  unsigned lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));  //! CU13
  out[threadIdx.x] = lane;
}
//// warp_of_ptx
__global__ void k(unsigned* out) {
  unsigned warp;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));  //! CU13 manual
  out[threadIdx.x] = warp;
}
//// fifth_bit
__global__ void k(const int* in, int* out) {
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  out[warp * 32 + lane] = in[threadIdx.x];
}
//// constant_from_elsewhere
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int step = WARP_SIZE / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);  //! CU36, CU01
  out[threadIdx.x] = v;
}
//// constant_of_the_file
//= 64: sum(range(i // 32 * 32, i // 32 * 32 + 32))
constexpr int kWarpSize = 32;
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int step = kWarpSize / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);  //! CU01
  out[threadIdx.x] = v;
}
//// width_of_torch
#include <c10/macros/Macros.h>
__global__ void k(const int* in, int* out) {
  int lane = threadIdx.x % C10_WARP_SIZE;
  if (lane == 0) out[threadIdx.x / C10_WARP_SIZE] = in[threadIdx.x];
}
//// width_of_torch_and_32
#include <c10/macros/Macros.h>
__global__ void k(const int* in, int* out) {
  int lane = threadIdx.x % 32;
  if (lane == 0) out[threadIdx.x / C10_WARP_SIZE] = in[threadIdx.x];  //! CU08 manual
}
//// bit_of_torch
#include <c10/macros/Macros.h>
__global__ void k(unsigned* out) {
  out[threadIdx.x] = 1u << (threadIdx.x % C10_WARP_SIZE);  //! CU06 manual
}
//// rows_of_lanes
__global__ void k(const float* in, float* out, int n) {
  float v = threadIdx.x < n ? in[blockIdx.x * n + threadIdx.x] : 0;
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);  //! CU01
  if (threadIdx.x == 0) out[blockIdx.x] = v;
}
void run(const float* in, float* out, int n) { k<<<n, 32>>>(in, out, n); }
//// list_of_targets
#if defined(__gfx1030__) || defined(__gfx1100__)  //! CU12 manual
#define LANES 32
#else
#define LANES 64
#endif
__global__ void k(int* out) { out[threadIdx.x] = threadIdx.x % LANES; }
//// ballots_of_64_on_rocm
#ifdef USE_ROCM
__device__ int count(bool v) { return __popcll(__ballot(v)); }
#else
__device__ int count(bool v) { return __popc(__ballot_sync(0xffffffff, v)); }
#endif
__global__ void k(const int* in, int* out) { out[threadIdx.x] = count(in[threadIdx.x] > 0); }
