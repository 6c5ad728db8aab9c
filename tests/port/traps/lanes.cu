// Ballots, shuffles, votes, masks and warp barriers.
//// sum_down
//= 64: sum(range(i, i // 32 * 32 + 32)) if i % 32 == 0 else None
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);  //! CU01
  out[threadIdx.x] = v;
}
//// sum_xor
//= 64: sum(range(i // 32 * 32, i // 32 * 32 + 32))
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int step = 1; step < 32; step *= 2) v += __shfl_xor_sync(-1, v, step);  //! CU01
  out[threadIdx.x] = v;
}
//// sum_warp_size
//= 64: sum(range(i // 32 * 32, i // 32 * 32 + 32))
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int step = warpSize / 2; step > 0; step /= 2) v += __shfl_xor_sync(~0u, v, step);  //! CU09, CU01
  out[threadIdx.x] = v;
}
//// sum_unmasked
//= 64: sum(range(i // 32 * 32, i // 32 * 32 + 32))
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int step = 16; step > 0; step >>= 1) v += __shfl_xor(v, step);  //! CU10
  out[threadIdx.x] = v;
}
//// scan_up
//= 64: sum(range(i // 32 * 32, i + 1))
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x], lane = threadIdx.x % 32;
  for (int step = 1; step < 32; step *= 2) {
    int below = __shfl_up_sync(0xffffffffu, v, step);  //! CU01
    if (lane >= step) v += below;
  }
  out[threadIdx.x] = v;
}
//// broadcast
//= 64: i // 32 * 32 + 5
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __shfl_sync(0xffffffff, in[threadIdx.x], 5);  //! CU01
}
//// rotate
//= 64: i // 32 * 32 + (i + 3) % 32
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __shfl_sync(0xffffffff, in[threadIdx.x], threadIdx.x + 3);  //! CU01
}
//// width_of_eight
//= 64: i // 8 * 8 + 2
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __shfl_sync(0xffffffff, in[threadIdx.x], 2, 8);  //! CU01
}
//// ballot_counts
//= 64: 16
__global__ void k(const int* in, int* out) {
  unsigned odd = __ballot_sync(0xffffffff, in[threadIdx.x] & 1);  //! CU04
  out[threadIdx.x] = __popc(odd);
}
//// ballot_in_int
//= 64: 0x55555555 if i % 2 else 0x55555555
__global__ void k(const int* in, int* out) {
  int even = __ballot_sync(0xffffffff, in[threadIdx.x] % 2 == 0);  //! CU04
  out[threadIdx.x] = even;
}
//// ballot_of_cuda_8
//= 64: 3
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __popc(__ballot(in[threadIdx.x] % 32 < 3));  //! CU04
}
//// ballot_compared
//= 64: 1
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __ballot_sync(0xffffffff, in[threadIdx.x] >= 0) == 0xffffffff;  //! CU04
}
//// first_lane
//= 64: 7
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __ffs(__ballot_sync(0xffffffff, in[threadIdx.x] % 32 >= 7)) - 1;  //! CU04
}
//// last_lane
//= 64: 20
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = 31 - __clz(__ballot_sync(0xffffffff, in[threadIdx.x] % 32 <= 20));  //! CU04
}
//// rank_below
//= 64: (i % 32 + 1) // 2
__global__ void k(const int* in, int* out) {
  unsigned lane = threadIdx.x & 31;
  unsigned even = __ballot_sync(0xffffffff, in[threadIdx.x] % 2 == 0);  //! CU04
  out[threadIdx.x] = __popc(even & ((1u << lane) - 1));
}
//// any_and_all
//= 64: 1 if i < 32 else 2
__global__ void k(const int* in, int* out) {
  int some = __any_sync(0xffffffff, in[threadIdx.x] == 3);  //! CU01
  int every = __all_sync(0xffffffff, in[threadIdx.x] >= 32);  //! CU01
  out[threadIdx.x] = some + 2 * every;
}
//// any_of_cuda_8
//= 64: 1 if i < 32 else 0
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __any(in[threadIdx.x] == 3);  //! CU10
}
//// all_of_cuda_8
//= 64: 0 if i < 32 else 1
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __all(in[threadIdx.x] > 31);  //! CU10
}
//// active_lanes
//= 64: 32
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __popc(__activemask());  //! CU04
}
//// active_in_branch
__global__ void k(const int* in, int* out) {
  if (in[threadIdx.x] & 1) {
    unsigned here = __activemask();  //! CU04
    if (threadIdx.x % 32 == __ffs(here) - 1) atomicAdd(out, __popc(here));
  }
}
//// mask_of_64_bits
//= 64: i // 32 * 32
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __shfl_sync(0xffffffffull, in[threadIdx.x], 0);  //! CU03
}
//// mask_of_all_64
//= 64: i // 32 * 32
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __shfl_sync(~0ull, in[threadIdx.x], 0);  //! CU03
}
//// mask_macro
//= 64: i // 32 * 32 + 1
#define FULL 0xffffffff
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __shfl_sync(FULL, in[threadIdx.x], 1);  //! CU02
}
//// mask_constant
//= 64: i // 32 * 32 + 1
constexpr unsigned kAll = 0xffffffffu;
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __shfl_sync(kAll, in[threadIdx.x], 1);  //! CU02
}
//// mask_of_half
__global__ void k(const int* in, int* out) {
  if (threadIdx.x % 32 < 16) out[threadIdx.x] = __shfl_down_sync(0x0000ffff, in[threadIdx.x], 8, 16);  //! CU02
}
//// mask_by_shift
__global__ void k(const int* in, int* out, int n) {
  unsigned mask = (1u << n) - 1;
  if (threadIdx.x % 32 < n) out[threadIdx.x] = __shfl_sync(mask, in[threadIdx.x], 0);  //! CU02
}
//// mask_by_ballot
__global__ void k(const int* in, int* out) {
  unsigned mask = __ballot_sync(0xffffffff, in[threadIdx.x] % 3 == 0);  //! CU04
  if (in[threadIdx.x] % 3 == 0) out[threadIdx.x] = __shfl_sync(mask, in[threadIdx.x], 0);  //! CU02
}
//// match_any
//= 64: 8
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __popc(__match_any_sync(0xffffffff, in[threadIdx.x] % 4));  //! CU04
}
//// match_all
//= 64: 33
__global__ void k(const int* in, int* out) {
  int same;
  unsigned all = __match_all_sync(0xffffffff, in[threadIdx.x] / 32, &same);  //! CU04
  out[threadIdx.x] = __popc(all) + same;
}
//// reduce_add
//= 64: sum(range(i // 32 * 32, i // 32 * 32 + 32))
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __reduce_add_sync(0xffffffff, in[threadIdx.x]);  //! CU01
}
//// reduce_max
//= 64: i // 32 * 32 + 31
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = __reduce_max_sync(0xffffffff, in[threadIdx.x]);  //! CU01
}
//// syncwarp
//= 64: i // 32 * 32 + 31 - i % 32
__global__ void k(const int* in, int* out) {
  __shared__ int row[64];
  row[threadIdx.x] = in[threadIdx.x];
  __syncwarp();  //! CU01
  out[threadIdx.x] = row[threadIdx.x / 32 * 32 + 31 - threadIdx.x % 32];
}
//// syncwarp_mask
__global__ void k(int* out, unsigned mask) {
  __shared__ int row[64];
  row[threadIdx.x] = threadIdx.x;
  __syncwarp(mask);  //! CU02
  out[threadIdx.x] = row[threadIdx.x ^ 1];
}
//// diverging_shuffles
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  if (v & 1) {  //! CU30 manual
    v = __shfl_sync(0xffffffff, v, 0);  //! CU01
  } else {
    v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  }
  out[threadIdx.x] = v;
}
//// diverging_by_choice
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  out[threadIdx.x] = v & 1 ? __shfl_sync(~0u, v, 0) : __shfl_sync(~0u, v, 1);  //! CU30 manual, CU01, CU01
}
//// diverging_leaves
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  if (v > 40) {  //! CU30 manual
    out[0] = __any_sync(0xffffffff, v);  //! CU01
    return;
  }
  out[threadIdx.x] = __any_sync(0xffffffff, v > 1);  //! CU01
}
//// diverging_barriers
__global__ void k(int* out) {
  if (threadIdx.x < 32) {  //! CU30 manual
    out[threadIdx.x] = 1;
    __syncthreads();
  } else {
    __syncthreads();
  }
}
//// diverging_switch
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  switch (v % 3) {  //! CU30 manual
    case 0: v = __shfl_sync(0xffffffff, v, 0); break;  //! CU01
    case 1: v = __shfl_sync(0xffffffff, v, 1); break;  //! CU01
  }
  out[threadIdx.x] = v;
}
//// one_branch_of_named_lanes
__global__ void k(const int* in, int* out) {
  int lane = threadIdx.x % 32;
  if (lane < 16) out[threadIdx.x] = __shfl_sync(0x0000ffff, in[threadIdx.x], 0);  //! CU02
}
//// two_branches_of_a_block
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  if (blockIdx.x == 0) v = __shfl_sync(0xffffffff, v, 0);  //! CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
//// two_branches_of_warps
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  if (threadIdx.x / 32 == 0) v = __shfl_sync(0xffffffff, v, 0);  //! CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
//// two_branches_of_grid_warps
__global__ void k(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];
  if (i / 32 < n) v = __shfl_sync(0xffffffff, v, 0);  //! CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  out[i] = v;
}
//// two_branches_of_odd_blocks
__global__ void k(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];
  if (i / 32 < n) v = __shfl_sync(0xffffffff, v, 0);  //! CU30 manual, CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  out[i] = v;
}
void run(const int* in, int* out) { k<<<4, 48>>>(in, out, 2); }
//// vote_decides
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  if (__any_sync(0xffffffff, v > 40)) v = __shfl_sync(0xffffffff, v, 0);  //! CU01, CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
//// argument_decides
__global__ void k(const int* in, int* out, bool first) {
  int v = in[threadIdx.x];
  v = first ? __shfl_sync(0xffffffff, v, 0) : __shfl_sync(0xffffffff, v, 1);  //! CU01, CU01
  out[threadIdx.x] = v;
}
//// loop_over_rows
__global__ void k(const float* in, float* out, int rows, int columns) {
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float sum = 0;
    for (int at = threadIdx.x; at < columns; at += 32) sum += in[row * columns + at];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);  //! CU01
    if (threadIdx.x == 0) out[row] = sum;
  }
}
//// unset_lanes
__device__ int from(int v, int lane) { return __shfl_sync(0xffffffff, v, lane); }  //! CU01
__global__ void k(int* count, int* out) {
  int base;  //! CU37
  if (threadIdx.x % 32 == 0) base = atomicAdd(count, 32);
  out[threadIdx.x] = from(base, 0) + threadIdx.x % 32;
}
//// lockstep_without_barrier
__global__ void k(float* in, float* out) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  if (t < 32) {
    s[t] += s[t + 16];  //! CU32 manual
    s[t] += s[t + 8];
    s[t] += s[t + 4];
  }
  if (t == 0) *out = s[0];
}
//// lockstep_volatile
__global__ void k(float* in, float* out) {
  __shared__ volatile float s[64];
  int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  if (t < 32) {
    s[t] += s[t + 16];  //! CU32 note
    s[t] += s[t + 8];
  }
  if (t == 0) *out = s[0];
}
//// lockstep_with_barrier
__global__ void k(float* in, float* out) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (int step = 32; step > 0; step /= 2) {
    if (t < step) s[t] += s[t + step];
    __syncthreads();
  }
  if (t == 0) *out = s[0];
}
//// ptx_vote
__global__ void k(const int* in, unsigned* out) {
  unsigned odd;
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(odd) : "r"(in[threadIdx.x] & 1));  //! CU13
  out[threadIdx.x] = odd;
}
//// ptx_active
__global__ void k(unsigned* out) {
  unsigned here;
  asm volatile("activemask.b32 %0;" : "=r"(here));  //! CU13
  out[threadIdx.x] = here;
}
//// shuffle_of_doubles
__device__ double sum(double v) {
  for (int step = 16; step; step >>= 1) v += __shfl_xor_sync(0xffffffff, v, step);  //! CU01
  return v;
}
//// shuffle_of_halves
#include <cuda_fp16.h>
__device__ __half2 k(__half2 v) { return __shfl_down_sync(0xffffffff, v, 1); }  //! CU01
//// shuffle_of_records
struct Pair {
  int key, value;
};
__device__ Pair k(Pair v) {
  v.key = __shfl_sync(0xffffffff, v.key, 0);  //! CU01
  v.value = __shfl_sync(0xffffffff, v.value, 0);  //! CU01
  return v;
}
//// vote_in_a_loop
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  while (__any_sync(0xffffffff, v > 0)) --v;  //! CU01
  out[threadIdx.x] = v;
}
//// ballot_equals_mask
__global__ void k(const int* in, int* out, unsigned mask) {
  if (__ballot_sync(mask, in[threadIdx.x]) == mask) out[threadIdx.x] = 1;  //! CU04
}
//// ballot_of_64_bits
//= 64: 32
__global__ void k(const int* in, int* out) {
  unsigned long long all = __ballot_sync(0xffffffff, in[threadIdx.x] >= 0);  //! CU04
  out[threadIdx.x] = __popcll(all);
}
//// nth_set_bit
__global__ void k(unsigned* out, unsigned mask) { out[threadIdx.x] = __fns(mask, 0, 3); }
//// reduce_of_floats
__device__ unsigned k(unsigned v) { return __reduce_or_sync(__activemask(), v); }  //! CU02, CU04
//// count_of_a_block
__global__ void k(const int* in, int* out) { out[threadIdx.x] = __syncthreads_count(in[threadIdx.x] > 3); }
//// diverging_in_a_loop
__global__ void k(const int* in, int* out) {
  for (int i = 0; i < 4; ++i) {
    if (in[threadIdx.x + i] > 2) {  //! CU30 manual
      __syncwarp();  //! CU01
      continue;
    }
    __syncwarp();  //! CU01
    out[threadIdx.x] = i;
  }
}
//// diverging_by_goto
__device__ int k(int v) {
  if (v > 2) goto other;  //! CU30 manual
  return __shfl_sync(0xffffffff, v, 0);  //! CU01
other:
  return __shfl_sync(0xffffffff, v, 1);  //! CU01
}
//// early_return_of_threads
__global__ void k(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = in[i];
}
//// early_return_before_a_shuffle
__global__ void k(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = __shfl_sync(0xffffffff, in[i], 0);  //! CU01
}
//// template_decides
template <bool First>
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  if (First) v = __shfl_sync(0xffffffff, v, 0);  //! CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
//// block_vote_decides
__global__ void k(const int* in, int* out) {
  __shared__ int s[64];
  if (__syncthreads_or(in[threadIdx.x] > 3)) {
    s[threadIdx.x] = 1;
    __syncthreads();
  } else {
    s[threadIdx.x] = 2;
    __syncthreads();
  }
  out[threadIdx.x] = s[threadIdx.x ^ 1];
}
//// ptx_warp_size
__device__ unsigned k() {
  unsigned r;
  asm("mov.u32 %0, WARP_SZ;" : "=r"(r));  //! CU13 manual
  return r;
}
//// ptx_shuffle_in_branches
__device__ int k(int v) {
  int r;
  if (v & 1) asm volatile("shfl.sync.idx.b32 %0, %1, 0, 31, 0xffffffff;" : "=r"(r) : "r"(v));  //! CU30 manual, CU13
  else asm volatile("shfl.sync.idx.b32 %0, %1, 1, 31, 0xffffffff;" : "=r"(r) : "r"(v));  //! CU13
  return r;
}
//// mask_of_a_member
struct Warp {
  unsigned mask;
  __device__ int first(int v) const { return __shfl_sync(mask, v, 0); }  //! CU02
};
//// ballots_in_an_array
__global__ void k(const int* in, unsigned* out) {
  __shared__ unsigned votes[2];
  unsigned vote = __ballot_sync(0xffffffff, in[threadIdx.x] > 7);  //! CU04
  if (threadIdx.x % 32 == 0) votes[threadIdx.x / 32] = vote;
  __syncthreads();
  out[threadIdx.x] = votes[threadIdx.x / 32];
}
//// leader_by_elect
__device__ bool k() {
  unsigned pred;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }" : "=r"(pred));  //! CU13 manual
  return pred;
}
//// match_counts_bins
__global__ void k(const int* in, int* bins) {
  int bin = in[threadIdx.x] % 8;
  unsigned same = __match_any_sync(__activemask(), bin);  //! CU04, CU04
  if (__ffs(same) - 1 == threadIdx.x % 32) atomicAdd(&bins[bin], __popc(same));
}
//// segmented_sum
__global__ void k(const int* in, const int* keys, int* out) {
  int v = in[threadIdx.x], key = keys[threadIdx.x], lane = threadIdx.x & 31;
#pragma unroll
  for (int step = 1; step < 32; step <<= 1) {
    int above = __shfl_down_sync(0xffffffff, v, step);  //! CU01
    int other = __shfl_down_sync(0xffffffff, key, step);  //! CU01
    if (lane + step < 32 && other == key) v += above;
  }
  out[threadIdx.x] = v;
}
//// sort_of_a_warp
//= 64: i
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x ^ 21], lane = threadIdx.x % 32;
  for (int size = 2; size <= 32; size *= 2) {
    for (int step = size / 2; step > 0; step /= 2) {
      int other = __shfl_xor_sync(0xffffffff, v, step);  //! CU01
      bool up = (lane & size) == 0, low = (lane & step) == 0;
      v = (v < other) == (up == low) ? v : other;
    }
  }
  out[threadIdx.x] = v;
}
//// prefix_of_votes
//= 64: (i % 32 + 2) // 3
__global__ void k(const int* in, int* out) {
  int lane = threadIdx.x % 32;
  unsigned votes = __ballot_sync(0xffffffffu, in[threadIdx.x] % 32 % 3 == 0);  //! CU04
  out[threadIdx.x] = __popc(votes & ~(0xffffffffu << lane));
}
//// rest_of_a_row
__global__ void k(const float* in, float* out, int n) {
  unsigned mask = __ballot_sync(0xffffffff, threadIdx.x < n);  //! CU04
  if (threadIdx.x < n) {
    float v = in[threadIdx.x];
    for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(mask, v, step);  //! CU02
    if (threadIdx.x == 0) *out = v;
  }
}
//// branch_of_a_warp_variable
__global__ void k(const int* in, int* out) {
  const int warp = threadIdx.x / 32, v = in[threadIdx.x];
  if (warp % 2 == 0) out[threadIdx.x] = __shfl_sync(0xffffffff, v, 0);  //! CU01
  else out[threadIdx.x] = __shfl_sync(0xffffffff, v, 1);  //! CU01
}
//// branch_of_a_broadcast
__global__ void k(const int* in, int* out) {
  const int first = __shfl_sync(0xffffffff, in[threadIdx.x], 0), v = in[threadIdx.x];  //! CU01
  if (first > 3) out[threadIdx.x] = __shfl_sync(0xffffffff, v, 1);  //! CU01
  else out[threadIdx.x] = __shfl_sync(0xffffffff, v, 2);  //! CU01
}
//// branch_of_shared_memory
__global__ void k(const int* in, int* out) {
  __shared__ bool wanted;
  if (threadIdx.x == 0) wanted = in[0] > 3;
  __syncthreads();
  const int v = in[threadIdx.x];
  if (wanted) out[threadIdx.x] = __shfl_sync(0xffffffff, v, 1);  //! CU01
  else out[threadIdx.x] = __shfl_sync(0xffffffff, v, 2);  //! CU01
}
//// branch_of_a_row
__global__ void k(const int* in, const int* sizes, int* out) {
  const int n = sizes[blockIdx.x], v = in[threadIdx.x];
  if (n > 32) out[threadIdx.x] = __shfl_sync(0xffffffff, v, 1);  //! CU01
  else out[threadIdx.x] = __shfl_sync(0xffffffff, v, 2);  //! CU01
}
//// branch_of_a_loop_over_blocks
__global__ void k(const int* in, int* out, int n) {
  for (int row = blockIdx.x; row < n; row += gridDim.x) {
    int v = in[row * 32 + threadIdx.x];
    if (row & 1) v = __shfl_sync(0xffffffff, v, 0);  //! CU01
    else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
    out[row * 32 + threadIdx.x] = v;
  }
}
//// branch_of_a_half
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x], half = threadIdx.x % 32 / 16;
  if (half == 0) v = __shfl_sync(0x0000ffff, v, 0);  //! CU30 manual, CU02
  else v = __shfl_sync(0xffff0000, v, 16);  //! CU02
  out[threadIdx.x] = v;
}
//// count_past_a_switch_that_continues
__global__ void k(const int* in, int* out) {
  int n = 0, v = in[threadIdx.x];
  for (int i = 0; i < 4; i++) {
    switch (in[threadIdx.x] - i) { case 0: continue; default: break; }
    n++;
  }
  if (n > 2) v = __shfl_sync(~0u, v, 0);  //! CU30 manual, CU01
  else v = __shfl_sync(~0u, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
//// count_past_a_goto_of_a_loop
__global__ void k(const int* in, int* out) {
  int n = 0, v = in[threadIdx.x];
  for (int i = 0; i < 4; i++) {
    while (in[threadIdx.x] > i) { goto next; }
    n++;
    next:;
  }
  if (n > 2) v = __shfl_sync(~0u, v, 0);  //! CU30 manual, CU01
  else v = __shfl_sync(~0u, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
//// count_past_a_macro_that_breaks
#define BREAK_UNLESS(c) if (!(c)) break;
__global__ void k(const int* in, int* out) {
  int n = 0, v = in[threadIdx.x];
  for (int i = 0; i < 4; ++i) { BREAK_UNLESS(in[threadIdx.x] < i) n++; }
  if (n > 2) v = __shfl_sync(~0u, v, 0);  //! CU30 manual, CU01
  else v = __shfl_sync(~0u, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
//// count_beside_a_loop_that_lanes_leave_by_themselves
__global__ void k(const int* in, int* out) {
  int n = 0, v = in[threadIdx.x];
  for (int i = 0; i < 4; i++) {
    while (true) { if (in[threadIdx.x] > i) break; v++; }
    n++;
  }
  if (n > 2) v = __shfl_sync(~0u, v, 0);  //! CU01
  else v = __shfl_sync(~0u, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
//// lockstep_with_barriers_for_cuda_alone
template <typename T>
__device__ void least(T* dists, int* at, const size_t tid) {
  if (dists[tid] > dists[tid + 32]) {  //! CU32 manual
    at[tid] = at[tid + 32];
    dists[tid] = dists[tid + 32];
  }
#if !defined(USE_ROCM)
  __syncwarp();
#endif
  if (dists[tid] > dists[tid + 16]) {
    at[tid] = at[tid + 16];
    dists[tid] = dists[tid + 16];
  }
#if !defined(USE_ROCM)
  __syncwarp();
#endif
  if (dists[tid] > dists[tid + 8]) {
    at[tid] = at[tid + 8];
    dists[tid] = dists[tid + 8];
  }
}
//// lockstep_of_volatile_pairs
template <typename T>
__device__ void least(volatile T* dists, volatile int64_t* at, const size_t tid) {
  if (dists[tid] > dists[tid + 32]) {  //! CU32 note
    at[tid] = at[tid + 32];
    dists[tid] = dists[tid + 32];
  }
  if (dists[tid] > dists[tid + 16]) {
    at[tid] = at[tid + 16];
    dists[tid] = dists[tid + 16];
  }
}
//// lockstep_of_a_volatile_and_another
__device__ void least(volatile float* dists, int* at, int tid) {
  if (dists[tid] > dists[tid + 32]) {  //! CU32 manual
    dists[tid] = dists[tid + 32];
    at[tid] = at[tid + 32];
  }
  if (dists[tid] > dists[tid + 16]) {
    dists[tid] = dists[tid + 16];
    at[tid] = at[tid + 16];
  }
}
//// lockstep_in_code_for_rocm
__global__ void k(const float* in, float* out) {
  __shared__ float sums[64];
  const int t = threadIdx.x;
  sums[t] = in[t];
  __syncthreads();
#ifdef USE_ROCM
  if (t < 32) {
    sums[t] += sums[t + 32];  //! CU32 manual
    sums[t] += sums[t + 16];
  }
#else
  if (t < 32) {
    sums[t] += sums[t + 32];
    __syncwarp();
    sums[t] += sums[t + 16];
  }
#endif
  out[t] = sums[0];
}
//// lockstep_in_a_function_for_rocm
#ifdef USE_ROCM
__device__ void sum(float* sums, int t) {
  sums[t] += sums[t + 16];  //! CU32 manual
  sums[t] += sums[t + 8];
}
#endif
//// lockstep_with_barriers_of_both
__device__ void sum(float* sums, int t) {
  if (sums[t] < sums[t + 16]) sums[t] = sums[t + 16];
#ifdef USE_ROCM
  __builtin_amdgcn_wave_barrier();
#else
  __syncwarp();
#endif
  if (sums[t] < sums[t + 8]) sums[t] = sums[t + 8];
}
//// lockstep_with_barriers_inside
__device__ void sum(float* sums, int t) {
  if (t < 16) {
    sums[t] += sums[t + 16];
    __threadfence_block();
  }
  if (t < 8) {
    sums[t] += sums[t + 8];
    __threadfence_block();
  }
}
//// lockstep_in_a_loop_for_rocm
__global__ void k(const float* in, float* out) {
  __shared__ float sums[64];
  const int t = threadIdx.x;
  sums[t] = in[t];
  __syncthreads();
  for (int o = 16; o > 0; o >>= 1) {  //! CU32 manual
    if (t < o) sums[t] += sums[t + o];
#ifndef USE_ROCM
    __syncwarp();
#endif
  }
  out[t] = sums[0];
}
//// branch_by_a_macro
#define IF_ODD if (threadIdx.x & 1)
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  IF_ODD v = __shfl_sync(0xffffffff, v, 0);  //! CU30 manual, CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
//// branch_by_a_macro_of_all_lanes
#define IF_FIRST_BLOCK if (blockIdx.x == 0)
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  IF_FIRST_BLOCK {
    v = __shfl_sync(0xffffffff, v, 0);  //! CU01
  } else {
    v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  }
  out[threadIdx.x] = v;
}
//// branch_by_a_macro_with_an_argument
#define WHEN(condition) if (__builtin_expect(!!(condition), 1))
#define UNLESS(condition) if (!(condition))
__global__ void k(const int* in, int* out, int n) {
  int v = in[threadIdx.x];
  UNLESS (v > 3) {  //! CU30 manual
    v = __shfl_sync(0xffffffff, v, 0);  //! CU01
  } else {
    v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  }
  UNLESS (n > 3) {
    v = __shfl_sync(0xffffffff, v, 0);  //! CU01
  } else {
    v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  }
  out[threadIdx.x] = v;
}
//// branch_by_an_unknown_macro
#include "control.h"
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  IF_LEADER {  //! CU30 manual
    v = __shfl_sync(0xffffffff, v, 0);  //! CU01
  } else {
    v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  }
  out[threadIdx.x] = v;
}
//// branch_by_an_unknown_macro_without_braces
#include "control.h"
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  IF_LANE(3) v = __shfl_sync(0xffffffff, v, 0);  //! CU30 manual, CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
//// loop_by_an_unknown_macro
#include "control.h"
__global__ void k(const int* in, int* out, int n) {
  int v = 0;
  KERNEL_LOOP(i, n) {
    v += in[i];
    v = __shfl_sync(0xffffffff, v, 0);  //! CU01
  }
  v = __shfl_sync(0xffffffff, v, 0);  //! CU01
  out[threadIdx.x] = v;
}
//// count_of_an_unknown_loop
#include "control.h"
__global__ void k(const int* in, int* out, int n) {
  int rounds = 0, v = in[threadIdx.x];
  KERNEL_LOOP(i, n) { rounds += 1; }
  if (rounds > 3) v = __shfl_sync(0xffffffff, v, 0);  //! CU30 manual, CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
//// launched_with_a_variable_shape
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  if (threadIdx.x / 32 == 0) v = __shfl_sync(0xffffffff, v, 0);  //! CU30 manual, CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
void run(int* in, int* out, dim3 block) { k<<<1, block>>>(in, out); }
//// launched_by_a_call_with_rows
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  if (threadIdx.x / 32 == 0) v = __shfl_sync(0xffffffff, v, 0);  //! CU30 manual, CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
void run(void** arguments) { cudaLaunchKernel((void*)k, dim3(1), dim3(48, 4), arguments, 0, 0); }
//// launched_with_a_configuration
__global__ void k(const int* in, int* out) {
  int v = in[threadIdx.x];
  if (threadIdx.x / 32 == 0) v = __shfl_sync(0xffffffff, v, 0);  //! CU01
  else v = __shfl_sync(0xffffffff, v, 1);  //! CU01
  out[threadIdx.x] = v;
}
void run(int* in, int* out) {
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = dim3(64, 4);
  cudaLaunchKernelEx(&config, k, in, out);
}
