// Cooperative groups.
//// tile_of_32
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int v = in[threadIdx.x];
  for (int step = tile.size() / 2; step > 0; step /= 2) v += tile.shfl_xor(v, step);
  out[threadIdx.x] = v;
}
//// tile_of_64
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());  //! CU14 manual
  tile.sync();
  out[threadIdx.x] = in[threadIdx.x];
}
//// tile_of_a_parameter
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
template <int Size>
__global__ void k(const int* in, int* out) {
  auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
  out[threadIdx.x] = tile.shfl(in[threadIdx.x], 0);
}
//// tile_of_warp_size
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  auto tile = cg::tiled_partition<warpSize>(cg::this_thread_block());  //! CU09
  out[threadIdx.x] = tile.shfl(in[threadIdx.x], 0);
}
//// tile_reduce
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>  //! CU14
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  out[threadIdx.x] = cg::reduce(tile, in[threadIdx.x], cg::plus<int>());  //! CU14, CU14
}
//// tile_scan
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>  //! CU14
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  out[threadIdx.x] = cg::inclusive_scan(tile, in[threadIdx.x]);  //! CU14 manual
}
//// tile_ballot
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, unsigned* out) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  out[threadIdx.x] = tile.ballot(in[threadIdx.x] > 0);  //! CU14
}
//// tile_votes
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  out[threadIdx.x] = tile.any(in[threadIdx.x] > 0) + tile.all(in[threadIdx.x] > 0);  //! CU14, CU14
}
//// coalesced_leader
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* count) {
  if (in[threadIdx.x] > 0) {
    auto here = cg::coalesced_threads();  //! CU14
    if (here.thread_rank() == 0) atomicAdd(count, here.size());
  }
}
//// coalesced_unset
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* count, int* out) {
  cg::coalesced_group here = cg::coalesced_threads();  //! CU14
  int base;  //! CU37
  if (here.thread_rank() == 0) base = atomicAdd(count, here.size());
  out[threadIdx.x] = here.shfl(base, 0) + here.thread_rank();
}
//// coalesced_opened
#include <cooperative_groups.h>
using namespace cooperative_groups;
__global__ void k(const int* in, int* count) {
  coalesced_group here = coalesced_threads();  //! CU14
  if (here.thread_rank() == 0) atomicAdd(count, here.size());
}
//// coalesced_ballot
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  cg::coalesced_group here = cg::coalesced_threads();  //! CU14
  unsigned odd = here.ballot(in[threadIdx.x] & 1);  //! CU14
  out[threadIdx.x] = __popc(odd);
}
//// coalesced_array
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  __shared__ int seen[32];
  auto here = cg::coalesced_threads();  //! CU14
  seen[here.thread_rank()] = in[threadIdx.x];
  here.sync();
  out[threadIdx.x] = seen[0];
}
//// coalesced_tiles
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ int k(cg::coalesced_group lanes) {
  auto four = cg::tiled_partition(lanes, 4);  //! CU14 manual
  return four.size();
}
//// labels
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  auto same = cg::labeled_partition(tile, in[threadIdx.x] % 5);  //! CU14
  out[threadIdx.x] = same.meta_group_rank() * 100 + same.meta_group_size();
}
//// two_parts
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  auto here = cg::coalesced_threads();  //! CU14
  auto part = cg::binary_partition(here, in[threadIdx.x] > 3);  //! CU14
  out[threadIdx.x] = part.meta_group_rank();
}
//// block_group
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  cg::thread_block block = cg::this_thread_block();
  __shared__ int first;
  if (block.thread_rank() == 0) first = in[0];
  block.sync();
  out[block.thread_rank()] = first;
}
//// grid_group
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* out) {
  out[blockIdx.x] = 1;
  cg::this_grid().sync();
  if (threadIdx.x == 0) out[blockIdx.x] += out[(blockIdx.x + 1) % gridDim.x];
}
//// cluster_group
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* out) {
  auto cluster = cg::this_cluster();  //! CU14 manual
  cluster.sync();
  out[threadIdx.x] = 1;
}
//// async_copy_of_a_group
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>  //! CU14
namespace cg = cooperative_groups;
__global__ void k(const float* in, float* out) {
  __shared__ float tile[64];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile, in, sizeof(float) * 64);  //! CU14 manual
  cg::wait(block);  //! CU14 manual
  out[threadIdx.x] = tile[threadIdx.x];
}
//// tile_member_in_branches
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ int k(cg::thread_block_tile<32> tile, int v) {
  if (v > 3) return tile.shfl(v, 0);  //! CU30 manual
  return tile.shfl(v, 1);
}
//// group_of_a_member
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
struct Warp {
  cg::thread_block_tile<32> tile;
  __device__ unsigned odd(int v) { return this->tile.ballot(v & 1); }  //! CU14 manual
};
//// reduce_of_others
#include <cub/cub.cuh>
__global__ void k(const float* in, float* out) {
  using Reduce = cub::WarpReduce<float>;  //! CU33
  __shared__ typename Reduce::TempStorage storage[2];
  out[threadIdx.x] = Reduce(storage[threadIdx.x / 32]).Sum(in[threadIdx.x]);
}
//// reduce_of_32
#include <cub/cub.cuh>
__global__ void k(const float* in, float* out) {
  using Reduce = cub::WarpReduce<float, 32>;
  __shared__ typename Reduce::TempStorage storage[2];
  out[threadIdx.x] = Reduce(storage[threadIdx.x / 32]).Sum(in[threadIdx.x]);
}
//// block_reduce_of_others
#include <cub/cub.cuh>
__global__ void k(const float* in, float* out) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  float sum = Reduce(storage).Sum(in[threadIdx.x]);
  if (threadIdx.x == 0) *out = sum;
}
//// lane_of_others
#include <cub/cub.cuh>
__global__ void k(int* out) { out[threadIdx.x] = cub::LaneId(); }  //! CU33
//// warp_of_others
#include <cub/cub.cuh>
__global__ void k(int* out) { out[threadIdx.x] = cub::WarpId(); }  //! CU33 manual
//// tile_of_a_number_at_run_time
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* out) {
  cg::thread_group tile = cg::tiled_partition(cg::this_thread_block(), 32);
  tile.sync();
  out[threadIdx.x] = tile.thread_rank();
}
//// tile_of_64_at_run_time
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* out) {
  cg::thread_group tile = cg::tiled_partition(cg::this_thread_block(), 64);  //! CU14 manual
  tile.sync();
  out[threadIdx.x] = tile.thread_rank();
}
//// tile_of_tiles
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto four = cg::tiled_partition<4>(warp);
  out[threadIdx.x] = four.shfl(in[threadIdx.x], 0) + four.meta_group_rank();
}
//// tile_type_of_64
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__device__ int k(const cg::thread_block_tile<64>& tile, int v) { return tile.shfl(v, 0); }  //! CU14 manual
//// tile_by_constant
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
constexpr int kTile = 64;
__global__ void k(int* out) {
  auto tile = cg::tiled_partition<kTile>(cg::this_thread_block());  //! CU14 manual
  out[threadIdx.x] = tile.size();
}
//// template_over_groups
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
template <typename Group>
__device__ int sum(Group group, int v) {
  for (int step = group.size() / 2; step > 0; step /= 2) v += group.shfl_down(v, step);
  return v;
}
__global__ void k(const int* in, int* out) {
  out[threadIdx.x] = sum(cg::tiled_partition<32>(cg::this_thread_block()), in[threadIdx.x]);
}
//// coalesced_shuffles
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(const int* in, int* out) {
  auto here = cg::coalesced_threads();  //! CU14
  int v = in[threadIdx.x];
  for (int step = here.size() / 2; step > 0; step /= 2) v += here.shfl_down(v, step);
  out[threadIdx.x] = v;
}
//// group_alias
#include <cooperative_groups.h>
namespace groups = cooperative_groups;
__global__ void k(int* count) {
  auto here = groups::coalesced_threads();  //! CU14
  if (here.thread_rank() == 0) atomicAdd(count, here.size());
}
//// reduce_of_a_named_width
#include <cub/cub.cuh>
constexpr int kLanes = 64;
__global__ void k(const float* in, float* out) {
  using Reduce = cub::WarpReduce<float, kLanes>;  //! CU33 manual
  __shared__ typename Reduce::TempStorage storage;
  out[threadIdx.x] = Reduce(storage).Sum(in[threadIdx.x]);
}
//// scan_of_others
#include <cub/cub.cuh>
__global__ void k(const int* in, int* out) {
  __shared__ cub::WarpScan<int>::TempStorage storage;  //! CU33
  int v;
  cub::WarpScan<int>(storage).ExclusiveSum(in[threadIdx.x], v);  //! CU33
  out[threadIdx.x] = v;
}
//// sort_of_a_device
#include <cub/cub.cuh>
void run(void* temp, size_t& bytes, const int* in, int* out, int n) {
  cub::DeviceRadixSort::SortKeys(temp, bytes, in, out, n);
}
