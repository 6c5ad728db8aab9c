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
