// HIP's operations across the lanes of a wavefront of WAVE lanes: no masks, 64-bit ballots, the whole wavefront by default.
#pragma once
#include "../../simt.h"

constexpr int warpSize = WAVE;
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }

inline unsigned __lane_id() { return simt::lane(); }
inline unsigned long long __ballot(int predicate) {
  const simt::View& view = simt::meet("vote", predicate != 0);
  unsigned long long result = 0;
  for (int i = 0; i < WAVE; ++i)
    if ((view.active >> i & 1u) && view.value[i]) result |= 1ull << i;
  return result;
}
// A lane that does not take part is read as zero.
inline int __shfl(int value, int source, int width = WAVE) {
  const simt::View& view = simt::meet("shuffle", simt::bits(value));
  int at = (source & (width - 1)) + (static_cast<int>(simt::lane()) & ~(width - 1));
  return simt::value_of<int>(view.active >> at & 1u ? view.value[at] : 0);
}
#define __builtin_amdgcn_fence(...)
#define __builtin_amdgcn_wave_barrier() simt::meet("wave barrier", 0)

// What inline PTX becomes besides: atomic operations, fences, clocks, LDS below 4 GiB.
#include <cmath>
#include <sys/mman.h>

#define __HIP_MEMORY_SCOPE_WORKGROUP 1
#define __HIP_MEMORY_SCOPE_AGENT 2
#define __HIP_MEMORY_SCOPE_SYSTEM 3
inline long long fences = 0;
inline void __threadfence_block() { fences += 1; }
inline void __threadfence() { fences += 100; }
inline void __threadfence_system() { fences += 10000; }
inline long long clock64() { return 4242; }

struct char4 { signed char x, y, z, w; };
struct uchar4 { unsigned char x, y, z, w; };
struct short2 { short x, y; };
struct ushort2 { unsigned short x, y; };

template <typename T>
T __hip_atomic_load(const T* at, int, int) { return *at; }
template <typename T, typename V>
void __hip_atomic_store(T* at, V value, int, int) { *at = value; }
#define HIP_FETCH(NAME, EXPRESSION)                    \
  template <typename T, typename V>                    \
  T __hip_atomic_##NAME(T* at, V given, int, int) {    \
    T old = *at, value = given;                        \
    *at = EXPRESSION;                                  \
    return old;                                        \
  }
HIP_FETCH(fetch_add, old + value)
HIP_FETCH(fetch_and, old & value)
HIP_FETCH(fetch_or, old | value)
HIP_FETCH(fetch_xor, old ^ value)
HIP_FETCH(fetch_min, value < old ? value : old)
HIP_FETCH(fetch_max, old < value ? value : old)
HIP_FETCH(exchange, value)
template <typename T, typename V>
bool __hip_atomic_compare_exchange_strong(T* at, T* expected, V value, int, int, int) {
  bool same = *at == *expected;
  if (same) *at = value;
  else *expected = *at;
  return same;
}
inline unsigned atomicInc(unsigned* at, unsigned most) {
  unsigned old = *at;
  *at = old >= most ? 0 : old + 1;
  return old;
}
inline unsigned atomicDec(unsigned* at, unsigned most) {
  unsigned old = *at;
  *at = old == 0 || old > most ? most : old - 1;
  return old;
}
#define __builtin_amdgcn_s_sleep(N) ((void)(N))

// LDS of a test: an address of 32 bits reaches it.
inline char* low_memory() {
  static char* made = static_cast<char*>(
      mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0));
  return made;
}

// a * b + c of halves, rounded once: whole numbers of 2^-48 hold product and sum exactly.
inline _Float16 shim_fmaf16(_Float16 a, _Float16 b, _Float16 c) {
  float x = a, y = b, z = c;
  if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(z)) return static_cast<_Float16>(std::fma(x, y, z));
  auto scaled = [](float v) { return static_cast<__int128>(static_cast<long long>(v * 16777216.0f)); };
  __int128 sum = scaled(x) * scaled(y) + scaled(z) * 16777216;
  if (sum == 0) return static_cast<_Float16>(std::fma(x, y, z));
  bool negative = sum < 0;
  unsigned __int128 size = negative ? -sum : sum;
  int top = 0;
  for (unsigned __int128 rest = size; rest >>= 1;) ++top;
  int least = top - 10 > 24 ? top - 10 : 24;  // the last bit that a half keeps: 2^-24 is its smallest
  unsigned __int128 kept = size >> least, left = size & ((static_cast<unsigned __int128>(1) << least) - 1);
  unsigned __int128 middle = static_cast<unsigned __int128>(1) << (least - 1);
  if (left > middle || (left == middle && (kept & 1))) ++kept;
  double value = std::ldexp(static_cast<double>(static_cast<unsigned long long>(kept)), least - 48);
  return static_cast<_Float16>(static_cast<float>(negative ? -value : value));
}
#define __builtin_fmaf16 shim_fmaf16
