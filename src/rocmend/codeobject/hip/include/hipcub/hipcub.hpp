// The part of hipCUB that kernels use most, where it is not installed: primitives of a warp and a block are real code,
// written from what they compute (registers and LDS differ from the library's); those of a device are declarations.
#ifndef ROCMEND_HIPCUB_HPP
#define ROCMEND_HIPCUB_HPP

#warning rocmend stand-in: hipcub/hipcub.hpp

#include <hip/hip_runtime.h>

#include <cstddef>
#include <iterator>
#include <type_traits>

#define ROCMEND_BOTH __host__ __device__ inline
#define ROCMEND_DEVICE __device__ inline

#define HIPCUB_DEVICE __device__
#define HIPCUB_HOST __host__
#define HIPCUB_HOST_DEVICE __host__ __device__

#if defined(__AMDGCN_WAVEFRONT_SIZE__)
#define HIPCUB_DEVICE_WARP_THREADS __AMDGCN_WAVEFRONT_SIZE__
#elif defined(__GFX9__)
#define HIPCUB_DEVICE_WARP_THREADS 64
#else
#define HIPCUB_DEVICE_WARP_THREADS 32
#endif
#define HIPCUB_WARP_THREADS HIPCUB_DEVICE_WARP_THREADS

namespace hipcub {

// Operators and values.
struct NullType {};

template <typename Key, typename Value>
struct KeyValuePair {
  Key key;
  Value value;
};

#define ROCMEND_OPERATOR(name, result)                           \
  struct name {                                                  \
    template <typename A, typename B>                            \
    ROCMEND_BOTH auto operator()(const A& a, const B& b) const { \
      return result;                                             \
    }                                                            \
  };
ROCMEND_OPERATOR(Sum, a + b)
ROCMEND_OPERATOR(Difference, a - b)
ROCMEND_OPERATOR(Division, a / b)
ROCMEND_OPERATOR(Max, a < b ? b : a)
ROCMEND_OPERATOR(Min, b < a ? b : a)
ROCMEND_OPERATOR(Equality, a == b)
ROCMEND_OPERATOR(Inequality, !(a == b))
#undef ROCMEND_OPERATOR

struct ArgMax {
  template <typename Key, typename Value>
  ROCMEND_BOTH KeyValuePair<Key, Value> operator()(
      const KeyValuePair<Key, Value>& a, const KeyValuePair<Key, Value>& b) const {
    return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <typename Key, typename Value>
  ROCMEND_BOTH KeyValuePair<Key, Value> operator()(
      const KeyValuePair<Key, Value>& a, const KeyValuePair<Key, Value>& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED,
};

// What the primitives are made of.
namespace rocmend {

constexpr int group = 32;  // lanes that work together; every wavefront holds one or two of them

template <typename T, typename Move>
ROCMEND_DEVICE T moved(const T& value, Move move) {
  constexpr int words = (sizeof(T) + 3) / 4;
  int parts[words] = {};
  __builtin_memcpy(parts, &value, sizeof(T));
  for (int& part : parts) part = move(part);
  T result;
  __builtin_memcpy(&result, parts, sizeof(T));
  return result;
}
// From anywhere in the wavefront: groups need not be powers of two, and nobody uses what comes from another group.
template <typename T>
ROCMEND_DEVICE T from_above(const T& value, int distance) {
  return moved(value, [=](int part) { return __shfl_down(part, distance); });
}
template <typename T>
ROCMEND_DEVICE T from_below(const T& value, int distance) {
  return moved(value, [=](int part) { return __shfl_up(part, distance); });
}
template <typename T>
ROCMEND_DEVICE T from_lane(const T& value, int lane) {
  return moved(value, [=](int part) { return __shfl(part, lane); });
}

// The first lane's result is that of the first `valid` lanes.
template <typename T, typename Op>
ROCMEND_DEVICE T reduced(T value, Op op, int lane, int valid, int width) {
  for (int distance = 1; distance < width; distance *= 2) {
    const T other = from_above(value, distance);
    if (lane + distance < valid) value = op(value, other);
  }
  return value;
}
template <typename T, typename Op>
ROCMEND_DEVICE T scanned(T value, Op op, int lane, int width) {
  for (int distance = 1; distance < width; distance *= 2) {
    const T other = from_below(value, distance);
    if (lane >= distance) value = op(other, value);
  }
  return value;
}

// Values in LDS of a type that need not be trivial.
template <typename T, int Count>
struct Stored {
  alignas(T) unsigned char bytes[sizeof(T) * Count];
  ROCMEND_DEVICE T& operator[](int at) { return reinterpret_cast<T*>(bytes)[at]; }
};

template <int X, int Y>
ROCMEND_DEVICE int thread() {
  return static_cast<int>(threadIdx.x + X * (threadIdx.y + Y * threadIdx.z));
}

struct Nothing {};

// The lanes of a logical warp, and the LDS that the library takes for one whose size is no power of two.
template <typename T, int Threads>
struct Warp {
#ifdef __HIP_DEVICE_COMPILE__
  static constexpr int most = HIPCUB_DEVICE_WARP_THREADS;
#else
  static constexpr int most = 64;
#endif
  static_assert(Threads > 0, "hipCUB: a logical warp has at least one thread");
  static_assert(Threads <= most,
                "hipCUB: a logical warp has at most as many threads as the wavefront; with more, the library does not "
                "compile, traps or computes nothing, by its version");
  using TempStorage = std::conditional_t<(Threads & (Threads - 1)) == 0, Nothing, Stored<T, Threads>>;
  static ROCMEND_DEVICE int lane(TempStorage& storage) {
#ifdef __HIP_DEVICE_COMPILE__
    if constexpr ((Threads & (Threads - 1)) != 0) asm volatile("" : : "v"(&storage));  // or it would not be counted
#endif
    return static_cast<int>(__lane_id()) % Threads;
  }
};

// A block's items in LDS, with as much padding against bank conflicts as the library's: what fits here fits there.
template <typename T, int Threads, int Items>
struct Exchange {
  static constexpr bool padded = Items >= 2 && (Items & (Items - 1)) == 0;
  Stored<T, Threads * Items + (padded ? Threads * Items / 32 : 0)> stored;
  ROCMEND_DEVICE T& operator[](int at) { return stored[padded ? at + at / 32 : at]; }
  ROCMEND_DEVICE void to_blocked(T (&values)[Items], int thread) {
    for (int at = 0; at < Items; ++at) (*this)[at * Threads + thread] = values[at];
    __syncthreads();
    for (int at = 0; at < Items; ++at) values[at] = (*this)[thread * Items + at];
  }
  ROCMEND_DEVICE void to_striped(T (&values)[Items], int thread) {
    for (int at = 0; at < Items; ++at) (*this)[thread * Items + at] = values[at];
    __syncthreads();
    for (int at = 0; at < Items; ++at) values[at] = (*this)[at * Threads + thread];
  }
};
}  // namespace rocmend

// Warps.
template <typename T, int Threads = HIPCUB_DEVICE_WARP_THREADS, int Arch = 1>
class WarpReduce {
 public:
  using TempStorage = typename rocmend::Warp<T, Threads>::TempStorage;
  ROCMEND_DEVICE WarpReduce(TempStorage& storage) : lane_(rocmend::Warp<T, Threads>::lane(storage)) {}
  template <typename Op>
  ROCMEND_DEVICE T Reduce(T value, Op op, int valid = Threads) {
    return rocmend::reduced(value, op, lane_, valid, Threads);
  }
  ROCMEND_DEVICE T Sum(T value, int valid = Threads) { return Reduce(value, hipcub::Sum(), valid); }

 private:
  int lane_;
};

template <typename T, int Threads = HIPCUB_DEVICE_WARP_THREADS, int Arch = 1>
class WarpScan {
 public:
  using TempStorage = typename rocmend::Warp<T, Threads>::TempStorage;
  ROCMEND_DEVICE WarpScan(TempStorage& storage) : lane_(rocmend::Warp<T, Threads>::lane(storage)) {}
  template <typename Op>
  ROCMEND_DEVICE void InclusiveScan(T value, T& out, Op op) {
    out = rocmend::scanned(value, op, lane_, Threads);
  }
  template <typename Op>
  ROCMEND_DEVICE void InclusiveScan(T value, T& out, Op op, T& total) {
    InclusiveScan(value, out, op);
    total = Broadcast(out, Threads - 1);
  }
  template <typename Op>
  ROCMEND_DEVICE void ExclusiveScan(T value, T& out, T first, Op op) {
    const T before = rocmend::from_below(rocmend::scanned(value, op, lane_, Threads), 1);
    out = lane_ == 0 ? first : op(first, before);
  }
  template <typename Op>
  ROCMEND_DEVICE void ExclusiveScan(T value, T& out, T first, Op op, T& total) {
    T inclusive;
    InclusiveScan(value, inclusive, op, total);
    ExclusiveScan(value, out, first, op);
  }
  template <typename Op>
  ROCMEND_DEVICE void ExclusiveScan(T value, T& out, Op op) {
    out = rocmend::from_below(rocmend::scanned(value, op, lane_, Threads), 1);
  }
  ROCMEND_DEVICE void InclusiveSum(T value, T& out) { InclusiveScan(value, out, hipcub::Sum()); }
  ROCMEND_DEVICE void InclusiveSum(T value, T& out, T& total) { InclusiveScan(value, out, hipcub::Sum(), total); }
  ROCMEND_DEVICE void ExclusiveSum(T value, T& out) { ExclusiveScan(value, out, T(), hipcub::Sum()); }
  ROCMEND_DEVICE void ExclusiveSum(T value, T& out, T& total) {
    T inclusive;
    InclusiveSum(value, inclusive, total);
    ExclusiveSum(value, out);
  }
  ROCMEND_DEVICE T Broadcast(T value, unsigned lane) {
    return rocmend::from_lane(value, static_cast<int>(__lane_id()) - lane_ + static_cast<int>(lane));
  }

 private:
  int lane_;
};

// Blocks.
template <typename T, int X, BlockReduceAlgorithm Algorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1,
          int Arch = 1>
class BlockReduce {
  static constexpr int threads = X * Y * Z, groups = (threads + rocmend::group - 1) / rocmend::group;

 public:
  struct TempStorage {
    rocmend::Stored<T, groups> parts;
  };
  ROCMEND_DEVICE BlockReduce() : storage_(own()) {}
  ROCMEND_DEVICE BlockReduce(TempStorage& storage) : storage_(storage) {}

  template <typename Op>
  ROCMEND_DEVICE T Reduce(T value, Op op, int valid) {
    const int thread = rocmend::thread<X, Y>(), lane = thread % rocmend::group, first = thread - lane;
    value = rocmend::reduced(value, op, lane, valid - first, rocmend::group);
    if (lane == 0) storage_.parts[thread / rocmend::group] = value;
    __syncthreads();
    if (thread == 0)
      for (int at = 1; at < groups && at * rocmend::group < valid; ++at) value = op(value, storage_.parts[at]);
    return value;
  }
  template <typename Op>
  ROCMEND_DEVICE T Reduce(T value, Op op) {
    return Reduce(value, op, threads);
  }
  template <int Items, typename Op>
  ROCMEND_DEVICE T Reduce(T (&values)[Items], Op op) {
    T value = values[0];
    for (int at = 1; at < Items; ++at) value = op(value, values[at]);
    return Reduce(value, op);
  }
  ROCMEND_DEVICE T Sum(T value) { return Reduce(value, hipcub::Sum()); }
  ROCMEND_DEVICE T Sum(T value, int valid) { return Reduce(value, hipcub::Sum(), valid); }
  template <int Items>
  ROCMEND_DEVICE T Sum(T (&values)[Items]) {
    return Reduce(values, hipcub::Sum());
  }

 private:
  static ROCMEND_DEVICE TempStorage& own() {
    __shared__ TempStorage storage;
    return storage;
  }
  TempStorage& storage_;
};

template <typename T, int X, BlockScanAlgorithm Algorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int Arch = 1>
class BlockScan {
  static constexpr int threads = X * Y * Z, groups = (threads + rocmend::group - 1) / rocmend::group;

 public:
  struct TempStorage {
    rocmend::Stored<T, groups> parts;
    rocmend::Stored<T, 1> prefix;
  };
  ROCMEND_DEVICE BlockScan() : storage_(own()) {}
  ROCMEND_DEVICE BlockScan(TempStorage& storage) : storage_(storage) {}

  template <typename Op>
  ROCMEND_DEVICE void InclusiveScan(T value, T& out, Op op, T& total) {
    bool any;
    const T before = preceding(value, op, total, any);
    out = any ? op(before, value) : value;
  }
  template <typename Op>
  ROCMEND_DEVICE void InclusiveScan(T value, T& out, Op op) {
    T total;
    InclusiveScan(value, out, op, total);
  }
  template <typename Op>
  ROCMEND_DEVICE void ExclusiveScan(T value, T& out, T first, Op op, T& total) {
    bool any;
    const T before = preceding(value, op, total, any);
    out = any ? op(first, before) : first;
  }
  template <typename Op>
  ROCMEND_DEVICE void ExclusiveScan(T value, T& out, T first, Op op) {
    T total;
    ExclusiveScan(value, out, first, op, total);
  }
  // The first wavefront calls the prefix's function with the block's total; its first lane's answer comes first.
  template <typename Op, typename Prefix, std::enable_if_t<std::is_class<Prefix>::value && !std::is_same<Prefix, T>::value>* = nullptr>
  ROCMEND_DEVICE void ExclusiveScan(T value, T& out, Op op, Prefix& prefix) {
    T total;
    bool any;
    const T before = preceding(value, op, total, any), first = asked(prefix, total);
    out = any ? op(first, before) : first;
  }
  template <typename Op, typename Prefix, std::enable_if_t<std::is_class<Prefix>::value && !std::is_same<Prefix, T>::value>* = nullptr>
  ROCMEND_DEVICE void InclusiveScan(T value, T& out, Op op, Prefix& prefix) {
    T own;
    ExclusiveScan(value, own, op, prefix);
    out = op(own, value);
  }
  ROCMEND_DEVICE void InclusiveSum(T value, T& out) { InclusiveScan(value, out, hipcub::Sum()); }
  template <typename Last>
  ROCMEND_DEVICE void InclusiveSum(T value, T& out, Last& last) {
    InclusiveScan(value, out, hipcub::Sum(), last);
  }
  ROCMEND_DEVICE void ExclusiveSum(T value, T& out) { ExclusiveScan(value, out, T(), hipcub::Sum()); }
  ROCMEND_DEVICE void ExclusiveSum(T value, T& out, T& total) { ExclusiveScan(value, out, T(), hipcub::Sum(), total); }
  template <typename Prefix, std::enable_if_t<std::is_class<Prefix>::value && !std::is_same<Prefix, T>::value>* = nullptr>
  ROCMEND_DEVICE void ExclusiveSum(T value, T& out, Prefix& prefix) {
    ExclusiveScan(value, out, hipcub::Sum(), prefix);
  }

  template <int Items, typename Op>
  ROCMEND_DEVICE void InclusiveScan(T (&values)[Items], T (&out)[Items], Op op) {
    T total;
    InclusiveScan(values, out, op, total);
  }
  template <int Items, typename Op>
  ROCMEND_DEVICE void InclusiveScan(T (&values)[Items], T (&out)[Items], Op op, T& total) {
    bool any;
    T before = preceding(reduced(values, op), op, total, any);
    for (int at = 0; at < Items; ++at) out[at] = before = at != 0 || any ? op(before, values[at]) : values[at];
  }
  template <int Items, typename Op, typename Prefix, std::enable_if_t<std::is_class<Prefix>::value && !std::is_same<Prefix, T>::value>* = nullptr>
  ROCMEND_DEVICE void InclusiveScan(T (&values)[Items], T (&out)[Items], Op op, Prefix& prefix) {
    T before;
    ExclusiveScan(reduced(values, op), before, op, prefix);
    for (int at = 0; at < Items; ++at) out[at] = before = op(before, values[at]);
  }
  template <int Items, typename Op, typename... Last>
  ROCMEND_DEVICE void ExclusiveScan(T (&values)[Items], T (&out)[Items], T first, Op op, Last&... last) {
    T before;
    ExclusiveScan(reduced(values, op), before, first, op, last...);
    for (int at = 0; at < Items; ++at) {
      const T value = values[at];
      out[at] = before;
      before = op(before, value);
    }
  }
  template <int Items, typename... Last>
  ROCMEND_DEVICE void InclusiveSum(T (&values)[Items], T (&out)[Items], Last&... last) {
    InclusiveScan(values, out, hipcub::Sum(), last...);
  }
  template <int Items, typename Op, typename Prefix, std::enable_if_t<std::is_class<Prefix>::value && !std::is_same<Prefix, T>::value>* = nullptr>
  ROCMEND_DEVICE void ExclusiveScan(T (&values)[Items], T (&out)[Items], Op op, Prefix& prefix) {
    T before;
    ExclusiveScan(reduced(values, op), before, op, prefix);
    for (int at = 0; at < Items; ++at) {
      const T value = values[at];
      out[at] = before;
      before = op(before, value);
    }
  }
  template <int Items>
  ROCMEND_DEVICE void ExclusiveSum(T (&values)[Items], T (&out)[Items]) {
    ExclusiveScan(values, out, T(), hipcub::Sum());
  }
  template <int Items>
  ROCMEND_DEVICE void ExclusiveSum(T (&values)[Items], T (&out)[Items], T& total) {
    ExclusiveScan(values, out, T(), hipcub::Sum(), total);
  }

 private:
  template <int Items, typename Op>
  static ROCMEND_DEVICE T reduced(T (&values)[Items], Op op) {
    T sum = values[0];
    for (int at = 1; at < Items; ++at) sum = op(sum, values[at]);
    return sum;
  }
  // Return what comes before a thread's value, if anything does, and what all of them come to.
  template <typename Op>
  ROCMEND_DEVICE T preceding(T value, Op op, T& total, bool& any) {
    const int thread = rocmend::thread<X, Y>(), lane = thread % rocmend::group, number = thread / rocmend::group;
    const T inclusive = rocmend::scanned(value, op, lane, rocmend::group);
    if (lane == rocmend::group - 1 || thread == threads - 1) storage_.parts[number] = inclusive;
    __syncthreads();
    const T below = rocmend::from_below(inclusive, 1);
    total = storage_.parts[0];
    T before = total;
    for (int at = 1; at < groups; ++at) {
      if (at == number) before = total;
      total = op(total, storage_.parts[at]);
    }
    any = thread != 0;
    if (number == 0) return below;
    return lane == 0 ? before : op(before, below);
  }
  template <typename Prefix>
  ROCMEND_DEVICE T asked(Prefix& prefix, const T& total) {
    const int thread = rocmend::thread<X, Y>();
    if (thread < HIPCUB_DEVICE_WARP_THREADS) {
      const T first = prefix(total);
      if (thread == 0) storage_.prefix[0] = first;
    }
    __syncthreads();
    return storage_.prefix[0];
  }
  static ROCMEND_DEVICE TempStorage& own() {
    __shared__ TempStorage storage;
    return storage;
  }
  TempStorage& storage_;
};

template <typename T, int X, int Items, BlockLoadAlgorithm Algorithm = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1,
          int Arch = 1>
class BlockLoad {
  static constexpr int threads = X * Y * Z;
  static constexpr bool transposes = Algorithm == BLOCK_LOAD_TRANSPOSE || Algorithm == BLOCK_LOAD_WARP_TRANSPOSE ||
                                     Algorithm == BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED;

 public:
  struct TempStorage {
    std::conditional_t<transposes, rocmend::Exchange<T, threads, Items>, rocmend::Nothing> items;
  };
  ROCMEND_DEVICE BlockLoad() : storage_(own()) {}
  ROCMEND_DEVICE BlockLoad(TempStorage& storage) : storage_(storage) {}
  template <typename In>
  ROCMEND_DEVICE void Load(In in, T (&values)[Items]) {
    for (int at = 0; at < Items; ++at) values[at] = in[place(at)];
    arrange(values);
  }
  template <typename In>
  ROCMEND_DEVICE void Load(In in, T (&values)[Items], int valid) {
    for (int at = 0; at < Items; ++at)
      if (place(at) < valid) values[at] = in[place(at)];
    arrange(values);
  }
  template <typename In, typename Default>
  ROCMEND_DEVICE void Load(In in, T (&values)[Items], int valid, Default other) {
    for (int at = 0; at < Items; ++at)
      values[at] = place(at) < valid ? static_cast<T>(in[place(at)]) : static_cast<T>(other);
    arrange(values);
  }

 private:
  static ROCMEND_DEVICE int place(int at) {
    const int thread = rocmend::thread<X, Y>();
    return transposes || Algorithm == BLOCK_LOAD_STRIPED ? thread + at * threads : thread * Items + at;
  }
  ROCMEND_DEVICE void arrange(T (&values)[Items]) {
    if constexpr (transposes) storage_.items.to_blocked(values, rocmend::thread<X, Y>());
  }
  static ROCMEND_DEVICE TempStorage& own() {
    __shared__ TempStorage storage;
    return storage;
  }
  TempStorage& storage_;
};

template <typename T, int X, int Items, BlockStoreAlgorithm Algorithm = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1,
          int Arch = 1>
class BlockStore {
  static constexpr int threads = X * Y * Z;
  static constexpr bool transposes = Algorithm == BLOCK_STORE_TRANSPOSE || Algorithm == BLOCK_STORE_WARP_TRANSPOSE ||
                                     Algorithm == BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED;

 public:
  struct TempStorage {
    std::conditional_t<transposes, rocmend::Exchange<T, threads, Items>, rocmend::Nothing> items;
  };
  ROCMEND_DEVICE BlockStore() : storage_(own()) {}
  ROCMEND_DEVICE BlockStore(TempStorage& storage) : storage_(storage) {}
  template <typename Out>
  ROCMEND_DEVICE void Store(Out out, T (&values)[Items]) {
    Store(out, values, threads * Items);
  }
  template <typename Out>
  ROCMEND_DEVICE void Store(Out out, T (&values)[Items], int valid) {
    const int thread = rocmend::thread<X, Y>();
    if constexpr (transposes) storage_.items.to_striped(values, thread);
    for (int at = 0; at < Items; ++at) {
      const int place = transposes || Algorithm == BLOCK_STORE_STRIPED ? thread + at * threads : thread * Items + at;
      if (place < valid) out[place] = values[at];
    }
  }

 private:
  static ROCMEND_DEVICE TempStorage& own() {
    __shared__ TempStorage storage;
    return storage;
  }
  TempStorage& storage_;
};

// Iterators.
template <typename T, typename Offset = std::ptrdiff_t>
class CountingInputIterator {
 public:
  using value_type = T;
  using difference_type = Offset;
  using pointer = T*;
  using reference = T;
  using iterator_category = std::random_access_iterator_tag;
  explicit ROCMEND_BOTH CountingInputIterator(T value) : value_(value) {}
  ROCMEND_BOTH T operator*() const { return value_; }
  ROCMEND_BOTH CountingInputIterator operator+(Offset n) const {
    return CountingInputIterator(static_cast<T>(value_ + n));
  }
  ROCMEND_BOTH T operator[](Offset n) const { return static_cast<T>(value_ + n); }

 private:
  T value_;
};
template <typename T, typename Function, typename In, typename Offset = std::ptrdiff_t>
class TransformInputIterator {
 public:
  using value_type = T;
  using difference_type = Offset;
  using pointer = T*;
  using reference = T;
  using iterator_category = std::random_access_iterator_tag;
  ROCMEND_BOTH TransformInputIterator(In in, Function function) : in_(in), function_(function) {}
  ROCMEND_BOTH T operator*() const { return function_(*in_); }
  ROCMEND_BOTH TransformInputIterator operator+(Offset n) const { return TransformInputIterator(in_ + n, function_); }
  ROCMEND_BOTH T operator[](Offset n) const { return function_(in_[n]); }

 private:
  In in_;
  Function function_;
};

template <typename T>
struct DoubleBuffer {
  T* d_buffers[2] = {};
  int selector = 0;
  DoubleBuffer() = default;
  ROCMEND_BOTH DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  ROCMEND_BOTH T* Current() { return d_buffers[selector]; }
  ROCMEND_BOTH T* Alternate() { return d_buffers[selector ^ 1]; }
};

// Devices: declarations.
#define ROCMEND_CALL(name)   \
  template <typename... Given> \
  static hipError_t name(void* storage, std::size_t& storage_bytes, Given&&... given);
struct DeviceReduce {
  ROCMEND_CALL(Reduce)
  ROCMEND_CALL(ReduceByKey)
  ROCMEND_CALL(Sum)
  ROCMEND_CALL(Max)
  ROCMEND_CALL(Min)
  ROCMEND_CALL(ArgMax)
  ROCMEND_CALL(ArgMin)
};
struct DeviceSegmentedReduce {
  ROCMEND_CALL(Reduce)
  ROCMEND_CALL(Sum)
  ROCMEND_CALL(Max)
  ROCMEND_CALL(Min)
  ROCMEND_CALL(ArgMax)
  ROCMEND_CALL(ArgMin)
};
struct DeviceScan {
  ROCMEND_CALL(InclusiveSum)
  ROCMEND_CALL(InclusiveScan)
  ROCMEND_CALL(InclusiveSumByKey)
  ROCMEND_CALL(InclusiveScanByKey)
  ROCMEND_CALL(ExclusiveSum)
  ROCMEND_CALL(ExclusiveScan)
  ROCMEND_CALL(ExclusiveSumByKey)
  ROCMEND_CALL(ExclusiveScanByKey)
};
struct DeviceRadixSort {
  ROCMEND_CALL(SortKeys)
  ROCMEND_CALL(SortKeysDescending)
  ROCMEND_CALL(SortPairs)
  ROCMEND_CALL(SortPairsDescending)
};
struct DeviceSegmentedRadixSort {
  ROCMEND_CALL(SortKeys)
  ROCMEND_CALL(SortKeysDescending)
  ROCMEND_CALL(SortPairs)
  ROCMEND_CALL(SortPairsDescending)
};
struct DeviceSelect {
  ROCMEND_CALL(Flagged)
  ROCMEND_CALL(If)
  ROCMEND_CALL(Unique)
  ROCMEND_CALL(UniqueByKey)
};
struct DevicePartition {
  ROCMEND_CALL(Flagged)
  ROCMEND_CALL(If)
};
struct DeviceRunLengthEncode {
  ROCMEND_CALL(Encode)
  ROCMEND_CALL(NonTrivialRuns)
};
struct DeviceHistogram {
  ROCMEND_CALL(HistogramEven)
  ROCMEND_CALL(HistogramRange)
};
#undef ROCMEND_CALL

}  // namespace hipcub

#undef ROCMEND_DEVICE
#undef ROCMEND_BOTH

#include <hipcub/block/block_exchange.hpp>
#include <hipcub/block/block_radix_sort.hpp>

#endif
