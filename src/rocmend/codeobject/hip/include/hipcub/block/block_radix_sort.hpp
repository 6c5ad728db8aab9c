// hipcub::BlockRadixSort, where hipCUB is not installed: real code, written from what it computes, one bit at a time.
// Keys are numbers; keys that a decomposer takes apart are not among them.
#ifndef ROCMEND_HIPCUB_BLOCK_RADIX_SORT_HPP
#define ROCMEND_HIPCUB_BLOCK_RADIX_SORT_HPP

#include <hipcub/hipcub.hpp>
#ifdef __HIP__
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#endif

#warning rocmend stand-in: hipcub/block/block_radix_sort.hpp

namespace hipcub {
namespace rocmend {

template <int Bytes>
struct Bits;
template <>
struct Bits<1> {
  using type = unsigned char;
};
template <>
struct Bits<2> {
  using type = unsigned short;
};
template <>
struct Bits<4> {
  using type = unsigned;
};
template <>
struct Bits<8> {
  using type = unsigned long long;
};

template <typename T>
constexpr bool is_number = std::is_arithmetic<T>::value;
#ifdef __HIP__
template <>
constexpr bool is_number<__half> = true;
template <>
constexpr bool is_number<__hip_bfloat16> = true;
template <>
constexpr bool is_number<_Float16> = true;
#endif

// Bits that sort as unsigned numbers as the keys do; -0.0 and 0.0 have the same.
template <typename T>
HIPCUB_DEVICE inline auto radix(const T& key) {
  static_assert(is_number<T>, "rocmend's BlockRadixSort takes numbers");
  using U = typename Bits<sizeof(T)>::type;
  constexpr U sign = static_cast<U>(U(1) << (sizeof(T) * 8 - 1));
  U bits;
  __builtin_memcpy(&bits, &key, sizeof(T));
  if constexpr (std::is_integral<T>::value)
    return static_cast<U>(std::is_signed<T>::value ? bits ^ sign : bits);
  else
    return static_cast<U>(bits == sign ? sign : bits & sign ? ~bits : bits ^ sign);
}

}  // namespace rocmend

template <typename Key, int X, int Items, typename Value = NullType, int RadixBits = 4, bool Memoized = true,
          BlockScanAlgorithm Inner = BLOCK_SCAN_WARP_SCANS, int Config = 0, int Y = 1, int Z = 1, int Arch = 1>
class BlockRadixSort {
  static constexpr int threads = X * Y * Z, all = sizeof(Key) * 8;
  using Scan = BlockScan<int, X, BLOCK_SCAN_WARP_SCANS, Y, Z>;

 public:
  union TempStorage {
    struct {
      unsigned counts[threads * 8];  // the library's, for four bits at a time: what fits here fits there
      typename Scan::TempStorage scan;
    } ranks;
    rocmend::Exchange<Key, threads, Items> keys;
    rocmend::Exchange<Value, threads, Items> values;
  };
  HIPCUB_DEVICE BlockRadixSort() : storage_(own()) {}
  HIPCUB_DEVICE BlockRadixSort(TempStorage& storage) : storage_(storage) {}

#define ROCMEND_SORTED(name, descending, striped)                                                             \
  HIPCUB_DEVICE void name(Key (&keys)[Items], int begin = 0, int end = all) {                                 \
    NullType none[Items];                                                                                     \
    sort<descending, striped>(keys, none, begin, end);                                                        \
  }                                                                                                           \
  HIPCUB_DEVICE void name(Key (&keys)[Items], Value (&values)[Items], int begin = 0, int end = all) {         \
    sort<descending, striped>(keys, values, begin, end);                                                      \
  }
  ROCMEND_SORTED(Sort, false, false)
  ROCMEND_SORTED(SortDescending, true, false)
  ROCMEND_SORTED(SortBlockedToStriped, false, true)
  ROCMEND_SORTED(SortDescendingBlockedToStriped, true, true)
#undef ROCMEND_SORTED

 private:
  template <bool Descending, bool Striped, typename V>
  HIPCUB_DEVICE void sort(Key (&keys)[Items], V (&values)[Items], int begin, int end) {
    const int thread = rocmend::thread<X, Y>();
    for (int bit = begin; bit < end; ++bit) {
      int zeros = 0, before, total, ranks[Items];
      for (int at = 0; at < Items; ++at) {
        ranks[at] = static_cast<int>(rocmend::radix(keys[at]) >> bit & 1) ^ (Descending ? 1 : 0);
        zeros += 1 - ranks[at];
      }
      Scan(storage_.ranks.scan).ExclusiveSum(zeros, before, total);
      for (int at = 0; at < Items; ++at)
        ranks[at] = ranks[at] != 0 ? total + thread * Items + at - before : before++;
      __syncthreads();
      scattered(keys, storage_.keys, ranks, thread);
      if constexpr (!std::is_same<V, NullType>::value) scattered(values, storage_.values, ranks, thread);
    }
    if constexpr (Striped) {
      storage_.keys.to_striped(keys, thread);
      __syncthreads();
      if constexpr (!std::is_same<V, NullType>::value) storage_.values.to_striped(values, thread);
    }
  }
  template <typename V, typename Stored>
  static HIPCUB_DEVICE void scattered(V (&values)[Items], Stored& stored, const int (&ranks)[Items], int thread) {
    for (int at = 0; at < Items; ++at) stored[ranks[at]] = values[at];
    __syncthreads();
    for (int at = 0; at < Items; ++at) values[at] = stored[thread * Items + at];
    __syncthreads();
  }
  static HIPCUB_DEVICE TempStorage& own() {
    __shared__ TempStorage storage;
    return storage;
  }
  TempStorage& storage_;
};

}  // namespace hipcub

#endif
