// HIP's names with CUDA's meaning, for nvcc; what CUDA has under another name follows.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#ifndef __HIP_PLATFORM_NVIDIA__
#define __HIP_PLATFORM_NVIDIA__ 1
#endif
#define HIP_VERSION_MAJOR 7
#define HIP_VERSION_MINOR 0
#define HIP_VERSION_PATCH 0
#define HIP_VERSION 70000000
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(x) x
#define __HIP_MEMORY_SCOPE_SINGLETHREAD 1
#define __HIP_MEMORY_SCOPE_WAVEFRONT 2
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4
#define __HIP_MEMORY_SCOPE_SYSTEM 5

#ifdef __CUDACC__
#define __HIPCC__ 1

// --- lanes -----------------------------------------------------------------------------------------------------------

// Macros, because CUDA still declares functions of these names, which its compiler refuses to translate.
static __device__ __forceinline__ unsigned int __lane_id() {
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
template <typename T>
static __device__ __forceinline__ T rocmend_shfl(T x, int lane, int width = 32) {
  return __shfl_sync(__activemask(), x, lane, width);
}
template <typename T>
static __device__ __forceinline__ T rocmend_shfl_up(T x, unsigned int delta, int width = 32) {
  return __shfl_up_sync(__activemask(), x, delta, width);
}
template <typename T>
static __device__ __forceinline__ T rocmend_shfl_down(T x, unsigned int delta, int width = 32) {
  return __shfl_down_sync(__activemask(), x, delta, width);
}
template <typename T>
static __device__ __forceinline__ T rocmend_shfl_xor(T x, int mask, int width = 32) {
  return __shfl_xor_sync(__activemask(), x, mask, width);
}
template <typename T>
static __device__ __forceinline__ int rocmend_any(T predicate) {
  return __any_sync(__activemask(), predicate ? 1 : 0);
}
#define __shfl(...) rocmend_shfl(__VA_ARGS__)
#define __shfl_up(...) rocmend_shfl_up(__VA_ARGS__)
#define __shfl_down(...) rocmend_shfl_down(__VA_ARGS__)
#define __shfl_xor(...) rocmend_shfl_xor(__VA_ARGS__)
#define __ballot(p) (static_cast<unsigned long long>(__ballot_sync(__activemask(), (p))))
#define __all(p) __all_sync(__activemask(), (p))
#define __any rocmend_any  // without parameters: CUDA's C++ library has a class of this name, with constructors

// --- builtins of AMD's compiler --------------------------------------------------------------------------------------

#define __builtin_amdgcn_wave_barrier() __syncwarp(__activemask())
#define __builtin_amdgcn_s_barrier() __syncthreads()
#define __builtin_amdgcn_fence(...) __threadfence_block()
#define __builtin_amdgcn_s_sleep(n) __nanosleep(64 * (n))
#define __builtin_amdgcn_is_shared(address) (__isShared((const void *)(address)) != 0)
#define __builtin_amdgcn_is_private(address) (__isLocal((const void *)(address)) != 0)

namespace rocmend_hip {

__device__ __forceinline__ void fence(int order, int scope) {
  if (order == __ATOMIC_RELAXED) return;
  if (scope == __HIP_MEMORY_SCOPE_SYSTEM) return __threadfence_system();
  if (scope == __HIP_MEMORY_SCOPE_AGENT) return __threadfence();
  __threadfence_block();
}
template <typename T>
__device__ __forceinline__ typename std::remove_cv<T>::type load(const T *at, int order, int scope) {
  fence(order == __ATOMIC_SEQ_CST ? order : __ATOMIC_RELAXED, scope);
  const typename std::remove_cv<T>::type value = *const_cast<const volatile T *>(at);
  fence(order, scope);
  return value;
}
template <typename T, typename V>
__device__ __forceinline__ void store(T *at, V value, int order, int scope) {
  fence(order, scope);
  *const_cast<volatile T *>(at) = static_cast<T>(value);
  fence(order == __ATOMIC_SEQ_CST ? order : __ATOMIC_RELAXED, scope);
}
template <typename T, typename V>
__device__ __forceinline__ bool exchanged(T *at, V *expected, T wanted, int order, int scope) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "of 32 or 64 bits");
  using Word = typename std::conditional<sizeof(T) == 4, unsigned int, unsigned long long>::type;
  Word was, next;
  memcpy(&was, expected, sizeof(T));
  memcpy(&next, &wanted, sizeof(T));
  fence(order, scope);
  const Word found = atomicCAS(reinterpret_cast<Word *>(at), was, next);
  fence(order, scope);
  const bool done = found == was;
  memcpy(expected, &found, sizeof(T));
  return done;
}
template <typename T, typename F>
__device__ __forceinline__ T changed(T *at, int order, int scope, F change) {
  T old = load(at, __ATOMIC_RELAXED, scope);
  while (!exchanged(at, &old, static_cast<T>(change(old)), order, scope)) {
  }
  return old;
}

}  // namespace rocmend_hip

#define __hip_atomic_load(at, order, scope) rocmend_hip::load(at, order, scope)
#define __hip_atomic_store(at, value, order, scope) rocmend_hip::store(at, value, order, scope)
#define ROCMEND_CHANGE(at, order, scope, result) \
  rocmend_hip::changed(at, order, scope, [&](auto rocmend_old) { return result; })
#define __hip_atomic_exchange(at, value, order, scope) ROCMEND_CHANGE(at, order, scope, ((void)rocmend_old, (value)))
#define __hip_atomic_fetch_add(at, value, order, scope) ROCMEND_CHANGE(at, order, scope, rocmend_old + (value))
#define __hip_atomic_fetch_sub(at, value, order, scope) ROCMEND_CHANGE(at, order, scope, rocmend_old - (value))
#define __hip_atomic_fetch_and(at, value, order, scope) ROCMEND_CHANGE(at, order, scope, rocmend_old & (value))
#define __hip_atomic_fetch_or(at, value, order, scope) ROCMEND_CHANGE(at, order, scope, rocmend_old | (value))
#define __hip_atomic_fetch_xor(at, value, order, scope) ROCMEND_CHANGE(at, order, scope, rocmend_old ^ (value))
#define __hip_atomic_fetch_min(at, value, order, scope) \
  ROCMEND_CHANGE(at, order, scope, (value) < rocmend_old ? (value) : rocmend_old)
#define __hip_atomic_fetch_max(at, value, order, scope) \
  ROCMEND_CHANGE(at, order, scope, rocmend_old < (value) ? (value) : rocmend_old)
#define __hip_atomic_compare_exchange_strong(at, expected, wanted, order, failed, scope) \
  rocmend_hip::exchanged(at, expected, wanted, order, scope)
#define __hip_atomic_compare_exchange_weak __hip_atomic_compare_exchange_strong

// clang's compilers have this one on the device too. What a host's own headers mean by it stays what it is.
namespace rocmend_hip {
template <typename T>
__host__ __device__ __forceinline__ typename std::remove_cv<T>::type loaded(const T *at, int order) {
#ifdef __CUDA_ARCH__
  return load(at, order, __HIP_MEMORY_SCOPE_SYSTEM);
#else
  typename std::remove_cv<T>::type value;
  __atomic_load(const_cast<typename std::remove_cv<T>::type *>(at), &value, order);
  return value;
#endif
}
}  // namespace rocmend_hip
#define __atomic_load_n(at, order) rocmend_hip::loaded(at, order)

#define hipLaunchKernelGGL(kernel, grid, block, lds, stream, ...) kernel<<<grid, block, lds, stream>>>(__VA_ARGS__)
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define cuda_to_hip_atomicAdd atomicAdd  // of the compatibility header: CUDA has it for these types

// --- arithmetic with vectors, which HIP has; a project's own operators go first, because they are no templates -------

template <typename V>
struct rocmend_vector {
  static constexpr int size = 0;
};
#define ROCMEND_VECTOR(name, type, parts)   \
  template <>                               \
  struct rocmend_vector<name##parts> {      \
    using part = type;                      \
    static constexpr int size = parts;      \
  };
#define ROCMEND_VECTORS(name, type) \
  ROCMEND_VECTOR(name, type, 1)     \
  ROCMEND_VECTOR(name, type, 2)     \
  ROCMEND_VECTOR(name, type, 3)     \
  ROCMEND_VECTOR(name, type, 4)
ROCMEND_VECTORS(char, signed char)
ROCMEND_VECTORS(uchar, unsigned char)
ROCMEND_VECTORS(short, short)
ROCMEND_VECTORS(ushort, unsigned short)
ROCMEND_VECTORS(int, int)
ROCMEND_VECTORS(uint, unsigned int)
ROCMEND_VECTORS(long, long)
ROCMEND_VECTORS(ulong, unsigned long)
ROCMEND_VECTORS(longlong, long long)
ROCMEND_VECTORS(ulonglong, unsigned long long)
ROCMEND_VECTORS(float, float)
ROCMEND_VECTORS(double, double)

template <typename V>
using rocmend_of = typename std::enable_if<(rocmend_vector<V>::size > 0), V>::type;

template <typename T>
struct rocmend_same {
  using type = T;
};
template <typename T>
using rocmend_self = typename rocmend_same<T>::type;  // of which nothing is deduced

// Calls change(part of one, part of the other) for each part.
template <typename V, typename F>
__host__ __device__ __forceinline__ void rocmend_each(V &a, const V &b, F change) {
  change(a.x, b.x);
  if constexpr (rocmend_vector<V>::size > 1) change(a.y, b.y);
  if constexpr (rocmend_vector<V>::size > 2) change(a.z, b.z);
  if constexpr (rocmend_vector<V>::size > 3) change(a.w, b.w);
}
template <typename V>
__host__ __device__ __forceinline__ V rocmend_all(typename rocmend_vector<V>::part value) {
  V made;
  made.x = value;
  if constexpr (rocmend_vector<V>::size > 1) made.y = value;
  if constexpr (rocmend_vector<V>::size > 2) made.z = value;
  if constexpr (rocmend_vector<V>::size > 3) made.w = value;
  return made;
}
#define ROCMEND_OPERATOR(op)                                                                            \
  template <typename V>                                                                                 \
  __host__ __device__ __forceinline__ rocmend_of<V> &operator op##=(V &a, const V &b) {                 \
    rocmend_each(a, b, [](auto &x, auto y) { x = x op y; });                                            \
    return a;                                                                                           \
  }                                                                                                     \
  template <typename V, typename S = typename rocmend_vector<V>::part>                                  \
  __host__ __device__ __forceinline__ rocmend_of<V> &operator op##=(V &a, rocmend_self<S> b) {          \
    return a op## = rocmend_all<V>(b);                                                                  \
  }                                                                                                     \
  template <typename V>                                                                                 \
  __host__ __device__ __forceinline__ rocmend_of<V> operator op(V a, const V &b) {                      \
    return a op## = b;                                                                                  \
  }                                                                                                     \
  template <typename V, typename S = typename rocmend_vector<V>::part>                                  \
  __host__ __device__ __forceinline__ rocmend_of<V> operator op(V a, rocmend_self<S> b) {               \
    return a op## = rocmend_all<V>(b);                                                                  \
  }                                                                                                     \
  template <typename V, typename S = typename rocmend_vector<V>::part>                                  \
  __host__ __device__ __forceinline__ rocmend_of<V> operator op(rocmend_self<S> a, const V &b) {        \
    V made = rocmend_all<V>(a);                                                                         \
    return made op## = b;                                                                               \
  }
ROCMEND_OPERATOR(+)
ROCMEND_OPERATOR(-)
ROCMEND_OPERATOR(*)
ROCMEND_OPERATOR(/)
ROCMEND_OPERATOR(%)
ROCMEND_OPERATOR(&)
ROCMEND_OPERATOR(|)
ROCMEND_OPERATOR(^)
ROCMEND_OPERATOR(<<)
ROCMEND_OPERATOR(>>)
template <typename V>
__host__ __device__ __forceinline__ rocmend_of<V> operator-(V a) {
  rocmend_each(a, a, [](auto &x, auto y) { x = -y; });
  return a;
}
template <typename V>
__host__ __device__ __forceinline__ typename std::enable_if<(rocmend_vector<V>::size > 0), bool>::type operator==(
    V a, const V &b) {
  bool same = true;
  rocmend_each(a, b, [&](auto x, auto y) { same = same && x == y; });
  return same;
}
template <typename V>
__host__ __device__ __forceinline__ typename std::enable_if<(rocmend_vector<V>::size > 0), bool>::type operator!=(
    const V &a, const V &b) {
  return !(a == b);
}
#endif
