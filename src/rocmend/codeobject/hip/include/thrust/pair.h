// thrust::pair, where rocThrust is not installed: the names and meanings of thrust/pair.h.
#ifndef ROCMEND_THRUST_PAIR_H
#define ROCMEND_THRUST_PAIR_H

#warning rocmend stand-in: thrust/pair.h

#include <hip/hip_runtime.h>

#include <type_traits>
#include <utility>

namespace thrust {
using std::get;

template <typename First, typename Second>
struct pair {
  using first_type = First;
  using second_type = Second;
  First first;
  Second second;

  __host__ __device__ constexpr pair() : first(), second() {}
  __host__ __device__ constexpr pair(const First& one, const Second& other) : first(one), second(other) {}
  template <typename A, typename B>
  __host__ __device__ constexpr pair(const pair<A, B>& other) : first(other.first), second(other.second) {}
  template <typename A, typename B>
  __host__ __device__ constexpr pair(const std::pair<A, B>& other) : first(other.first), second(other.second) {}
  __host__ __device__ void swap(pair& other) {
    const pair own = *this;
    *this = other;
    other = own;
  }
};
template <std::size_t At, typename First, typename Second>
__host__ __device__ constexpr auto& get(pair<First, Second>& of) {
  if constexpr (At == 0)
    return of.first;
  else
    return of.second;
}
template <std::size_t At, typename First, typename Second>
__host__ __device__ constexpr const auto& get(const pair<First, Second>& of) {
  if constexpr (At == 0)
    return of.first;
  else
    return of.second;
}
#define ROCMEND_COMPARED(op, result)                                                                           \
  template <typename First, typename Second>                                                                   \
  __host__ __device__ constexpr bool operator op(const pair<First, Second>& a, const pair<First, Second>& b) { \
    return result;                                                                                             \
  }
ROCMEND_COMPARED(==, a.first == b.first && a.second == b.second)
ROCMEND_COMPARED(!=, !(a == b))
ROCMEND_COMPARED(<, a.first < b.first || (!(b.first < a.first) && a.second < b.second))
ROCMEND_COMPARED(>, b < a)
ROCMEND_COMPARED(<=, !(b < a))
ROCMEND_COMPARED(>=, !(a < b))
#undef ROCMEND_COMPARED
template <typename First, typename Second>
__host__ __device__ inline void swap(pair<First, Second>& one, pair<First, Second>& other) {
  one.swap(other);
}
template <typename First, typename Second>
__host__ __device__ inline pair<First, Second> make_pair(First first, Second second) {
  return pair<First, Second>(first, second);
}
template <typename T>
__host__ __device__ inline void swap(T& one, T& other) {
  const T own = one;
  one = other;
  other = own;
}
}  // namespace thrust

namespace std {
template <typename First, typename Second>
struct tuple_size<thrust::pair<First, Second>> : integral_constant<size_t, 2> {};
template <size_t At, typename First, typename Second>
struct tuple_element<At, thrust::pair<First, Second>> : tuple_element<At, std::pair<First, Second>> {};
}  // namespace std

#endif
