// Scans up and down, segments narrower than a warp, matches and reductions by instruction, two-dimensional blocks.
#include <cuda_runtime.h>

__device__ int inclusive(int value) {
  const int lane = (threadIdx.y * blockDim.x + threadIdx.x) & 0x1f;
  for (int step = 1; step < 32; step *= 2) {
    int other = __shfl_up_sync(0xffffffff, value, step);
    if (lane >= step) value += other;
  }
  return value;
}

__global__ void scans(const int* in, long long* out) {
  int t = threadIdx.y * blockDim.x + threadIdx.x;
  int value = in[t];
  long long r = inclusive(value);
  r = r * 31 + __shfl_sync(0xffffffff, value, t / 3, 8);
  r = r * 31 + __shfl_up_sync(0xffffffff, value, 3, 16);
  r = r * 31 + __shfl_down_sync(0xffffffff, value, 5, 8);
  r = r * 31 + __shfl_xor_sync(0xffffffff, value, 6, 4);
  r = r * 31 + __shfl_sync(0xffffffff, (double)value, 37);
  r = r * 31 + __match_any_sync(0xffffffff, value % 5);
  int same = 0;
  r = r * 31 + __match_all_sync(0xffffffff, t / 32 == 2 ? 7 : value, &same) + same;
  r = r * 31 + __reduce_add_sync(0xffffffff, value) + __reduce_max_sync(0xffffffff, -value);
  r = r * 31 + __reduce_min_sync(0xffffffff, static_cast<unsigned>(value));
  r = r * 31 + __reduce_xor_sync(0xffffffff, 3u * value) + __reduce_and_sync(0xffffffff, value | 64u);
  unsigned some = __ballot_sync(0xffffffff, value % 2);
  if (value % 2) DIVERGED(1) {
    r = r * 31 + __reduce_or_sync(some, static_cast<unsigned>(value));
    r = r * 31 + __match_any_sync(some, value % 3);
    r = r * 31 + __shfl_sync(some, value, __ffs(some) - 1);
  }
  out[t] = r;
}

__global__ void old(const int* in, int* out) {  // as CUDA 8 wrote it
  int t = threadIdx.x;
  int value = in[t];
  for (int offset = warpSize / 2; offset; offset >>= 1) value += __shfl_down(value, offset);
  value = __shfl(value, 0);
  if (__any(in[t] > 90)) value += 1000;
  if (__all(in[t] > 3)) value += 10000;
  out[t] = value + __popc(__ballot(in[t] < 10)) * 100000;
}

int main() {
  std::vector<int> in(256), again(256);
  std::vector<long long> out(256);
  for (int i = 0; i < 256; ++i) in[i] = static_cast<int>((i * 2654435761u >> 9) % 97);
  for (dim3 shape : {dim3{16, 10, 1}, dim3{8, 4, 1}, dim3{256, 1, 1}}) {
    simt::launch(1, shape, [&] { scans(in.data(), out.data()); });
    for (long long word : out) std::printf("%lld\n", word);
  }
  simt::launch(1, {160, 1, 1}, [&] { old(in.data(), again.data()); });
  for (int word : again) std::printf("%d\n", word);
}
