// The same things behind macros, templates, lambdas and names.
//// macro_of_a_shuffle
#define SHFL_XOR(v, by) __shfl_xor_sync(0xffffffff, v, by)  //! CU01
__global__ void k(const int* in, int* out) { out[threadIdx.x] = SHFL_XOR(in[threadIdx.x], 1); }
//// macro_of_a_mask
//= 64: i ^ 1
#define ALL_LANES 0xffffffffu
#define SHFL_XOR(v, by) __shfl_xor_sync(ALL_LANES, v, by)  //! CU02
__global__ void k(const int* in, int* out) { out[threadIdx.x] = SHFL_XOR(in[threadIdx.x], 1); }
//// macro_of_a_loop
#define REDUCE(v) \
  for (int step = warpSize / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);  //! CU09, CU01
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  REDUCE(v)
  out[threadIdx.x] = v;
}
//// macro_builds_a_name
#define SHFL(how, v, by) __shfl_##how##_sync(0xffffffff, v, by)  //! CU35 manual
__global__ void k(const int* in, int* out) { out[threadIdx.x] = SHFL(xor, in[threadIdx.x], 1); }
//// macro_drops_the_mask
#define __shfl_sync(mask, v, lane) __shfl(v, lane)  //! CU02, CU10
__global__ void k(const int* in, int* out) { out[threadIdx.x] = __shfl_sync(0xffffffff, in[threadIdx.x], 1); }  //! CU01
//// macro_in_branches
#define PICK(v) \
  if (v & 1) v = __shfl_sync(0xffffffff, v, 0); \  //! CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU30 manual, CU01
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  PICK(v)
  out[threadIdx.x] = v;
}
//// macro_of_a_lock
#define LOCK(mutex) while (atomicCAS(mutex, 0, 1) != 0)  //! CU31 manual
__global__ void k(int* mutex, int* sum) {
  LOCK(mutex) {
  }
  *sum += 1;
  atomicExch(mutex, 0);
}
//// macro_of_lds
#define TILE float tile[160][160]
__global__ void k(float* out) {  //! CU20 manual
  __shared__ TILE;
  tile[0][threadIdx.x] = out[threadIdx.x];
}
//// macro_of_a_capability
#define IS_AMPERE(p) ((p).major >= 8)  //! CU47 manual
bool fast(cudaDeviceProp p) { return IS_AMPERE(p); }
//// macro_of_a_width
//= 64: sum(range(i // 32 * 32, i // 32 * 32 + 32))
#define WARP 32
#define HALF (WARP / 2)
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int step = HALF; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);  //! CU01
  out[threadIdx.x] = v;
}
//// macro_of_ptx
#define LANE(x) asm("mov.u32 %0, %%laneid;" : "=r"(x))  //! CU13
__global__ void k(unsigned* out) {
  unsigned lane;
  LANE(lane);
  out[threadIdx.x] = lane;
}
//// template_of_a_mask
template <unsigned Mask>
__device__ int first(int v) { return __shfl_sync(Mask, v, 0); }  //! CU02
__global__ void k(const int* in, int* out) { out[threadIdx.x] = first<0xffffffffu>(in[threadIdx.x]); }
//// template_of_a_width
template <int Width>
__device__ int sum(int v) {
  for (int step = Width / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step, Width);  //! CU01
  return v;
}
__global__ void k(const int* in, int* out) { out[threadIdx.x] = sum<16>(in[threadIdx.x]); }
//// template_of_64_lanes
template <int Width>
__device__ int sum(int v) {
  for (int step = Width / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);  //! CU01
  return v;
}
__global__ void k(const int* in, int* out) { out[threadIdx.x] = sum<32>(in[threadIdx.x]); }
//// template_with_if_constexpr
template <bool First>
__device__ int pick(int v) {
  if constexpr (First) return __shfl_sync(0xffffffff, v, 0);  //! CU01
  else return __shfl_sync(0xffffffff, v, 1);  //! CU01
}
__global__ void k(const int* in, int* out) { out[threadIdx.x] = pick<true>(in[threadIdx.x]); }
//// lambda_in_branches
__global__ void k(const int* in, int* out) {
  auto pick = [&](int v) {
    if (v & 1) return __shfl_sync(0xffffffff, v, 0);  //! CU30 manual, CU01
    return __shfl_sync(0xffffffff, v, 1);  //! CU01
  };
  out[threadIdx.x] = pick(in[threadIdx.x]);
}
//// lambda_with_a_shuffle
//= 64: i // 32 * 32
__global__ void k(const int* in, int* out) {
  auto first = [](int v) { return __shfl_sync(0xffffffff, v, 0); };  //! CU01
  out[threadIdx.x] = first(in[threadIdx.x]);
}
//// functor_with_a_vote
struct Any {
  __device__ bool operator()(int v) const { return __any_sync(0xffffffff, v); }  //! CU01
};
__global__ void k(const int* in, int* out) { out[threadIdx.x] = Any()(in[threadIdx.x]); }
//// callees_in_branches
__device__ int low(int v) { return __shfl_sync(0xffffffff, v, 0); }  //! CU01
__device__ int high(int v) { return __shfl_sync(0xffffffff, v, 31); }  //! CU01
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  out[threadIdx.x] = v & 1 ? low(v) : high(v);  //! CU30 manual
}
//// own_shuffle
__device__ double __shfl_down(double v, int by) { return v; }  //! CU35 manual
__global__ void k(double* out) { out[threadIdx.x] = __shfl_down(out[threadIdx.x], 1); }
//// own_name_like_a_vote
namespace mine {
__device__ int any(int v) { return v; }
}
__global__ void k(const int* in, int* out) { out[threadIdx.x] = mine::any(in[threadIdx.x]); }
//// kernel_in_a_string
const char* source = "__global__ void k(int* x) { x[0] = __shfl_down(x[1], 1); }";  //! CU38 manual
//// kernel_in_a_raw_string
const char* source = R"(extern "C" __global__ void k(int* x) { x[0] = warpSize; })";  //! CU38 manual
//// plain_kernel_in_a_string
const char* source = "__global__ void k(int* x) { x[threadIdx.x] = 1; }";
//// word_in_a_comment
// __shfl_sync(0xffffffff, v, 0) would be faster
__global__ void k(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x]; }
//// word_in_a_message
#include <cstdio>
void show() { printf("__ballot_sync is not used\n"); }
//// kernel_by_pointer
__global__ void k(int* out) { out[threadIdx.x] = 1; }
void run() {
  int blocks;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 256, 0);
}
//// header_function_without_qualifier
#define HD __host__ __device__
HD inline int first(int v) {
#ifdef __CUDA_ARCH__  //! CU15
  return __shfl_sync(0xffffffff, v, 0);  //! CU01
#else
  return v;
#endif
}
//// macro_of_a_group
#include <cooperative_groups.h>
#define TILE cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block())
__global__ void k(const int* in, int* out) {
  auto tile = TILE;
  out[threadIdx.x] = tile.shfl(in[threadIdx.x], 0);
}
//// macro_of_a_kernel
#define KERNEL(name, mask) \
  __global__ void name(const int* in, int* out) { out[threadIdx.x] = __shfl_sync(mask, in[threadIdx.x], 0); }  //! CU02
KERNEL(one, 0xffffffff)
//// macro_of_64_bits
#define ALL 0xffffffffffffffffull
__global__ void k(const int* in, int* out) { out[threadIdx.x] = __shfl_sync(ALL, in[threadIdx.x], 0); }  //! CU02
//// macro_of_a_wait
#define WAIT_FOR(flag) do { } while (*(volatile int*)(flag) == 0)  //! CU31 manual
__global__ void k(int* flag, int* out) {
  WAIT_FOR(flag);
  out[threadIdx.x] = 1;
}
//// macro_of_bounds
#define KERNEL_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)  //! CU27 note
__global__ void KERNEL_BOUNDS(128, 4) k(int* out) { out[threadIdx.x] = 1; }
//// alias_of_a_function
__device__ int (*pick)(unsigned, int, int, int) = __shfl_sync;  //! CU02
//// member_template
template <typename T>
struct Warp {
  template <int Width>
  static __device__ T sum(T v) {
    for (int step = Width / 2; step > 0; step >>= 1) v += __shfl_down_sync(0xffffffff, v, step, Width);  //! CU01
    return v;
  }
};
__global__ void k(const int* in, int* out) { out[threadIdx.x] = Warp<int>::sum<32>(in[threadIdx.x]); }
//// generic_lambda
__global__ void k(const int* in, int* out) {
  auto sum = [](auto v, auto combine) {
    for (int step = 16; step > 0; step /= 2) v = combine(v, __shfl_xor_sync(0xffffffff, v, step));  //! CU01
    return v;
  };
  out[threadIdx.x] = sum(in[threadIdx.x], [](int a, int b) { return a + b; });
}
//// default_argument
__device__ int first(int v, unsigned mask = 0xffffffff) { return __shfl_sync(mask, v, 0); }  //! CU02
__global__ void k(const int* in, int* out) { out[threadIdx.x] = first(in[threadIdx.x]); }
//// line_continued
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __shfl_\
sync(0xffffffff, in[threadIdx.x], 0);
}
//// enum_of_a_width
enum { kLanes = 32 };
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int step = kLanes / 2; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffff, v, step);  //! CU01
  out[threadIdx.x] = v;
}
//// macro_of_atomics
#define ADD_THREE(at, x, y, z) \
  do {                         \
    atomicAdd((at), (x));      \
    atomicAdd((at) + 1, (y));  \
    atomicAdd((at) + 2, (z));  \
  } while (0)
__global__ void k(float* out) { ADD_THREE(out, 1.0f, 2.0f, 3.0f); }
