// Code that is chosen by a capability, an architecture or a version.
//// capability_compared
void run(cudaDeviceProp p) {
  if (p.major >= 8) fast();  //! CU47 manual
  else slow();
}
//// capability_on_the_right
bool fast(cudaDeviceProp p) { return 8 <= p.major; }  //! CU47 manual
//// capability_copied
void run(cudaDeviceProp p) {
  const int major = p.major;
  if (major == 9) hopper();  //! CU47 manual
}
//// capability_switched
void run(cudaDeviceProp p) {
  switch (p.major) {  //! CU47 manual
    case 9: hopper(); break;
    default: other();
  }
}
//// capability_by_attribute
void run() {
  int major, minor;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  if (major * 10 + minor >= 80) fast();  //! CU47 manual
}
//// capability_by_driver
void run(CUdevice device) {
  int major = 0;
  cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (major > 8) hopper();  //! CU47 manual
}
//// capability_as_a_number
void run(cudaDeviceProp p) {
  int sm = 10 * p.major + p.minor;
  bool mma = sm >= 75;  //! CU47 manual
  if (mma) fast();
}
//// capability_by_a_function
static int version(int device) {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, device);
  return p.major * 10 + p.minor;
}
void run() {
  if (version(0) >= 90) hopper();  //! CU47 manual
}
//// capability_for_others
int version(int device) {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, device);
  return p.major * 10 + p.minor;  //! CU47 manual
}
//// capability_in_a_table
int blocks(cudaDeviceProp p) { return kBlocks[p.major]; }  //! CU47 manual
//// capability_as_a_template
void run(cudaDeviceProp p) { dispatch(p.major, p.minor); }  //! CU47 manual
//// capability_in_a_record
void fill(Device* device, cudaDeviceProp p) {
  device->cc = 100 * p.major + 10 * p.minor;  //! CU47 manual
}
//// capability_as_a_choice
int threads(cudaDeviceProp p) { return p.major >= 7 ? 512 : 256; }  //! CU47 manual
//// capability_of_torch
#include <ATen/cuda/CUDAContext.h>
bool fast() {
  auto* properties = at::cuda::getCurrentDeviceProperties();
  return properties->major >= 8;  //! CU47 manual
}
//// capability_names_an_architecture
#include <string>
std::string option(cudaDeviceProp p) {
  return "--gpu-architecture=compute_" + std::to_string(p.major) + std::to_string(p.minor);  //! CU47 manual
}
//// capability_too_old
#include <cstdio>
#include <cstdlib>
void check(cudaDeviceProp p) {
  if (p.major < 7) {  //! CU47 note
    fprintf(stderr, "needs sm_70\n");
    exit(1);
  }
}
//// capability_checked
void check(cudaDeviceProp* p) {
  TORCH_CHECK(p->major >= 8, "needs Ampere");  //! CU47 note
}
//// capability_refuses_amd
#include <cstdlib>
void check(cudaDeviceProp p) {
  if (p.major > 9) exit(1);  //! CU47 manual
}
//// capability_is_exact
#include <stdexcept>
void check(cudaDeviceProp p) {
  if (p.major != 8) throw std::runtime_error("for Ampere");  //! CU47 manual
}
//// capability_printed
#include <cstdio>
void show(cudaDeviceProp p) { printf("compute capability %d.%d\n", p.major, p.minor); }
//// capability_streamed
#include <iostream>
void show(cudaDeviceProp p) { std::cout << "sm_" << p.major << p.minor << std::endl; }
//// capability_of_two_devices
bool better(cudaDeviceProp a, cudaDeviceProp b) { return a.major > b.major; }
//// version_of_a_file
struct Version {
  int major, minor;
};
bool newer(Version v, cudaDeviceProp p) { return v.major >= 8; }
//// arch_of_new_gpus
__global__ void k(const int* in, int* out) {
#if __CUDA_ARCH__ >= 800  //! CU15 note
  out[threadIdx.x] = in[threadIdx.x] * 2;
#else
  out[threadIdx.x] = in[threadIdx.x] + in[threadIdx.x];
#endif
}
//// arch_with_nothing_else
__global__ void k(const int* in, int* out) {
#if __CUDA_ARCH__ >= 700  //! CU15 manual
  out[threadIdx.x] = in[threadIdx.x];
#endif
}
//// arch_of_device_code
__host__ __device__ int side() {
#ifdef __CUDA_ARCH__  //! CU15
  return 1;
#else
  return 0;
#endif
}
//// arch_of_old_gpus
#if __CUDA_ARCH__ < 600  //! CU15
__device__ double atomicAdd(double* at, double v) {
  unsigned long long old = *(unsigned long long*)at, assumed;
  do {
    assumed = old;
    old = atomicCAS((unsigned long long*)at, assumed, __double_as_longlong(v + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
#endif
__global__ void k(double* out) { atomicAdd(out, 1.0); }
//// arch_decided_for_rocm
__global__ void k(const int* in, int* out) {
#if defined(USE_ROCM) || __CUDA_ARCH__ >= 700
  out[threadIdx.x] = in[threadIdx.x];
#endif
}
//// arch_that_only_mentions_rocm
__global__ void k(const int* in, int* out) {
#if (defined(USE_CUDA) || defined(USE_ROCM)) && __CUDA_ARCH__ >= 700  //! CU15 manual
  out[threadIdx.x] = in[threadIdx.x];
#endif
}
//// version_of_cuda
#if CUDART_VERSION >= 12000  //! CU45 note
int newer() { return 1; }
#else
int newer() { return 0; }
#endif
//// version_of_cuda_9
__device__ int k(int v) {
#if CUDART_VERSION >= 9000  //! CU45 note
  return __shfl_sync(0xffffffff, v, 0);  //! CU39 manual
#else
  return v;
#endif
}
//// by_nvcc
#ifdef __CUDACC__  //! CU51
#define DEVICE __device__
#else
#define DEVICE
#endif
DEVICE int k(int v) { return v + 1; }
//// by_clang_for_cuda
#if defined(__CUDACC__) || defined(__HIPCC__)
#define DEVICE __device__
#else
#define DEVICE
#endif
DEVICE int k(int v) { return v + 1; }
//// own_branch_for_rocm
__device__ int k(int v) {
#ifdef USE_ROCM
  return __builtin_amdgcn_readfirstlane(v);
#else
  return __shfl_sync(0xffffffff, v, 0);
#endif
}
//// arch_in_plain_code
__global__ void k(int* out) {
  if (__CUDA_ARCH__ >= 800) out[threadIdx.x] = 1;  //! CU15 manual
}
//// arch_as_a_constant
__global__ void k(int* out) {
  constexpr int arch = __CUDA_ARCH__;  //! CU15 manual
  out[threadIdx.x] = arch;
}
//// arch_feature
__global__ void k(int* out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  out[threadIdx.x] = 2;
#else
  out[threadIdx.x] = 1;
#endif
}
//// target_of_libcu
#include <nv/target>
__global__ void k(int* out) {
  NV_IF_TARGET(NV_IS_DEVICE, (out[threadIdx.x] = 1;));
}
//// capability_in_a_constructor
struct Device {
  explicit Device(const cudaDeviceProp& p) : sm_(p.major * 10 + p.minor) {}  //! CU47 manual
  int sm_;
};
//// capability_negated
void run(cudaDeviceProp p) {
  if (!(p.major >= 8)) slow();  //! CU47 manual
}
//// capability_in_a_loop
int best(int count) {
  int found = -1;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp p;
    cudaGetDeviceProperties(&p, device);
    if (p.major == 9) found = device;  //! CU47 manual
  }
  return found;
}
//// capability_by_reference
void capability(int& major, int& minor) {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  major = p.major;  //! CU47 manual
  minor = p.minor;  //! CU47 manual
}
//// capability_in_a_ternary_chain
int tile(cudaDeviceProp p) {
  int cc = p.major * 100 + p.minor * 10;
  return cc >= 900 ? 256 : cc >= 800 ? 128 : 64;  //! CU47 manual
}
//// capability_string_compared
#include <string>
bool ampere(cudaDeviceProp p) {
  return std::to_string(p.major) + std::to_string(p.minor) == "80";  //! CU47 manual
}
//// name_of_the_device
#include <cstring>
bool hopper(cudaDeviceProp p) { return strstr(p.name, "H100") != nullptr; }
//// multiprocessors
int blocks(cudaDeviceProp p) { return 2 * p.multiProcessorCount; }
//// capability_asks_for_types
void check(cudaDeviceProp* p, bool half) {
  if (p->major < 8) {  //! CU47 note
    STD_TORCH_CHECK(half, "older GPUs have no bfloat16");
  }
}
//// capability_asserts
#include <cassert>
#include <iostream>
void check(cudaDeviceProp p) {
  if (p.major == 8) {  //! CU47 note
    std::cout << "failed" << std::endl;
    assert(false);
  }
}
//// arch_behind_a_macro
#define HAS_MMA (__CUDA_ARCH__ >= 800)  //! CU15 manual
__global__ void k(const int* in, int* out) {
#if HAS_MMA
  out[threadIdx.x] = in[threadIdx.x];
#endif
}
//// arch_or_host
__global__ void k(const int* in, int* out) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700  //! CU15 note
  out[threadIdx.x] = in[threadIdx.x];
#endif
}
//// arch_with_an_error
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error "needs Volta"
#endif
__global__ void k(int* out) { out[threadIdx.x] = 1; }
//// arch_of_bfloat16
#include <cuda_bf16.h>
__device__ float k(__nv_bfloat16 a) {
#if __CUDA_ARCH__ >= 800  //! CU15 note
  return __bfloat162float(a);
#else
  return 0.0f;
#endif
}
//// arch_list
#ifdef __CUDA_ARCH_LIST__
int targets[] = {__CUDA_ARCH_LIST__};
#endif
//// capability_below_a_constant
#include <cstdlib>
constexpr int kOldest = 70;
void check(cudaDeviceProp p) {
  if (p.major * 10 + p.minor < kOldest) exit(1);  //! CU47 note
}
//// capability_beyond_a_constant
#include <cstdlib>
constexpr int kNewest = 90;
void check(cudaDeviceProp p) {
  if (p.major * 10 + p.minor > kNewest) exit(1);  //! CU47 manual
}
//// capability_by_a_macro
#define CC(p) ((p).major * 10 + (p).minor)
void run(cudaDeviceProp p) {
  if (CC(p) >= 80) fast();  //! CU47 manual
  else slow();
}
//// capability_by_a_macro_of_others
#define CC(p) ((p).major * 10 + (p).minor)  //! CU47 manual
cudaDeviceProp properties();
//// capability_by_a_macro_of_versions
#define CC(p) ((p).major * 10 + (p).minor)
struct Version {
  int major, minor;
};
bool newer(Version v, cudaDeviceProp p) { return CC(v) >= 80; }
//// capability_by_a_name
#define SM (properties.major * 100 + properties.minor * 10)
void run(cudaDeviceProp properties) {
  if (SM < 700) std::abort();  //! CU47 note
  if (SM > 900) std::abort();  //! CU47 manual
}
//// capability_compared_by_a_macro
#define HOPPER(p) ((p).major == 9)  //! CU47 manual
void run(cudaDeviceProp p) {
  if (HOPPER(p)) hopper();
}
//// capability_by_a_macro_of_a_macro
#define MAJOR(p) (p).major
#define HOPPER(p) (MAJOR(p) == 9)  //! CU47 manual
void run(cudaDeviceProp p) {
  if (HOPPER(p)) hopper();
}
//// capability_by_a_function_too_old
#include <cstdlib>
static int version(cudaDeviceProp p) { return p.major * 10 + p.minor; }
void check(cudaDeviceProp p) {
  if (version(p) < 70) exit(1);  //! CU47 note
  if (version(p) > 90) exit(1);  //! CU47 manual
}
//// capability_in_a_logarithm
#include <cmath>
double weight(cudaDeviceProp p) { return log(p.major * 2.0); }  //! CU47 manual
//// capability_in_a_list
#include <vector>
void fill(std::vector<int>& list, cudaDeviceProp p) {
  list.insert(list.end(), p.major);  //! CU47 manual
}
//// capability_in_a_set
#include <set>
void fill(std::set<int>& seen, cudaDeviceProp p) { seen.insert(p.major); }  //! CU47 manual
//// capability_in_a_fingerprint
void mark(cudaDeviceProp p) { fingerprint(p.major); }  //! CU47 manual
//// capability_logged
void show(cudaDeviceProp p) {
  spdlog::info("sm {}{}", p.major, p.minor);
  LOG(INFO) << "major " << p.major;
}
//// capability_prints_and_acts
#include <cstdio>
void run(cudaDeviceProp p) {
  if (p.major >= 8) {  //! CU47 manual
    printf("fast\n");
    fast = true;
  }
}
//// capability_prints_and_runs
#include <cstdio>
void run(cudaDeviceProp p) {
  if (p.major < 7) {  //! CU47 manual
    printf("slow\n");
    return slow();
  }
  fast();
}
//// capability_prints_and_runs_in_a_line
#include <cstdio>
void run(cudaDeviceProp p) {
  if (p.major >= 8) printf("fast\n"), fast();  //! CU47 manual
}
//// capability_warns
#include <cstdio>
#include <iostream>
int run(cudaDeviceProp p) {
  if (p.major < 8) printf("slow\n");  //! CU47 note
  if (p.major >= 8) {  //! CU47 note
    if (verbose) std::cout << "fast" << std::endl;
  }
  if (p.major < 6) {  //! CU47 note
    std::cerr << "too old" << std::endl;
    return 1;
  }
  return 0;
}
//// capability_below_what_is_asked
void check(cudaDeviceProp p, int least) {
  TORCH_CHECK(p.major >= least, "too old");  //! CU47 manual
}
//// capability_checks_and_acts
#include <cassert>
void run(cudaDeviceProp p) {
  if (p.major < 8) {  //! CU47 manual
    assert(ready);
    slow();
  }
}
