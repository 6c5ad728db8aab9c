// LDS, launch bounds, textures, atomics and loads.
//// lds_of_48
__global__ void k(float* out) {
  __shared__ float tile[48 * 256];
  tile[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
//// lds_of_96
__global__ void k(float* out) {  //! CU20 manual
  __shared__ float tile[96 * 256];
  tile[threadIdx.x] = out[threadIdx.x];
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
//// lds_of_two_arrays
constexpr int kTile = 128;
__global__ void k(float* out) {  //! CU20 manual
  __shared__ float a[kTile][kTile];
  __shared__ float b[kTile];
  a[0][threadIdx.x] = b[threadIdx.x] = out[threadIdx.x];
}
//// lds_asked_for_96
extern __shared__ float tile[];
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out) {
  cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 * 1024);  //! CU20 manual, CU21
  k<<<1, 64, 96 * 1024>>>(out);  //! CU20 manual
}
//// lds_by_a_variable
extern __shared__ float tile[];
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out) {
  const size_t bytes = 100 * 1024;
  k<<<1, 64, bytes>>>(out);  //! CU20 manual
}
//// lds_of_unknown_size
extern __shared__ float tile[];
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out, int bytes) {
  cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);  //! CU20 note, CU21
  k<<<1, 64, bytes>>>(out);
}
//// lds_dynamic_small
extern __shared__ float tile[];
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out) { k<<<1, 64, 16 * 1024>>>(out); }
//// lds_for_each_warp
__global__ void k(const int* in, int* out) {
  __shared__ int rows[8][32];
  rows[threadIdx.x / 32][threadIdx.x % 32] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = rows[threadIdx.x / 32][0];
}
//// bounds_of_threads
__global__ void __launch_bounds__(256) k(int* out) { out[threadIdx.x] = 1; }
//// bounds_of_blocks
__global__ void __launch_bounds__(256, 4) k(int* out) { out[threadIdx.x] = 1; }  //! CU27 note
//// bounds_of_a_macro
#define BOUNDS __launch_bounds__(128, 8)  //! CU27 note
__global__ void BOUNDS k(int* out) { out[threadIdx.x] = 1; }
//// texture_reference
texture<float, 1> source;  //! CU19 manual
__global__ void k(float* out) { out[threadIdx.x] = tex1Dfetch(source, threadIdx.x); }  //! CU19 manual
//// texture_object
__global__ void k(cudaTextureObject_t source, float* out) {
  out[threadIdx.x] = tex2D<float>(source, threadIdx.x, 0.5f);  //! CU19 manual
}
//// surface
__global__ void k(cudaSurfaceObject_t target) {
  surf2Dwrite(1.0f, target, threadIdx.x * 4, 0);  //! CU19 manual
}
//// ldg
__global__ void k(const float* in, float* out) { out[threadIdx.x] = __ldg(in + threadIdx.x); }
//// ldg_of_vectors
__global__ void k(const float4* in, float4* out) { out[threadIdx.x] = __ldg(&in[threadIdx.x]); }
//// streaming_loads
__global__ void k(const float* in, float* out) {
  __stcs(out + threadIdx.x, __ldcs(in + threadIdx.x));
}
//// cached_loads
__global__ void k(const float* in, float* out) {
  out[threadIdx.x] = __ldcg(in + threadIdx.x) + __ldca(in + threadIdx.x);
}
//// atomic_add_of_float
__global__ void k(float* out) { atomicAdd(out, 1.0f); }
//// atomic_add_of_double
__global__ void k(double* out) { atomicAdd(out, 1.0); }
//// atomic_add_of_half
#include <cuda_fp16.h>
__global__ void k(__half* out) { atomicAdd(out, __float2half(1.0f)); }  //! CU25
//// atomic_add_of_bfloat16
#include <cuda_bf16.h>
__global__ void k(__nv_bfloat16* out) { atomicAdd(out, __float2bfloat16(1.0f)); }  //! CU25
//// atomic_max_by_cas
__device__ float k(float* at, float v) {
  int old = __float_as_int(*at), assumed;
  do {
    assumed = old;
    old = atomicCAS(reinterpret_cast<int*>(at), assumed, __float_as_int(fmaxf(v, __int_as_float(assumed))));
  } while (assumed != old);
  return __int_as_float(old);
}
//// atomic_of_a_block
__global__ void k(int* out) { atomicAdd_block(out, 1); }
//// aggregated_atomic
__global__ void k(const int* in, int* count) {
  bool wanted = in[threadIdx.x] > 0;
  unsigned mask = __ballot_sync(0xffffffff, wanted);  //! CU04
  if (wanted && threadIdx.x % 32 == __ffs(mask) - 1) atomicAdd(count, __popc(mask));
}
//// managed_memory
__managed__ int counter;
__global__ void k() { atomicAdd(&counter, 1); }
//// async_copy
__global__ void k(const float* in, float* out) {
  __shared__ float tile[64];
  unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&tile[threadIdx.x]));  //! CU13
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(in + threadIdx.x));  //! CU13
  asm volatile("cp.async.wait_all;");  //! CU13
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
//// stack_limit
void run() { cudaDeviceSetLimit(cudaLimitStackSize, 65536); }
//// nested_launch
__global__ void child(int* out) { out[threadIdx.x] = 1; }
__global__ void k(int* out) { child<<<1, 32>>>(out); }  //! CU43 manual
//// lds_of_two_names
__global__ void k(float* out) {  //! CU20 manual
  __shared__ float a[64 * 128], b[64 * 129];
  a[threadIdx.x] = b[threadIdx.x] = out[threadIdx.x];
}
//// lds_of_a_record
struct Storage {
  float a[128][100];
  float b[128][100];
};
__global__ void k(float* out) {  //! CU20 manual
  __shared__ Storage s;
  s.a[0][threadIdx.x] = s.b[0][threadIdx.x] = out[threadIdx.x];
}
//// lds_of_a_union
__global__ void k(float* out) {
  __shared__ union {
    float a[12000];
    int b[12000];
  } s;
  s.a[threadIdx.x] = out[threadIdx.x];
}
//// lds_aligned
__global__ void k(float4* out) {  //! CU20 manual
  __shared__ __align__(16) float4 tile[4097];
  tile[threadIdx.x] = out[threadIdx.x];
}
//// lds_aligned_before
__global__ void k(char* out) {  //! CU20 manual
  alignas(128) __shared__ char tile[98304];
  tile[threadIdx.x] = out[threadIdx.x];
}
//// lds_by_an_alias
#define SHARED __shared__
__global__ void k(float* out) {  //! CU20 manual
  SHARED float tile[160][160];
  tile[0][threadIdx.x] = out[threadIdx.x];
}
//// lds_by_the_launch_function
extern __shared__ float tile[];
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out, void** arguments) {
  cudaLaunchKernel((void*)k, dim3(1), dim3(64), arguments, 96 * 1024, 0);  //! CU20 manual
}
//// lds_by_a_configuration
extern __shared__ float tile[];
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out) {
  cudaLaunchConfig_t config = {};
  config.dynamicSmemBytes = 96 * 1024;  //! CU20 manual
  cudaLaunchKernelEx(&config, k, out);
}
//// lds_by_a_constant
extern __shared__ float tile[];
constexpr int kBytes = sizeof(float) * 128 * 160;
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out) { k<<<1, 64, kBytes>>>(out); }  //! CU20 manual
//// lds_by_a_sum
extern __shared__ float tile[];
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out) {
  size_t a = 64 * 1024, b = 1024;
  size_t bytes = a + b;
  k<<<1, 64, bytes>>>(out);  //! CU20 manual
}
//// lds_of_templates
template <int N>
__global__ void k(float* out) {
  __shared__ float tile[N][N];
  tile[0][threadIdx.x] = out[threadIdx.x];
}
void run(float* out) { k<160><<<1, 64>>>(out); }  //! CU20 manual
//// lds_of_templates_that_fits
template <int N>
__global__ void k(float* out) {
  __shared__ float tile[N][N];
  tile[0][threadIdx.x] = out[threadIdx.x];
}
void run(float* out) { k<64><<<1, 64>>>(out); }
//// atomic_of_the_system
__global__ void k(int* out) { atomicAdd_system(out, 1); }
//// atomic_min_of_ints
__global__ void k(const int* in, int* out) { atomicMin(out, in[threadIdx.x]); }
//// texture_fetch_of_an_object
__global__ void k(cudaTextureObject_t source, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(source, threadIdx.x);  //! CU19 manual
}
//// bounds_by_constants
constexpr int kThreads = 256;
constexpr int kBlocks = 2;
__global__ __launch_bounds__(kThreads, kBlocks) void k(int* out) { out[threadIdx.x] = 1; }  //! CU27 note
//// pinned_memory
void* make(size_t bytes) {
  void* p;
  cudaMallocHost(&p, bytes);
  return p;
}
//// lds_of_two_dimensions
template <int M, int N, int K>
__global__ void k(float* out) {
  __shared__ float a[2][M][K], b[2][K][N];
  a[0][0][threadIdx.x] = b[0][0][threadIdx.x] = out[threadIdx.x];
}
void run(float* out) {
  k<128, 128, 32><<<1, 256>>>(out);
  k<128, 256, 32><<<1, 256>>>(out);  //! CU20 manual
}
//// lds_of_a_template_constant
constexpr int kRows = 160;
template <int N>
__global__ void k(float* out) {
  __shared__ float tile[N][N + 1];
  tile[0][threadIdx.x] = out[threadIdx.x];
}
void run(float* out) { k<kRows><<<dim3(1), dim3(64)>>>(out); }  //! CU20 manual
//// lds_of_types
template <typename T, int N>
__global__ void k(T* out) {
  __shared__ T tile[N];
  tile[threadIdx.x] = out[threadIdx.x];
}
void run(double* out) { k<double, 8193><<<1, 64>>>(out); }  //! CU20 manual
//// lds_of_types_that_fit
template <typename T, int N>
__global__ void k(T* out) {
  __shared__ T tile[N];
  tile[threadIdx.x] = out[threadIdx.x];
}
void run(float* out) { k<float, 8193><<<1, 64>>>(out); }
//// lds_by_the_occupancy
__global__ void k(float* out) { out[threadIdx.x] = 1; }
int run() {
  int blocks;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 256, 96 * 1024);
  return blocks;
}
//// lds_of_the_device
__global__ void k(float* out) { out[threadIdx.x] = 1; }
void run(float* out, cudaDeviceProp p) { k<<<1, 64, p.sharedMemPerBlock>>>(out); }
//// lds_of_an_opt_in
__global__ void k(float* out) { out[threadIdx.x] = 1; }
void run(int* bytes) { cudaDeviceGetAttribute(bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0); }
//// threads_beyond_a_block
__global__ void k(float* out) { out[threadIdx.x] = 1; }
void run(float* out) { k<<<1, 1024>>>(out); }
//// lds_by_a_function
extern __shared__ float tile[];
__host__ __device__ constexpr int bytes(int n) { return n * sizeof(float); }
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out) { k<<<1, 64, 2 * bytes(12288)>>>(out); }  //! CU20 manual
//// lds_by_a_function_that_fits
extern __shared__ float tile[];
template <typename T>
constexpr size_t bytes(int n) { return n * sizeof(float); }
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out) { k<<<1, 64, bytes<float>(4096)>>>(out); }
//// lds_by_itself
int bytes(int n) { return bytes(n); }
__global__ void k(float* out) { out[threadIdx.x] = 1; }
void run(float* out) { k<<<1, 64, bytes(98304)>>>(out); }
//// lds_of_an_inline_union
__global__ void k(float* out) {  //! CU20 manual
  __shared__ union {
    float tile[160][128];
    int keys[64];
  } shared;
  shared.tile[0][threadIdx.x] = out[threadIdx.x];
}
//// lds_of_a_union_that_fits
union Shared {
  float a[96][128];
  int b[64][128];
};
__global__ void k(float* out) {
  __shared__ Shared shared;
  __shared__ union {
    float c[8];
    int d[16];
  } small[2];
  shared.a[0][threadIdx.x] = small[0].c[0] = out[threadIdx.x];
}
//// lds_of_a_named_union
union Shared {
  float a[160][128];
  int b[64];
};
__global__ void k(float* out) {  //! CU20 manual
  __shared__ union Shared shared;
  shared.a[0][threadIdx.x] = out[threadIdx.x];
}
//// lds_of_a_union_in_a_structure
struct Shared {
  float a[64][128];
  union {
    float b[64][128];
    int c[72][128];
  };
  struct {
    int d[4];
  } more[2];
};
__global__ void k(float* out) {  //! CU20 manual
  __shared__ Shared shared;
  shared.a[0][threadIdx.x] = out[threadIdx.x];
}
//// lds_of_a_template_structure
template <typename T, int Rows>
struct Tile {
  static constexpr int kColumns = 128;
  T data[Rows][kColumns];
};
__global__ void k(float* out) {  //! CU20 manual
  __shared__ Tile<double, 80> tile;
  tile.data[0][threadIdx.x] = out[threadIdx.x];
}
//// lds_by_a_default_argument
template <int Rows = 160, typename T = float>
__global__ void k(float* out) {
  __shared__ T tile[Rows][128];
  tile[0][threadIdx.x] = out[threadIdx.x];
}
void run(float* out) {
  k<<<1, 64>>>(out);     //! CU20 manual
  k<><<<1, 64>>>(out);   //! CU20 manual
  k<64><<<1, 64>>>(out);
}
//// lds_by_another_default_argument
template <int Rows, typename T = double>
__global__ void k(float* out) {
  __shared__ T tile[Rows][128];
  tile[0][threadIdx.x] = out[threadIdx.x];
}
void run(float* out) {
  k<80><<<1, 64>>>(out);  //! CU20 manual
  k<80, float><<<1, 64>>>(out);
}
//// lds_of_a_called_function
__device__ float sum(const float* in) {
  __shared__ float partial[72][128];
  partial[0][threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  return partial[0][0];
}
__device__ float twice(const float* in) { return 2 * sum(in); }
__global__ void k(float* out) {  //! CU20 manual
  __shared__ float tile[64][128];
  tile[0][threadIdx.x] = twice(out);
  out[threadIdx.x] = tile[0][0];
}
__global__ void small(float* out) { out[threadIdx.x] = twice(out); }
//// lds_of_functions_by_choice
template <int N>
__device__ float one(const float* in) {
  __shared__ float partial[72][128];
  partial[0][threadIdx.x] = in[threadIdx.x];
  return partial[0][0];
}
__device__ float other(const float* in) {
  __shared__ float partial[72][128];
  partial[1][threadIdx.x] = in[threadIdx.x];
  return partial[1][0];
}
template <bool First>
__global__ void k(float* out) {
  if constexpr (First) out[threadIdx.x] = one<3>(out);
  else out[threadIdx.x] = other(out);
}
//// lds_of_a_called_function_alone
__device__ float sum(const float* in) {  //! CU20 manual
  __shared__ float partial[160][128];
  partial[0][threadIdx.x] = in[threadIdx.x];
  return partial[0][0];
}
__global__ void k(float* out) { out[threadIdx.x] = sum(out); }
//// lds_by_members_of_a_configuration
struct Config {
  static constexpr int kRows = 96;
  static constexpr int kSmem = kRows * 1024;
};
extern __shared__ float tile[];
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out) {
  cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, Config::kSmem);  //! CU20 manual, CU21
  k<<<1, 64, Config::kSmem>>>(out);  //! CU20 manual
}
//// lds_by_a_configuration_of_a_template
template <int M, int Stages = 2>
struct Config {
  enum { kColumns = 64 };
  static constexpr int kSmem = Stages * M * kColumns * sizeof(float);
};
using Large = Config<160>;
using Small = Config<64, 3>;
extern __shared__ float tile[];
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out) {
  k<<<1, 64, Large::kSmem>>>(out);  //! CU20 manual
  k<<<1, 64, Small::kSmem>>>(out);
  k<<<1, 64, Config<64, 5>::kSmem>>>(out);  //! CU20 manual
}
//// lds_by_a_namespace
namespace config {
constexpr int kSmem = 96 * 1024;
}
extern __shared__ float tile[];
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out) { k<<<1, 64, config::kSmem>>>(out); }  //! CU20 manual
//// lds_of_a_configured_kernel
struct Wide {
  static constexpr int kRows = 160;
};
struct Narrow {
  static constexpr int kRows = 64;
};
template <class Config>
__global__ void k(float* out) {
  __shared__ float tile[Config::kRows][128];
  tile[0][threadIdx.x] = out[threadIdx.x];
}
void run(float* out) {
  k<Wide><<<1, 64>>>(out);  //! CU20 manual
  k<Narrow><<<1, 64>>>(out);
}
//// lds_of_two_configurations
template <typename T>
struct Config {
  static constexpr int kSmem = 32 * 1024;
};
template <>
struct Config<double> {
  static constexpr int kSmem = 96 * 1024;
};
extern __shared__ float tile[];
__global__ void k(float* out) { out[threadIdx.x] = tile[threadIdx.x]; }
void run(float* out) { k<<<1, 64, Config<float>::kSmem>>>(out); }
//// lds_static_and_dynamic
extern __shared__ float more[];
__global__ void k(float* out) {
  __shared__ float tile[64][128];
  tile[0][threadIdx.x] = more[threadIdx.x] = out[threadIdx.x];
}
void run(float* out, void** arguments) {
  k<<<1, 64, 40 * 1024>>>(out);  //! CU20 manual
  k<<<1, 64, 32 * 1024>>>(out);
  cudaLaunchKernel((void*)k, dim3(1), dim3(64), arguments, 48 * 1024, 0);  //! CU20 manual
  cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024);  //! CU20 manual, CU21
}
//// lds_static_of_a_template_and_dynamic
extern __shared__ float more[];
template <int Rows>
__global__ void k(float* out) {
  __shared__ float tile[Rows][128];
  tile[0][threadIdx.x] = more[threadIdx.x] = out[threadIdx.x];
}
void run(float* out) {
  k<64><<<1, 64, 40 * 1024>>>(out);  //! CU20 manual
  k<32><<<1, 64, 40 * 1024>>>(out);
}
