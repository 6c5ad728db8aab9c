// Half precision for HIP, where the HIP that is installed has no header for it: the names and meanings of hip/hip_fp16.h,
// on clang's own _Float16. Arithmetic is IEEE 754 binary16, each operation rounded once.
#ifndef ROCMEND_HIP_FP16_H
#define ROCMEND_HIP_FP16_H

#warning rocmend stand-in: hip/hip_fp16.h

#include <hip/hip_common.h>
#include <hip/amd_detail/host_defines.h>
#include <hip/amd_detail/amd_hip_vector_types.h>
#include <hip/amd_detail/amd_device_functions.h>
#include <hip/amd_detail/amd_warp_functions.h>
#include <hip/amd_detail/hip_fp16_math_fwd.h>

#include <type_traits>

#define ROCMEND_BOTH __host__ __device__ inline
#define ROCMEND_DEVICE __device__ inline

typedef _Float16 _Float16_2 __attribute__((ext_vector_type(2)));

struct __half_raw {
  union {
    _Float16 data;
    unsigned short x;
  };
};

struct __half2_raw {
  union {
    struct {
      __half_raw x;
      __half_raw y;
    };
    _Float16_2 data;
  };
};

struct __half {
 protected:
  union {
    _Float16 data;
    unsigned short __x;
  };

 public:
  __half() = default;
  __host__ __device__ __half(const __half_raw& x) : data{x.data} {}
#if !defined(__HIP_NO_HALF_CONVERSIONS__)
  __host__ __device__ __half(_Float16 x) : data{x} {}
  template <typename T, std::enable_if_t<std::is_floating_point<T>::value>* = nullptr>
  __host__ __device__ __half(T x) : data{static_cast<_Float16>(x)} {}
  template <typename T, std::enable_if_t<std::is_integral<T>::value>* = nullptr>
  __host__ __device__ __half(T x) : data{static_cast<_Float16>(x)} {}
  template <typename T, std::enable_if_t<std::is_floating_point<T>::value>* = nullptr>
  __host__ __device__ __half& operator=(T x) {
    data = static_cast<_Float16>(x);
    return *this;
  }
  template <typename T, std::enable_if_t<std::is_floating_point<T>::value>* = nullptr>
  __host__ __device__ operator T() const {
    return static_cast<T>(data);
  }
  template <typename T, std::enable_if_t<std::is_integral<T>::value>* = nullptr>
  __host__ __device__ operator T() const {
    return static_cast<T>(data);
  }
#endif
  __host__ __device__ __half& operator=(const __half_raw& x) {
    data = x.data;
    return *this;
  }
  __host__ __device__ volatile __half& operator=(const __half_raw& x) volatile {
    data = x.data;
    return *this;
  }
  __host__ __device__ operator __half_raw() const {
    __half_raw r;
    r.data = data;
    return r;
  }
  __host__ __device__ operator __half_raw() const volatile {
    __half_raw r;
    r.data = data;
    return r;
  }
#if !defined(__HIP_NO_HALF_OPERATORS__)
#define ROCMEND_ASSIGN(op)                                   \
  __host__ __device__ __half& operator op(const __half & x) { \
    data op x.data;                                          \
    return *this;                                            \
  }
  ROCMEND_ASSIGN(+=)
  ROCMEND_ASSIGN(-=)
  ROCMEND_ASSIGN(*=)
  ROCMEND_ASSIGN(/=)
#undef ROCMEND_ASSIGN
  __host__ __device__ __half& operator++() {
    data += static_cast<_Float16>(1);
    return *this;
  }
  __host__ __device__ __half operator++(int) {
    __half before = *this;
    ++*this;
    return before;
  }
  __host__ __device__ __half& operator--() {
    data -= static_cast<_Float16>(1);
    return *this;
  }
  __host__ __device__ __half operator--(int) {
    __half before = *this;
    --*this;
    return before;
  }
  __host__ __device__ __half operator+() const { return *this; }
  __host__ __device__ __half operator-() const {
    __half_raw r;
    r.data = -data;
    return r;
  }
#define ROCMEND_BINARY(op)                                                       \
  friend __host__ __device__ inline __half operator op(const __half& x, const __half& y) { \
    __half_raw r;                                                                \
    r.data = x.data op y.data;                                                   \
    return r;                                                                    \
  }
  ROCMEND_BINARY(+)
  ROCMEND_BINARY(-)
  ROCMEND_BINARY(*)
  ROCMEND_BINARY(/)
#undef ROCMEND_BINARY
#define ROCMEND_COMPARE(op) \
  friend __host__ __device__ inline bool operator op(const __half& x, const __half& y) { return x.data op y.data; }
  ROCMEND_COMPARE(==)
  ROCMEND_COMPARE(!=)
  ROCMEND_COMPARE(<)
  ROCMEND_COMPARE(<=)
  ROCMEND_COMPARE(>)
  ROCMEND_COMPARE(>=)
#undef ROCMEND_COMPARE
#endif
};

struct __half2 {
  union {
    struct {
      __half x;
      __half y;
    };
    _Float16_2 data;
  };

  __half2() = default;
  __host__ __device__ __half2(const __half2& o) : data{o.data} {}
  __host__ __device__ __half2(const __half2_raw& o) : data{o.data} {}
  __host__ __device__ __half2(_Float16_2 o) : data{o} {}
  __host__ __device__ __half2(const __half& a, const __half& b)
      : data{static_cast<__half_raw>(a).data, static_cast<__half_raw>(b).data} {}
  __host__ __device__ __half2& operator=(const __half2& o) {
    data = o.data;
    return *this;
  }
  __host__ __device__ __half2& operator=(const __half2_raw& o) {
    data = o.data;
    return *this;
  }
  __host__ __device__ operator __half2_raw() const {
    __half2_raw r;
    r.data = data;
    return r;
  }
  __host__ __device__ operator _Float16_2() const { return data; }
#if !defined(__HIP_NO_HALF_OPERATORS__)
#define ROCMEND_ASSIGN(op)                                     \
  __host__ __device__ __half2& operator op(const __half2 & o) { \
    data op o.data;                                            \
    return *this;                                              \
  }
  ROCMEND_ASSIGN(+=)
  ROCMEND_ASSIGN(-=)
  ROCMEND_ASSIGN(*=)
  ROCMEND_ASSIGN(/=)
#undef ROCMEND_ASSIGN
  __host__ __device__ __half2 operator+() const { return *this; }
  __host__ __device__ __half2 operator-() const { return __half2(-data); }
#define ROCMEND_BINARY(op)                                                                    \
  friend __host__ __device__ inline __half2 operator op(const __half2& a, const __half2& b) { \
    return __half2(a.data op b.data);                                                         \
  }
  ROCMEND_BINARY(+)
  ROCMEND_BINARY(-)
  ROCMEND_BINARY(*)
  ROCMEND_BINARY(/)
#undef ROCMEND_BINARY
  friend __host__ __device__ inline bool operator==(const __half2& a, const __half2& b) {
    return a.data[0] == b.data[0] && a.data[1] == b.data[1];
  }
  friend __host__ __device__ inline bool operator!=(const __half2& a, const __half2& b) { return !(a == b); }
#endif
};

#if !defined(HIP_NO_HALF)
using half = __half;
using half2 = __half2;
#endif

namespace rocmend_half {
ROCMEND_BOTH _Float16 of(__half x) { return static_cast<__half_raw>(x).data; }
ROCMEND_BOTH __half make(_Float16 x) {
  __half_raw r;
  r.data = x;
  return r;
}
ROCMEND_BOTH __half2 make2(_Float16 x, _Float16 y) { return __half2(_Float16_2{x, y}); }
ROCMEND_BOTH _Float16 clamped(_Float16 x) { return x < _Float16(0) ? _Float16(0) : x > _Float16(1) ? _Float16(1) : x; }
}  // namespace rocmend_half

// Conversions.
ROCMEND_BOTH __half __float2half(float x) { return rocmend_half::make(static_cast<_Float16>(x)); }
ROCMEND_BOTH __half __float2half_rn(float x) { return __float2half(x); }
ROCMEND_DEVICE __half __float2half_rz(float x) { return rocmend_half::make(__ocml_cvtrtz_f16_f32(x)); }
ROCMEND_DEVICE __half __float2half_rd(float x) { return rocmend_half::make(__ocml_cvtrtn_f16_f32(x)); }
ROCMEND_DEVICE __half __float2half_ru(float x) { return rocmend_half::make(__ocml_cvtrtp_f16_f32(x)); }
ROCMEND_BOTH float __half2float(__half x) { return static_cast<float>(rocmend_half::of(x)); }
ROCMEND_BOTH __half2 __float2half2_rn(float x) { return __half2(__float2half(x), __float2half(x)); }
ROCMEND_BOTH __half2 __floats2half2_rn(float x, float y) { return __half2(__float2half(x), __float2half(y)); }
ROCMEND_BOTH __half2 __float22half2_rn(float2 x) { return __floats2half2_rn(x.x, x.y); }
ROCMEND_BOTH float2 __half22float2(__half2 x) { return float2{__half2float(x.x), __half2float(x.y)}; }
ROCMEND_BOTH __half2 __half2half2(__half x) { return __half2(x, x); }
ROCMEND_BOTH __half2 make_half2(__half x, __half y) { return __half2(x, y); }
ROCMEND_BOTH __half2 __halves2half2(__half x, __half y) { return __half2(x, y); }
ROCMEND_BOTH __half __low2half(__half2 x) { return x.x; }
ROCMEND_BOTH __half __high2half(__half2 x) { return x.y; }
ROCMEND_BOTH float __low2float(__half2 x) { return __half2float(x.x); }
ROCMEND_BOTH float __high2float(__half2 x) { return __half2float(x.y); }
ROCMEND_BOTH __half2 __low2half2(__half2 x) { return __half2(x.x, x.x); }
ROCMEND_BOTH __half2 __high2half2(__half2 x) { return __half2(x.y, x.y); }
ROCMEND_BOTH __half2 __lows2half2(__half2 x, __half2 y) { return __half2(x.x, y.x); }
ROCMEND_BOTH __half2 __highs2half2(__half2 x, __half2 y) { return __half2(x.y, y.y); }
ROCMEND_BOTH __half2 __lowhigh2highlow(__half2 x) { return __half2(x.y, x.x); }
ROCMEND_BOTH short __half_as_short(__half x) { return __builtin_bit_cast(short, rocmend_half::of(x)); }
ROCMEND_BOTH unsigned short __half_as_ushort(__half x) { return __builtin_bit_cast(unsigned short, rocmend_half::of(x)); }
ROCMEND_BOTH __half __short_as_half(short x) { return rocmend_half::make(__builtin_bit_cast(_Float16, x)); }
ROCMEND_BOTH __half __ushort_as_half(unsigned short x) { return rocmend_half::make(__builtin_bit_cast(_Float16, x)); }

// HIP converts integers by a plain cast, whatever the rounding that the name asks for.
#define ROCMEND_INTEGER(name, type)                                                                       \
  ROCMEND_BOTH type __half2##name##_rn(__half x) { return static_cast<type>(rocmend_half::of(x)); }      \
  ROCMEND_BOTH type __half2##name##_rz(__half x) { return static_cast<type>(rocmend_half::of(x)); }      \
  ROCMEND_BOTH type __half2##name##_rd(__half x) { return static_cast<type>(rocmend_half::of(x)); }      \
  ROCMEND_BOTH type __half2##name##_ru(__half x) { return static_cast<type>(rocmend_half::of(x)); }      \
  ROCMEND_BOTH __half __##name##2half_rn(type x) { return rocmend_half::make(static_cast<_Float16>(x)); } \
  ROCMEND_BOTH __half __##name##2half_rz(type x) { return rocmend_half::make(static_cast<_Float16>(x)); } \
  ROCMEND_BOTH __half __##name##2half_rd(type x) { return rocmend_half::make(static_cast<_Float16>(x)); } \
  ROCMEND_BOTH __half __##name##2half_ru(type x) { return rocmend_half::make(static_cast<_Float16>(x)); }
ROCMEND_INTEGER(int, int)
ROCMEND_INTEGER(short, short)
ROCMEND_INTEGER(ll, long long)
ROCMEND_INTEGER(uint, unsigned int)
ROCMEND_INTEGER(ushort, unsigned short)
ROCMEND_INTEGER(ull, unsigned long long)
#undef ROCMEND_INTEGER

// Arithmetic.
#define ROCMEND_ARITHMETIC(name, op)                                                                                \
  ROCMEND_BOTH __half __h##name(__half x, __half y) {                                                              \
    return rocmend_half::make(rocmend_half::of(x) op rocmend_half::of(y));                                         \
  }                                                                                                                \
  ROCMEND_BOTH __half __h##name##_sat(__half x, __half y) {                                                        \
    return rocmend_half::make(rocmend_half::clamped(rocmend_half::of(x) op rocmend_half::of(y)));                  \
  }                                                                                                                \
  ROCMEND_BOTH __half __h##name##_rn(__half x, __half y) { return __h##name(x, y); }                               \
  ROCMEND_BOTH __half2 __h##name##2(__half2 x, __half2 y) { return __half2(x.data op y.data); }                    \
  ROCMEND_BOTH __half2 __h##name##2_rn(__half2 x, __half2 y) { return __half2(x.data op y.data); }                 \
  ROCMEND_BOTH __half2 __h##name##2_sat(__half2 x, __half2 y) {                                                    \
    const _Float16_2 r = x.data op y.data;                                                                         \
    return rocmend_half::make2(rocmend_half::clamped(r[0]), rocmend_half::clamped(r[1]));                          \
  }
ROCMEND_ARITHMETIC(add, +)
ROCMEND_ARITHMETIC(sub, -)
ROCMEND_ARITHMETIC(mul, *)
#undef ROCMEND_ARITHMETIC
ROCMEND_BOTH __half __hdiv(__half x, __half y) { return rocmend_half::make(rocmend_half::of(x) / rocmend_half::of(y)); }
ROCMEND_BOTH __half2 __h2div(__half2 x, __half2 y) { return __half2(x.data / y.data); }
ROCMEND_BOTH __half __hneg(__half x) { return rocmend_half::make(-rocmend_half::of(x)); }
ROCMEND_BOTH __half2 __hneg2(__half2 x) { return __half2(-x.data); }
ROCMEND_BOTH __half __habs(__half x) { return __ushort_as_half(__half_as_ushort(x) & 0x7fff); }
ROCMEND_BOTH __half2 __habs2(__half2 x) { return __half2(__habs(x.x), __habs(x.y)); }
ROCMEND_DEVICE __half __hfma(__half x, __half y, __half z) {
  return rocmend_half::make(__ocml_fma_f16(rocmend_half::of(x), rocmend_half::of(y), rocmend_half::of(z)));
}
ROCMEND_DEVICE __half __hfma_sat(__half x, __half y, __half z) {
  return rocmend_half::make(rocmend_half::clamped(rocmend_half::of(__hfma(x, y, z))));
}
ROCMEND_DEVICE __half2 __hfma2(__half2 x, __half2 y, __half2 z) {
  return __half2(__builtin_elementwise_fma(x.data, y.data, z.data));
}
ROCMEND_DEVICE __half2 __hfma2_sat(__half2 x, __half2 y, __half2 z) {
  return __half2(__hfma_sat(x.x, y.x, z.x), __hfma_sat(x.y, y.y, z.y));
}

// Comparisons: the unordered ones are true where an operand is NaN.
ROCMEND_BOTH bool __hisnan(__half x) { return rocmend_half::of(x) != rocmend_half::of(x); }
ROCMEND_BOTH int __hisinf(__half x) {
  return (__half_as_ushort(x) & 0x7fff) == 0x7c00 ? (__half_as_ushort(x) >> 15 ? -1 : 1) : 0;
}
ROCMEND_BOTH __half2 __hisnan2(__half2 x) {
  return rocmend_half::make2(static_cast<_Float16>(__hisnan(x.x)), static_cast<_Float16>(__hisnan(x.y)));
}
#define ROCMEND_COMPARE(name, ordered)                                                             \
  ROCMEND_BOTH bool __h##name(__half x, __half y) { return rocmend_half::of(x) ordered rocmend_half::of(y); } \
  ROCMEND_BOTH bool __h##name##u(__half x, __half y) {                                                       \
    return __hisnan(x) || __hisnan(y) || rocmend_half::of(x) ordered rocmend_half::of(y);                    \
  }                                                                                                          \
  ROCMEND_BOTH __half2 __h##name##2(__half2 x, __half2 y) {                                                  \
    return rocmend_half::make2(static_cast<_Float16>(__h##name(x.x, y.x)),                                   \
                               static_cast<_Float16>(__h##name(x.y, y.y)));                                  \
  }                                                                                                          \
  ROCMEND_BOTH __half2 __h##name##u2(__half2 x, __half2 y) {                                                 \
    return rocmend_half::make2(static_cast<_Float16>(__h##name##u(x.x, y.x)),                                \
                               static_cast<_Float16>(__h##name##u(x.y, y.y)));                               \
  }                                                                                                          \
  ROCMEND_BOTH bool __hb##name##2(__half2 x, __half2 y) { return __h##name(x.x, y.x) && __h##name(x.y, y.y); } \
  ROCMEND_BOTH bool __hb##name##u2(__half2 x, __half2 y) { return __h##name##u(x.x, y.x) && __h##name##u(x.y, y.y); }
ROCMEND_COMPARE(eq, ==)
ROCMEND_COMPARE(ne, !=)
ROCMEND_COMPARE(lt, <)
ROCMEND_COMPARE(le, <=)
ROCMEND_COMPARE(gt, >)
ROCMEND_COMPARE(ge, >=)
#undef ROCMEND_COMPARE
ROCMEND_DEVICE __half __hmax(__half x, __half y) {
  return rocmend_half::make(__ocml_fmax_f16(rocmend_half::of(x), rocmend_half::of(y)));
}
ROCMEND_DEVICE __half __hmin(__half x, __half y) {
  return rocmend_half::make(__ocml_fmin_f16(rocmend_half::of(x), rocmend_half::of(y)));
}
ROCMEND_DEVICE __half __hmax_nan(__half x, __half y) { return __hisnan(x) ? x : __hisnan(y) ? y : __hmax(x, y); }
ROCMEND_DEVICE __half __hmin_nan(__half x, __half y) { return __hisnan(x) ? x : __hisnan(y) ? y : __hmin(x, y); }

// Mathematics.
#define ROCMEND_MATH(name)                                                                                    \
  ROCMEND_DEVICE __half h##name(__half x) { return rocmend_half::make(__ocml_##name##_f16(rocmend_half::of(x))); } \
  ROCMEND_DEVICE __half2 h2##name(__half2 x) { return __half2(h##name(x.x), h##name(x.y)); }
ROCMEND_MATH(sqrt)
ROCMEND_MATH(rsqrt)
ROCMEND_MATH(exp)
ROCMEND_MATH(exp2)
ROCMEND_MATH(exp10)
ROCMEND_MATH(log)
ROCMEND_MATH(log2)
ROCMEND_MATH(log10)
ROCMEND_MATH(sin)
ROCMEND_MATH(cos)
ROCMEND_MATH(ceil)
ROCMEND_MATH(floor)
ROCMEND_MATH(rint)
ROCMEND_MATH(trunc)
#undef ROCMEND_MATH
ROCMEND_DEVICE __half hrcp(__half x) { return rocmend_half::make(_Float16(1) / rocmend_half::of(x)); }
ROCMEND_DEVICE __half2 h2rcp(__half2 x) { return __half2(hrcp(x.x), hrcp(x.y)); }

// Loads and lanes.
ROCMEND_DEVICE __half __ldg(const __half* x) { return *x; }
ROCMEND_DEVICE __half __ldcg(const __half* x) { return *x; }
ROCMEND_DEVICE __half __ldca(const __half* x) { return *x; }
ROCMEND_DEVICE __half __ldcs(const __half* x) { return *x; }
ROCMEND_DEVICE __half2 __ldg(const __half2* x) { return *x; }
ROCMEND_DEVICE __half2 __ldcg(const __half2* x) { return *x; }
ROCMEND_DEVICE __half2 __ldca(const __half2* x) { return *x; }
ROCMEND_DEVICE __half2 __ldcs(const __half2* x) { return *x; }
#define ROCMEND_LANES(name, kind)                                                                 \
  ROCMEND_DEVICE __half name(__half x, kind lane, int width = warpSize) {                         \
    return __ushort_as_half(static_cast<unsigned short>(name(static_cast<int>(__half_as_ushort(x)), lane, width))); \
  }                                                                                               \
  ROCMEND_DEVICE __half2 name(__half2 x, kind lane, int width = warpSize) {                       \
    return __half2(__builtin_bit_cast(_Float16_2, name(__builtin_bit_cast(int, x.data), lane, width))); \
  }
ROCMEND_LANES(__shfl, int)
ROCMEND_LANES(__shfl_xor, int)
ROCMEND_LANES(__shfl_up, unsigned int)
ROCMEND_LANES(__shfl_down, unsigned int)
#undef ROCMEND_LANES

#undef ROCMEND_BOTH
#undef ROCMEND_DEVICE
#endif
