// hipcub::BlockExchange, where hipCUB is not installed: real code, written from what it computes.
#ifndef ROCMEND_HIPCUB_BLOCK_EXCHANGE_HPP
#define ROCMEND_HIPCUB_BLOCK_EXCHANGE_HPP

#include <hipcub/hipcub.hpp>

#warning rocmend stand-in: hipcub/block/block_exchange.hpp

namespace hipcub {

template <typename T, int X, int Items, bool Sliced = false, int Y = 1, int Z = 1, int Arch = 1>
class BlockExchange {
  static constexpr int threads = X * Y * Z;

 public:
  struct TempStorage {
    rocmend::Exchange<T, threads, Items> items;
  };
  HIPCUB_DEVICE BlockExchange() : storage_(own()) {}
  HIPCUB_DEVICE BlockExchange(TempStorage& storage) : storage_(storage) {}

#define ROCMEND_ARRANGED(name, from, to)                          \
  template <typename Out>                                         \
  HIPCUB_DEVICE void name(T (&values)[Items], Out (&out)[Items]) { \
    for (int at = 0; at < Items; ++at) storage_.items[from(at)] = values[at]; \
    __syncthreads();                                              \
    for (int at = 0; at < Items; ++at) out[at] = storage_.items[to(at)]; \
  }                                                               \
  HIPCUB_DEVICE void name(T (&values)[Items]) { name(values, values); }
  ROCMEND_ARRANGED(StripedToBlocked, striped, blocked)
  ROCMEND_ARRANGED(BlockedToStriped, blocked, striped)
  ROCMEND_ARRANGED(WarpStripedToBlocked, warp_striped, blocked)
  ROCMEND_ARRANGED(BlockedToWarpStriped, blocked, warp_striped)
#undef ROCMEND_ARRANGED

#define ROCMEND_SCATTERED(name, to)                                                          \
  template <typename Out, typename Rank>                                                     \
  HIPCUB_DEVICE void name(T (&values)[Items], Out (&out)[Items], Rank (&ranks)[Items]) {     \
    for (int at = 0; at < Items; ++at) storage_.items[static_cast<int>(ranks[at])] = values[at]; \
    __syncthreads();                                                                         \
    for (int at = 0; at < Items; ++at) out[at] = storage_.items[to(at)];                     \
  }                                                                                          \
  template <typename Rank>                                                                   \
  HIPCUB_DEVICE void name(T (&values)[Items], Rank (&ranks)[Items]) {                        \
    name(values, values, ranks);                                                             \
  }
  ROCMEND_SCATTERED(ScatterToBlocked, blocked)
  ROCMEND_SCATTERED(ScatterToStriped, striped)
#undef ROCMEND_SCATTERED

 private:
  static HIPCUB_DEVICE int blocked(int at) { return rocmend::thread<X, Y>() * Items + at; }
  static HIPCUB_DEVICE int striped(int at) { return rocmend::thread<X, Y>() + at * threads; }
  static HIPCUB_DEVICE int warp_striped(int at) {
    const int thread = rocmend::thread<X, Y>(), first = thread - thread % HIPCUB_DEVICE_WARP_THREADS;
    const int size = threads - first < HIPCUB_DEVICE_WARP_THREADS ? threads - first : HIPCUB_DEVICE_WARP_THREADS;
    return first * Items + at * size + thread - first;
  }
  static HIPCUB_DEVICE TempStorage& own() {
    __shared__ TempStorage storage;
    return storage;
  }
  TempStorage& storage_;
};

}  // namespace hipcub

#endif
