// thrust::tuple, where rocThrust is not installed: the standard library's, with what device code needs before C++20.
#ifndef ROCMEND_THRUST_TUPLE_H
#define ROCMEND_THRUST_TUPLE_H

#warning rocmend stand-in: thrust/tuple.h

#include <thrust/pair.h>

#include <tuple>

namespace thrust {
using std::get;
using std::ignore;
using std::tuple_element;
using std::tuple_size;

// The standard library's is constexpr, and so device code too, but for what assigns.
template <typename... T>
class tuple : public std::tuple<T...> {
 public:
  constexpr tuple() = default;
  constexpr tuple(const tuple&) = default;
  template <typename... U, std::enable_if_t<sizeof...(U) == sizeof...(T) && (std::is_constructible<T, U&&>::value && ...)>* = nullptr>
  __host__ __device__ constexpr tuple(U&&... values) : std::tuple<T...>(std::forward<U>(values)...) {}
  template <typename... U, std::enable_if_t<sizeof...(U) == sizeof...(T) && !std::is_same<tuple, tuple<U...>>::value>* = nullptr>
  __host__ __device__ constexpr tuple(const tuple<U...>& other) : std::tuple<T...>(static_cast<const std::tuple<U...>&>(other)) {}
  template <typename A, typename B, std::enable_if_t<sizeof...(T) == 2 && sizeof(A) != 0>* = nullptr>
  __host__ __device__ constexpr tuple(const pair<A, B>& other) : std::tuple<T...>(other.first, other.second) {}
  __host__ __device__ tuple& operator=(const tuple& other) {
    return assigned(other, std::index_sequence_for<T...>());
  }
  template <typename... U>
  __host__ __device__ tuple& operator=(const tuple<U...>& other) {
    return assigned(other, std::index_sequence_for<T...>());
  }
  template <typename A, typename B>
  __host__ __device__ tuple& operator=(const pair<A, B>& other) {
    static_assert(sizeof...(T) == 2, "a pair has two elements");
    std::get<0>(*this) = other.first;
    std::get<1>(*this) = other.second;
    return *this;
  }
  __host__ __device__ void swap(tuple& other) { swapped(other, std::index_sequence_for<T...>()); }

 private:
  template <typename From, std::size_t... At>
  __host__ __device__ tuple& assigned(const From& other, std::index_sequence<At...>) {
    static_assert(sizeof...(At) == sizeof...(T), "the tuples have different numbers of elements");
    ((std::get<At>(*this) = std::get<At>(other)), ...);
    return *this;
  }
  template <std::size_t... At>
  __host__ __device__ void swapped(tuple& other, std::index_sequence<At...>) {
    (thrust::swap(std::get<At>(*this), std::get<At>(other)), ...);
  }
};
template <typename... T>
tuple(T...) -> tuple<T...>;

template <typename... T>
__host__ __device__ inline void swap(tuple<T...>& one, tuple<T...>& other) {
  one.swap(other);
}
template <typename... T>
__host__ __device__ inline tuple<T...> make_tuple(const T&... values) {
  return tuple<T...>(values...);
}
template <typename... T>
__host__ __device__ inline tuple<T&...> tie(T&... values) {
  return tuple<T&...>(values...);
}
}  // namespace thrust

namespace std {
template <typename... T>
struct tuple_size<thrust::tuple<T...>> : tuple_size<tuple<T...>> {};
template <size_t At, typename... T>
struct tuple_element<At, thrust::tuple<T...>> : tuple_element<At, tuple<T...>> {};
}  // namespace std

#endif
