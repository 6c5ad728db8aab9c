// Cooperative groups for HIP, where the HIP that is installed has no header for them: the names and meanings of
// hip/hip_cooperative_groups.h. A wavefront has 32 or 64 lanes: nothing here assumes which.
#ifndef ROCMEND_HIP_COOPERATIVE_GROUPS_H
#define ROCMEND_HIP_COOPERATIVE_GROUPS_H

#warning rocmend stand-in: hip/hip_cooperative_groups.h

#include <hip/hip_runtime.h>

#include <cstdint>
#include <type_traits>

#if defined(__clang__) && defined(__HIP__)

namespace cooperative_groups {

using lane_mask = unsigned long long;

namespace rocmend_groups {
__device__ inline unsigned int lane() { return __lane_id(); }
__device__ inline unsigned int rank_in_block() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
__device__ inline unsigned int block_size() { return blockDim.x * blockDim.y * blockDim.z; }
__device__ inline unsigned long long grid_size() {
  return static_cast<unsigned long long>(block_size()) * gridDim.x * gridDim.y * gridDim.z;
}
__device__ inline void wave_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup");
  __builtin_amdgcn_wave_barrier();
}
// Lanes of the mask below one lane.
__device__ inline unsigned int rank_in(lane_mask mask) {
  return static_cast<unsigned int>(__popcll(mask & ((lane_mask(1) << lane()) - 1)));
}
// The lane of the member with a rank; the own lane where there is none.
__device__ inline int lane_of(lane_mask mask, int rank) {
  if (rank < 0 || rank >= __popcll(mask)) return static_cast<int>(lane());
  int at = 0;
#pragma unroll
  for (int step = 32; step > 0; step /= 2) {
    const int below = __popcll(mask & ((lane_mask(1) << step) - 1));
    const bool above = rank >= below;
    rank -= above ? below : 0;
    mask >>= above ? step : 0;
    at += above ? step : 0;
  }
  return at;
}
// The bits of a value that a mask has, side by side (Hacker's Delight, 7-4).
__device__ inline lane_mask packed(lane_mask value, lane_mask mask) {
  value &= mask;
  lane_mask odd = ~mask << 1;
#pragma unroll
  for (int step = 1; step < 64; step *= 2) {
    lane_mask moves = odd;
#pragma unroll
    for (int by = 1; by < 64; by *= 2) moves ^= moves << by;
    const lane_mask of_mask = moves & mask, of_value = value & of_mask;
    mask = (mask ^ of_mask) | (of_mask >> step);
    value = (value ^ of_value) | (of_value >> step);
    odd &= ~moves;
  }
  return value;
}
template <typename T>
__device__ inline T moved(T value, int from) {
  static_assert(std::is_integral<T>::value || std::is_floating_point<T>::value, "HIP's lanes exchange numbers alone");
  constexpr int words = (sizeof(T) + 3) / 4;
  int parts[words] = {};
  __builtin_memcpy(parts, &value, sizeof(T));
  for (int at = 0; at < words; ++at) parts[at] = __shfl(parts[at], from, warpSize);
  T result;
  __builtin_memcpy(&result, parts, sizeof(T));
  return result;
}
}  // namespace rocmend_groups

template <unsigned int Size, typename Parent = void>
class thread_block_tile;

// Only HIP's functions make groups: a group that a program constructs does not compile, here neither.
class thread_group {
  friend __device__ thread_group this_thread();
  friend __device__ thread_group tiled_partition(const thread_group& parent, unsigned int size);

 public:
  __device__ unsigned int size() const { return size_; }
  __device__ unsigned int num_threads() const { return size_; }
  __device__ unsigned int thread_rank() const {
    if (kind_ == kind::lanes) return rocmend_groups::rank_in(mask_);
    unsigned int rank = rocmend_groups::rank_in_block();
    if (kind_ == kind::grid) {
      const unsigned int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      rank += block * rocmend_groups::block_size();
    }
    return rank;
  }
  __device__ bool is_valid() const { return kind_ != kind::grid || __ockl_grid_is_valid(); }
  __device__ void sync() const {
    if (kind_ == kind::block) {
      __syncthreads();
    } else if (kind_ == kind::grid) {
      __ockl_grid_sync();
    } else {
      rocmend_groups::wave_barrier();
    }
  }

 protected:
  enum class kind { block, grid, lanes };
  struct _tiled_info {
    unsigned int meta_group_rank = 0;
    unsigned int meta_group_size = 1;
  };
  struct _coalesced_info {
    _tiled_info tiled_info;
  } coalesced_info;

  __device__ thread_group(kind what, unsigned int size, lane_mask mask = 0) : kind_(what), size_(size), mask_(mask) {}

  kind kind_;
  unsigned int size_;
  lane_mask mask_;
};

class thread_block : public thread_group {
  friend __device__ thread_block this_thread_block();

 public:
  __device__ static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  __device__ static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  __device__ static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  __device__ static unsigned int thread_rank() { return rocmend_groups::rank_in_block(); }
  __device__ static unsigned int size() { return rocmend_groups::block_size(); }
  __device__ static unsigned int num_threads() { return size(); }
  __device__ static void sync() { __syncthreads(); }

 protected:
  __device__ thread_block() : thread_group(kind::block, rocmend_groups::block_size()) {}
};

class grid_group : public thread_group {
  friend __device__ grid_group this_grid();

 public:
  __device__ dim3 group_dim() const { return dim3(gridDim.x, gridDim.y, gridDim.z); }

 protected:
  __device__ grid_group() : thread_group(kind::grid, static_cast<unsigned int>(rocmend_groups::grid_size())) {}
};

class coalesced_group : public thread_group {
  friend __device__ coalesced_group coalesced_threads();
  friend __device__ coalesced_group binary_partition(const coalesced_group& group, bool predicate);

 public:
  __device__ unsigned int meta_group_rank() const { return coalesced_info.tiled_info.meta_group_rank; }
  __device__ unsigned int meta_group_size() const { return coalesced_info.tiled_info.meta_group_size; }
  template <typename T>
  __device__ T shfl(T value, int rank) const {
    return rocmend_groups::moved(value, rocmend_groups::lane_of(mask_, rank));
  }
  template <typename T>
  __device__ T shfl_down(T value, unsigned int delta) const {
    const unsigned int rank = thread_rank() + delta;
    return rocmend_groups::moved(
        value, rank < size_ ? rocmend_groups::lane_of(mask_, static_cast<int>(rank)) : static_cast<int>(rocmend_groups::lane()));
  }
  template <typename T>
  __device__ T shfl_up(T value, unsigned int delta) const {
    const unsigned int rank = thread_rank();
    return rocmend_groups::moved(value, rank >= delta ? rocmend_groups::lane_of(mask_, static_cast<int>(rank - delta))
                                                      : static_cast<int>(rocmend_groups::lane()));
  }
  __device__ lane_mask ballot(int predicate) const {
    return rocmend_groups::packed(__ballot(predicate), mask_);
  }
  __device__ int any(int predicate) const { return (__ballot(predicate) & mask_) != 0; }
  __device__ int all(int predicate) const { return (__ballot(predicate) & mask_) == mask_; }

 protected:
  explicit __device__ coalesced_group(lane_mask mask)
      : thread_group(kind::lanes, static_cast<unsigned int>(__popcll(mask)), mask) {}
};

// Lanes next to each other: a power of two of them, no more than a wavefront has.
template <unsigned int Size, typename Parent>
class thread_block_tile : public thread_group {
  template <unsigned int, typename>
  friend class thread_block_tile;
  template <unsigned int TileSize, typename Group>
  friend __device__ thread_block_tile<TileSize, Group> tiled_partition(const Group& parent);
  static_assert(Size >= 1 && Size <= 64 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16, 32 or 64 threads");

 public:
  __device__ static constexpr unsigned int size() { return Size; }
  __device__ static constexpr unsigned int num_threads() { return Size; }
  __device__ static unsigned int thread_rank() { return rocmend_groups::rank_in_block() & (Size - 1); }
  __device__ unsigned int meta_group_rank() const { return coalesced_info.tiled_info.meta_group_rank; }
  __device__ unsigned int meta_group_size() const { return coalesced_info.tiled_info.meta_group_size; }
  __device__ static void sync() { rocmend_groups::wave_barrier(); }
  __device__ operator thread_block_tile<Size, void>() const {
    return thread_block_tile<Size, void>(meta_group_rank(), meta_group_size());
  }
  template <typename T>
  __device__ T shfl(T value, int rank) const {
    return rocmend_groups::moved(value, first() + (rank & static_cast<int>(Size - 1)));
  }
  template <typename T>
  __device__ T shfl_down(T value, unsigned int delta) const {
    const unsigned int rank = (rocmend_groups::lane() & (Size - 1)) + delta;
    return rocmend_groups::moved(value, static_cast<int>(rocmend_groups::lane() + (rank < Size ? delta : 0)));
  }
  template <typename T>
  __device__ T shfl_up(T value, unsigned int delta) const {
    const unsigned int rank = rocmend_groups::lane() & (Size - 1);
    return rocmend_groups::moved(value, static_cast<int>(rocmend_groups::lane() - (rank >= delta ? delta : 0)));
  }
  template <typename T>
  __device__ T shfl_xor(T value, unsigned int mask) const {
    const unsigned int other = (rocmend_groups::lane() & (Size - 1)) ^ mask;
    return rocmend_groups::moved(value, other < Size ? first() + static_cast<int>(other) : static_cast<int>(rocmend_groups::lane()));
  }
  __device__ lane_mask ballot(int predicate) const { return (__ballot(predicate) & members()) >> first(); }
  __device__ int any(int predicate) const { return (__ballot(predicate) & members()) != 0; }
  __device__ int all(int predicate) const {
    const lane_mask here = members() & __ballot(1);
    return (__ballot(predicate) & here) == here;
  }

 private:
  __device__ thread_block_tile(unsigned int rank, unsigned int count) : thread_group(kind::lanes, Size, members()) {
    coalesced_info.tiled_info.meta_group_rank = rank;
    coalesced_info.tiled_info.meta_group_size = count;
  }
  __device__ static int first() { return static_cast<int>(rocmend_groups::lane() & ~(Size - 1)); }
  __device__ static lane_mask members() {
    return (Size == 64 ? ~lane_mask(0) : (lane_mask(1) << (Size & 63)) - 1) << first();
  }
};

__device__ inline thread_block this_thread_block() { return thread_block(); }
__device__ inline grid_group this_grid() { return grid_group(); }
__device__ inline coalesced_group coalesced_threads() { return coalesced_group(__ballot(1)); }
__device__ inline thread_group this_thread() {
  return thread_group(thread_group::kind::lanes, 1, lane_mask(1) << rocmend_groups::lane());
}
template <unsigned int Size, typename Parent>
__device__ inline thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
  return thread_block_tile<Size, Parent>(parent.thread_rank() / Size, (parent.size() + Size - 1) / Size);
}
__device__ inline thread_group tiled_partition(const thread_group& parent, unsigned int size) {
  if (size >= parent.size()) return parent;
  const unsigned int first = rocmend_groups::lane() & ~(size - 1);
  const lane_mask mask = (size >= 64 ? ~lane_mask(0) : (lane_mask(1) << size) - 1) << first;
  return thread_group(thread_group::kind::lanes, size, mask);
}
__device__ inline coalesced_group binary_partition(const coalesced_group& group, bool predicate) {
  const lane_mask yes = __ballot(predicate) & group.mask_;
  return coalesced_group(predicate ? yes : group.mask_ & ~yes);
}
template <typename Group>
__device__ inline unsigned int group_size(const Group& group) {
  return group.size();
}
template <typename Group>
__device__ inline unsigned int thread_rank(const Group& group) {
  return group.thread_rank();
}
template <typename Group>
__device__ inline bool is_valid(const Group& group) {
  return group.is_valid();
}
template <typename Group>
__device__ inline void sync(const Group& group) {
  group.sync();
}

}  // namespace cooperative_groups

#endif
#endif
