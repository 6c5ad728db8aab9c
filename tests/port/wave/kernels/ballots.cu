// Compaction by ballots: 32-bit masks, bits below a lane, counts, leaders, warps of which some lanes have ended.
#include <cuda_runtime.h>

__global__ void compact(const int* in, int* out, int* counts, int* leaders, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned lane = threadIdx.x & 31;
  const unsigned active = __activemask();
  unsigned kept = __ballot_sync(active, in[i] % 3 == 0);
  int before = __popc(kept & ((1u << lane) - 1));
  int warp = i / 32;
  if (in[i] % 3 == 0) out[warp * 32 + before] = in[i];
  counts[i] = __popc(kept);
  leaders[i] = __ffs(kept) - 1;
  auto odd = __ballot_sync(0xffffffff, in[i] & 1);
  counts[i] += 100 * (32 - __clz(odd));
  leaders[i] += 1000 * __any_sync(active, in[i] == 12) + 10000 * __all_sync(active, in[i] < 90);
  leaders[i] += (odd >> lane & 1) ? 100000 : 0;
  if (__popcll(odd) > 32) counts[i] = -1;
  if (__all_sync(0xffffffff, in[i] >= 0)) counts[i] += 1000000;  // lanes that have ended do not vote
}

__global__ void halves(const int* in, unsigned* out) {
  int t = threadIdx.x;
  unsigned lane = t % 32;
  unsigned mask = lane < 16 ? 0x0000ffffu : 0xffff0000u;
  unsigned seen = __ballot_sync(mask, in[t] & 1);
  seen = seen * 31 + __match_any_sync(mask, in[t] % 3) + __reduce_add_sync(mask, in[t]);
  int same = 0;
  seen = seen * 31 + __match_all_sync(mask, in[t - t % 16], &same) + same;
  if (lane >= 16) DIVERGED(1) {
    seen += __ballot_sync(0xffff0000u, in[t] & 2) << 3;
  }
  if ((t / 32) % 2 == 1) DIVERGED(2) {  // whole warps, but half of a wavefront of 64
    seen ^= __ballot_sync(0xffffffffu, in[t] & 4);
    __syncwarp();
    seen += __shfl_sync(0xffffffffu, seen, 31 - lane);
  }
  out[t] = seen;
}

int main() {
  const int n = 4 * 96 - 21;
  std::vector<int> in(512), out(512, -1), counts(512), leaders(512);
  std::vector<unsigned> seen(256);
  for (int i = 0; i < 512; ++i) in[i] = static_cast<int>((i * 2654435761u >> 7) % 97);
  simt::launch(4, {96, 1, 1}, [&] { compact(in.data(), out.data(), counts.data(), leaders.data(), n); });
  for (int i = 0; i < n; ++i) std::printf("%d %d %d\n", out[i], counts[i], leaders[i]);
  simt::launch(1, {256, 1, 1}, [&] { halves(in.data(), seen.data()); });
  for (unsigned word : seen) std::printf("%u\n", word);
}
