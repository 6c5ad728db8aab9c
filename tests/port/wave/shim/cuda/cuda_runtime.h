// CUDA's operations across the 32 lanes of a warp, as the CUDA C++ programming guide defines them: what a port is compared with.
#pragma once
#include "../simt.h"
static_assert(WAVE == 32, "CUDA's warp has 32 lanes");

constexpr int warpSize = 32;
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }

template <typename T>
T taken(T value, int source, bool inside) {
  const simt::View& view = simt::meet("shuffle", simt::bits(value));
  return inside ? simt::value_of<T>(view.value[source]) : value;
}
template <typename T>
T __shfl_sync(unsigned, T value, int source, int width = 32) {
  int lane = simt::lane(), base = lane / width * width;
  return taken(value, base + ((source % width) + width) % width, true);
}
template <typename T>
T __shfl_up_sync(unsigned, T value, unsigned delta, int width = 32) {
  int lane = simt::lane(), base = lane / width * width, source = lane - static_cast<int>(delta);
  return taken(value, source, source >= base);
}
template <typename T>
T __shfl_down_sync(unsigned, T value, unsigned delta, int width = 32) {
  int lane = simt::lane(), end = lane / width * width + width, source = lane + static_cast<int>(delta);
  return taken(value, source, source < end);
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask, int width = 32) {
  int lane = simt::lane(), end = lane / width * width + width, source = lane ^ mask;
  return taken(value, source, source < end);
}
template <typename T>
T __shfl(T value, int source, int width = 32) { return __shfl_sync(~0u, value, source, width); }
template <typename T>
T __shfl_up(T value, unsigned delta, int width = 32) { return __shfl_up_sync(~0u, value, delta, width); }
template <typename T>
T __shfl_down(T value, unsigned delta, int width = 32) { return __shfl_down_sync(~0u, value, delta, width); }
template <typename T>
T __shfl_xor(T value, int mask, int width = 32) { return __shfl_xor_sync(~0u, value, mask, width); }

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const simt::View& view = simt::meet("vote", predicate != 0);
  unsigned result = 0;
  for (int i = 0; i < 32; ++i)
    if ((mask >> i & 1u) && (view.active >> i & 1u) && view.value[i]) result |= 1u << i;
  return result;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
inline unsigned __activemask() { return static_cast<unsigned>(simt::meet("vote", 1).active); }
inline unsigned __ballot(int predicate) { return __ballot_sync(~0u, predicate); }
inline int __any(int predicate) { return __any_sync(~0u, predicate); }
inline int __all(int predicate) { return __all_sync(~0u, predicate); }
inline void __syncwarp(unsigned = ~0u) { simt::meet("wave barrier", 0); }

template <typename T>
unsigned __match_any_sync(unsigned mask, T value) {
  const simt::View& view = simt::meet("match", simt::bits(value));
  unsigned result = 0;
  for (int i = 0; i < 32; ++i)
    if ((mask >> i & 1u) && (view.active >> i & 1u) && view.value[i] == simt::bits(value)) result |= 1u << i;
  return result;
}
template <typename T>
unsigned __match_all_sync(unsigned mask, T value, int* same) {
  const simt::View& view = simt::meet("match", simt::bits(value));
  unsigned members = 0;
  *same = 1;
  for (int i = 0; i < 32; ++i)
    if ((mask >> i & 1u) && (view.active >> i & 1u)) {
      members |= 1u << i;
      if (view.value[i] != simt::bits(value)) *same = 0;
    }
  return *same ? members : 0;
}
template <typename T, typename F>
T reduced(unsigned mask, T value, F combine) {
  const simt::View& view = simt::meet("reduce", simt::bits(value));
  bool first = true;
  T result = value;
  for (int i = 0; i < 32; ++i)
    if ((mask >> i & 1u) && (view.active >> i & 1u)) {
      T other = simt::value_of<T>(view.value[i]);
      result = first ? other : combine(result, other);
      first = false;
    }
  return result;
}
template <typename T>
T __reduce_add_sync(unsigned mask, T value) { return reduced(mask, value, [](T a, T b) { return T(unsigned(a) + unsigned(b)); }); }
template <typename T>
T __reduce_min_sync(unsigned mask, T value) { return reduced(mask, value, [](T a, T b) { return a < b ? a : b; }); }
template <typename T>
T __reduce_max_sync(unsigned mask, T value) { return reduced(mask, value, [](T a, T b) { return a > b ? a : b; }); }
inline unsigned __reduce_and_sync(unsigned mask, unsigned value) { return reduced(mask, value, [](unsigned a, unsigned b) { return a & b; }); }
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) { return reduced(mask, value, [](unsigned a, unsigned b) { return a | b; }); }
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value) { return reduced(mask, value, [](unsigned a, unsigned b) { return a ^ b; }); }
