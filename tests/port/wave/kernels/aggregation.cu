// What programs do with ballots and matches: ranks of digits, counters that one lane adds to for all, sorted lanes, sums
// of segments and of rows, rounds over equal keys; with blocks that end within a warp and a wavefront.
#include <cuda_runtime.h>

template <typename T>
__device__ T from_lane(unsigned mask, T value, int source) {
  return __shfl_sync(mask, value, source);
}

__global__ void digits(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned active = __ballot_sync(0xffffffff, i < n);
  if (i >= n) return;
  int digit = in[i] & 7, lane = threadIdx.x & 31;
  unsigned peers = active, below = (1u << lane) - 1;
  for (int bit = 0; bit < 3; ++bit) {
    unsigned set = __ballot_sync(active, (digit >> bit) & 1);
    peers &= (digit >> bit & 1) ? set : ~set;
  }
  out[i] = __popc(peers & below) + 100 * (__ffs(peers) - 1) + 10000 * (31 - __clz(peers)) + 1000000 * (__popc(peers & ~below) & 7);
}

__device__ int count_one(int* counter) {
  unsigned mask = __activemask();
  int leader = __ffs(mask) - 1, lane = threadIdx.x & 31, base;
  if (lane == leader) base = atomicAdd(counter, __popc(mask));
  base = from_lane(mask, base, leader);
  return base + __popc(mask & ((1u << lane) - 1));
}

__global__ void compact(const int* in, int* out, int* counter, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    if (in[i] % 3 == 0) DIVERGED(7) out[count_one(counter)] = in[i];
}

__global__ void sorted(const int* in, int* out) {
  int lane = threadIdx.x % warpSize, v = in[threadIdx.x];
  for (int size = 2; size <= 32; size <<= 1)
    for (int apart = size >> 1; apart > 0; apart >>= 1) {
      int other = __shfl_xor_sync(0xffffffffu, v, apart);
      bool up = (lane & size) == 0, low = (lane & apart) == 0;
      v = (up == low) ? (v < other ? v : other) : (v > other ? v : other);
    }
  out[threadIdx.x] = v;
}

__global__ void segments(const int* in, int* out) {
  int lane = threadIdx.x % warpSize, v = in[threadIdx.x];
  unsigned heads = __ballot_sync(~0u, v % 5 == 0) | 1u;
  int start = 31 - __clz(heads & (0xffffffffu >> (31 - lane)));
  for (int apart = 1; apart < warpSize; apart *= 2) {
    int other = __shfl_up_sync(~0u, v, apart);
    if (lane - apart >= start) v += other;
  }
  out[threadIdx.x] = v + 1000 * start;
}

__global__ void rows(const int* in, int* out, int columns) {
  int row = blockIdx.x * blockDim.y + threadIdx.y, sum = 0;
  for (int column = threadIdx.x; column < columns; column += warpSize) sum += in[row * columns + column];
  for (int apart = warpSize / 2; apart; apart >>= 1) sum += __shfl_down_sync(-1, sum, apart);
  sum = __shfl_sync(-1, sum, 0);
  int most = __reduce_max_sync(0xffffffffu, sum ^ static_cast<int>(threadIdx.x));
  if (threadIdx.x == 31) out[row] = sum * 64 + most % 64;
}

__global__ void widths(const int* in, int* out) {
  int t = threadIdx.y * blockDim.x + threadIdx.x, v = in[t];
  for (int apart = 4; apart; apart >>= 1) v += __shfl_down_sync(0xffffffff, v, apart, 8);
  int first = __shfl_sync(0xffffffff, v, 0, 8), up = __shfl_up_sync(0xffffffff, in[t], 3, 16);
  int across = __shfl_xor_sync(0xffffffff, in[t], 9, 16), round = __shfl_sync(0xffffffff, in[t], 37, 32);
  out[t] = first + 3 * up + 5 * across + 7 * round + 11 * __shfl_sync(0xffffffff, in[t], -1, 4);
}

__global__ void rounds(const long long* in, int* out) {
  int t = threadIdx.x, order = -1, round = 0, same;
  for (unsigned left = 0xffffffffu; left; ++round) {
    long long key = __shfl_sync(0xffffffffu, in[t], __ffs(left) - 1);
    unsigned equal = __ballot_sync(0xffffffffu, in[t] == key);
    if (in[t] == key) order = round;
    left &= ~equal;
  }
  unsigned any = __match_any_sync(0xffffffffu, in[t]), all = __match_all_sync(any, in[t], &same);
  out[t] = order + 100 * __popc(any) + 10000 * same + 100000 * (all == any);
}

int main() {
  std::vector<int> in(1024), out(1024, -1);
  std::vector<long long> keys(1024);
  for (int i = 0; i < 1024; ++i) {
    in[i] = static_cast<int>((i * 2654435761u >> 7) % 97);
    keys[i] = static_cast<long long>(in[i] % 6) << 33 | 5;
  }
  auto show = [&](const char* name, int count) {
    for (int i = 0; i < count; ++i) std::printf("%s %d\n", name, out[i]);
    for (int& word : out) word = -1;
  };
  for (unsigned threads : {32u, 48u, 96u, 128u, 80u}) {
    simt::launch(3, {threads, 1, 1}, [&] { digits(in.data(), out.data(), static_cast<int>(threads * 3 - 13)); });
    show("digits", static_cast<int>(threads * 3));
  }
  for (unsigned threads : {32u, 64u, 96u, 160u}) {
    int counter = 0, sum = 0;
    simt::launch(1, {threads, 1, 1}, [&] { compact(in.data(), out.data(), &counter, 500); });
    for (int i = 0; i < counter; ++i) sum += out[i] * (out[i] + 3);  // whose turn comes first is open
    std::printf("compact %d %d\n", counter, sum);
    simt::launch(1, {threads, 1, 1}, [&] { sorted(in.data(), out.data()); });
    show("sorted", static_cast<int>(threads));
    simt::launch(1, {threads, 1, 1}, [&] { segments(in.data(), out.data()); });
    show("segments", static_cast<int>(threads));
    simt::launch(1, {threads, 1, 1}, [&] { rounds(keys.data(), out.data()); });
    show("rounds", static_cast<int>(threads));
  }
  simt::launch(4, {32, 5, 1}, [&] { rows(in.data(), out.data(), 45); });
  show("rows", 20);
  simt::launch(1, {16, 10, 1}, [&] { widths(in.data(), out.data()); });
  show("widths", 160);
}
