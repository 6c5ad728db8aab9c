// PTX, types, printing, errors and other things of device code.
//// ptx_bit_field
__device__ unsigned k(unsigned v) {
  unsigned r;
  asm("bfe.u32 %0, %1, 4, 8;" : "=r"(r) : "r"(v));  //! CU13
  return r;
}
//// ptx_logic
__device__ unsigned k(unsigned a, unsigned b, unsigned c) {
  unsigned r;
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(a), "r"(b), "r"(c));  //! CU13
  return r;
}
//// ptx_matrix
__device__ void k(float* d, unsigned a, unsigned b) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"  //! CU13 manual
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "r"(b));
}
//// ptx_shuffle
__device__ int k(int v) {
  int r;
  asm volatile("shfl.sync.down.b32 %0, %1, 1, 31, 0xffffffff;" : "=r"(r) : "r"(v));  //! CU13
  return r;
}
//// ptx_multiprocessor
__device__ unsigned k() {
  unsigned r;
  asm("mov.u32 %0, %%smid;" : "=r"(r));  //! CU13 manual
  return r;
}
//// ptx_fence
__device__ void k() { asm volatile("membar.gl;" ::: "memory"); }  //! CU13
//// ptx_empty
__device__ void k() { asm volatile("" ::: "memory"); }
//// fp8_type
#include <cuda_fp8.h>
__global__ void k(const float* in, __nv_fp8_e4m3* out) {  //! CU54 manual
  out[threadIdx.x] = __nv_fp8_e4m3(in[threadIdx.x]);
}
//// bfloat16_sum
#include <cuda_bf16.h>
__global__ void k(const __nv_bfloat16* in, float* out) { out[threadIdx.x] = __bfloat162float(in[threadIdx.x]); }
//// half_sum
#include <cuda_fp16.h>
__global__ void k(const __half* in, __half* out) { out[threadIdx.x] = __hadd(in[threadIdx.x], in[0]); }
//// bfloat16_shuffle
#include <cuda_bf16.h>
__device__ __nv_bfloat16 k(__nv_bfloat16 v) { return __shfl_xor_sync(0xffffffff, v, 1); }  //! CU01
//// matrix_library
#include <mma.h>  //! CU16 manual
__global__ void k(float* out) { nvcuda::wmma::fragment<int> a; }  //! CU16 manual
//// dot_product
__device__ int k(int a, int b, int c) { return __dp4a(a, b, c); }  //! CU18
//// device_print
#include <cstdio>
__global__ void k() { printf("%d\n", threadIdx.x); }
//// device_assert
#include <cassert>
__global__ void k(const int* in) { assert(in[threadIdx.x] >= 0); }
//// device_error
#include <cstdio>
__global__ void k(cudaError_t error) { printf("%s\n", cudaGetErrorString(error)); }
//// host_error
#include <cstdio>
void check(cudaError_t error) {
  if (error != cudaSuccess) printf("%s\n", cudaGetErrorString(error));
}
//// trap
__global__ void k(const int* in) {
  if (in[threadIdx.x] < 0) __trap();
}
//// clock
__global__ void k(long long* out) { out[threadIdx.x] = clock64(); }
//// vector_operator
__device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
__device__ void operator+=(float2& a, float2 b) {  //! CU56
  a.x += b.x;
  a.y += b.y;
}
__global__ void k(float4* out, float2* pairs) {
  out[threadIdx.x] = out[threadIdx.x] + out[0];
  pairs[threadIdx.x] += pairs[0];
}
//// vector_operator_of_another
__device__ float2 scaled(float2 a);
__device__ void operator+=(float2& a, float2 b) { a = scaled(b); }  //! CU56 manual
__global__ void k(float2* out) { out[threadIdx.x] += out[0]; }
//// register_class
__global__ void k(int* out) {
  register int v = 1;  //! CU50
  out[threadIdx.x] = v;
}
//// random_numbers
#include <curand_kernel.h>
__global__ void k(float* out) {
  curandState state;
  curand_init(1, threadIdx.x, 0, &state);  //! CU52 note
  out[threadIdx.x] = curand_uniform(&state);
}
//// standard_library_of_cuda
#include <cuda/std/limits>  //! CU24
__global__ void k(float* out) { out[threadIdx.x] = cuda::std::numeric_limits<float>::max(); }  //! CU24
//// thrust_backend
#include <thrust/execution_policy.h>
#include <thrust/sort.h>
void run(int* x, int n) { thrust::sort(thrust::cuda::par, x, x + n); }  //! CU48
//// graph_of_kernels
void run(cudaStream_t stream, cudaGraph_t* graph) {
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaStreamEndCapture(stream, graph);
}
//// cluster_launch
__global__ void __cluster_dims__(2, 1, 1) k(int* out) { out[threadIdx.x] = 1; }  //! CU41 manual
//// no_counterpart
void run() { cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 1024); }  //! CU41 manual
//// byte_permutation
__device__ unsigned k(unsigned a, unsigned b) { return __byte_perm(a, b, 0x5410); }
//// funnel_shift
__device__ unsigned k(unsigned a, unsigned b) { return __funnelshift_l(a, b, 7); }
//// dependent_launch
__global__ void k(int* out) {
  cudaGridDependencySynchronize();  //! CU41 manual
  out[threadIdx.x] = 1;
}
//// assumption
__device__ int k(const int* in) {
  __builtin_assume(in != nullptr);
  return *in;
}
//// half_atomics_by_ptx
__device__ void k(float* at, float v) { asm volatile("red.global.add.f32 [%0], %1;" ::"l"(at), "f"(v)); }  //! CU13
//// stream_priority
void run(cudaStream_t* s) { cudaStreamCreateWithPriority(s, cudaStreamNonBlocking, 0); }
//// grid_constant
struct Arguments {
  int n;
};
__global__ void k(const __grid_constant__ Arguments a, int* out) { out[threadIdx.x] = a.n; }
//// restrict_and_inline
static __forceinline__ __device__ float k(const float* __restrict__ in) { return in[0]; }
//// fast_math
__device__ float k(float v) { return __expf(v) + __fdividef(v, 3.0f) + rsqrtf(v); }
//// rounding
__device__ float k(float a, float b) { return __fadd_rz(a, b); }
//// fp8_conversion
#include <cuda_fp8.h>
__device__ unsigned char k(float v) { return __nv_cvt_float_to_fp8(v, __NV_SATFINITE, __NV_E4M3); }  //! CU54 manual, CU54 manual
//// bfloat16_pairs
#include <cuda_bf16.h>
__device__ __nv_bfloat162 k(__nv_bfloat162 a, __nv_bfloat162 b) { return __hfma2(a, b, a); }
//// device_error_in_a_check
#include <cstdio>
#define CHECK(call)                                                   \
  do {                                                                \
    cudaError_t error = (call);                                       \
    if (error != cudaSuccess) printf("%s\n", cudaGetErrorString(error)); \
  } while (0)
void run(int* out) { CHECK(cudaMemset(out, 0, 4)); }
//// printf_of_a_warp
#include <cstdio>
__global__ void k() {
  if (threadIdx.x % warpSize == 0) printf("warp %d\n", threadIdx.x / warpSize);  //! CU09, CU09
}
//// waits_for_cycles
__global__ void k(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {
  }
}
