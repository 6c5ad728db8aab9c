// bfloat16 for HIP, where the HIP that is installed has no header for it: the names and meanings of hip/hip_bf16.h. A
// value is computed with in fp32 and rounded to nearest even once.
#ifndef ROCMEND_HIP_BF16_H
#define ROCMEND_HIP_BF16_H

#warning rocmend stand-in: hip/hip_bf16.h

#include <hip/hip_common.h>
#include <hip/amd_detail/host_defines.h>
#include <hip/amd_detail/amd_hip_vector_types.h>
#include <hip/amd_detail/amd_device_functions.h>
#include <hip/amd_detail/amd_math_functions.h>
#include <hip/amd_detail/amd_warp_functions.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#define ROCMEND_BOTH __host__ __device__ inline
#define ROCMEND_DEVICE __device__ inline

struct __hip_bfloat16_raw {
  unsigned short x;
};

struct __hip_bfloat162_raw {
  unsigned short x;
  unsigned short y;
};

namespace rocmend_bf16 {
ROCMEND_BOTH float widened(unsigned short x) { return __builtin_bit_cast(float, static_cast<unsigned int>(x) << 16); }
ROCMEND_BOTH unsigned short rounded(float x) {
  const unsigned int bits = __builtin_bit_cast(unsigned int, x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<unsigned short>((bits >> 16) | 0x40u);  // NaN stays NaN
  return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
// Rounded to odd first: rounding to fp32 and then to bfloat16 would round twice.
ROCMEND_BOTH unsigned short rounded(double x) {
  float narrow = static_cast<float>(x);
  unsigned int bits = __builtin_bit_cast(unsigned int, narrow);
  if (static_cast<double>(narrow) != x && narrow == narrow && (bits & 1u) == 0 && (bits & 0x7f800000u) != 0x7f800000u) {
    const bool beyond = (narrow < 0 ? static_cast<double>(narrow) < x : static_cast<double>(narrow) > x);
    bits = (bits & 0x7fffffffu) == 0 ? bits | 1u : beyond ? bits - 1u : bits | 1u;
    narrow = __builtin_bit_cast(float, bits);
  }
  return rounded(narrow);
}
}  // namespace rocmend_bf16

struct __hip_bfloat16 {
 protected:
  unsigned short __x;

 public:
  __hip_bfloat16() = default;
  __host__ __device__ __hip_bfloat16(const __hip_bfloat16_raw& r) : __x(r.x) {}
  __host__ __device__ __hip_bfloat16(float x) : __x(rocmend_bf16::rounded(x)) {}
  __host__ __device__ __hip_bfloat16(double x) : __x(rocmend_bf16::rounded(x)) {}
  __host__ __device__ __hip_bfloat16(int x) : __x(rocmend_bf16::rounded(static_cast<double>(x))) {}
  __host__ __device__ __hip_bfloat16(unsigned int x) : __x(rocmend_bf16::rounded(static_cast<double>(x))) {}
  __host__ __device__ __hip_bfloat16(short x) : __x(rocmend_bf16::rounded(static_cast<float>(x))) {}
  __host__ __device__ __hip_bfloat16(unsigned short x) : __x(rocmend_bf16::rounded(static_cast<float>(x))) {}
  __host__ __device__ __hip_bfloat16(long long x) : __x(rocmend_bf16::rounded(static_cast<float>(x))) {}
  __host__ __device__ __hip_bfloat16(unsigned long long x) : __x(rocmend_bf16::rounded(static_cast<float>(x))) {}
  __host__ __device__ __hip_bfloat16(long x) : __x(rocmend_bf16::rounded(static_cast<float>(x))) {}
  __host__ __device__ __hip_bfloat16(unsigned long x) : __x(rocmend_bf16::rounded(static_cast<float>(x))) {}
  __host__ __device__ __hip_bfloat16& operator=(const __hip_bfloat16_raw& r) {
    __x = r.x;
    return *this;
  }
  __host__ __device__ operator __hip_bfloat16_raw() const { return __hip_bfloat16_raw{__x}; }
  __host__ __device__ operator __hip_bfloat16_raw() const volatile { return __hip_bfloat16_raw{__x}; }
  __host__ __device__ operator float() const { return rocmend_bf16::widened(__x); }
#define ROCMEND_CAST(type) \
  __host__ __device__ explicit operator type() const { return static_cast<type>(rocmend_bf16::widened(__x)); }
  ROCMEND_CAST(bool)
  ROCMEND_CAST(char)
  ROCMEND_CAST(signed char)
  ROCMEND_CAST(unsigned char)
  ROCMEND_CAST(short)
  ROCMEND_CAST(unsigned short)
  ROCMEND_CAST(int)
  ROCMEND_CAST(unsigned int)
  ROCMEND_CAST(long)
  ROCMEND_CAST(unsigned long)
  ROCMEND_CAST(long long)
  ROCMEND_CAST(unsigned long long)
  ROCMEND_CAST(double)
#undef ROCMEND_CAST
};

struct __hip_bfloat162 {
  __hip_bfloat16 x;
  __hip_bfloat16 y;
  __hip_bfloat162() = default;
  __host__ __device__ __hip_bfloat162(const __hip_bfloat16& a, const __hip_bfloat16& b) : x(a), y(b) {}
  __host__ __device__ __hip_bfloat162(const __hip_bfloat162_raw& r)
      : x(__hip_bfloat16_raw{r.x}), y(__hip_bfloat16_raw{r.y}) {}
  __host__ __device__ operator __hip_bfloat162_raw() const {
    return __hip_bfloat162_raw{static_cast<__hip_bfloat16_raw>(x).x, static_cast<__hip_bfloat16_raw>(y).x};
  }
  __host__ __device__ operator float2() const { return float2{static_cast<float>(x), static_cast<float>(y)}; }
};

// Conversions.
ROCMEND_BOTH __hip_bfloat16 __float2bfloat16(float x) { return __hip_bfloat16(x); }
ROCMEND_BOTH __hip_bfloat16 __double2bfloat16(double x) { return __hip_bfloat16(x); }
ROCMEND_BOTH float __bfloat162float(__hip_bfloat16 x) { return static_cast<float>(x); }
ROCMEND_BOTH __hip_bfloat162 __float22bfloat162_rn(float2 x) {
  return __hip_bfloat162(__hip_bfloat16(x.x), __hip_bfloat16(x.y));
}
ROCMEND_BOTH float2 __bfloat1622float2(__hip_bfloat162 x) { return static_cast<float2>(x); }
ROCMEND_BOTH __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 x) { return __hip_bfloat162(x, x); }
ROCMEND_BOTH __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return __hip_bfloat162(x, y); }
ROCMEND_BOTH __hip_bfloat16 __low2bfloat16(__hip_bfloat162 x) { return x.x; }
ROCMEND_BOTH __hip_bfloat16 __high2bfloat16(__hip_bfloat162 x) { return x.y; }
ROCMEND_BOTH float __low2float(__hip_bfloat162 x) { return static_cast<float>(x.x); }
ROCMEND_BOTH float __high2float(__hip_bfloat162 x) { return static_cast<float>(x.y); }
ROCMEND_BOTH __hip_bfloat162 __low2bfloat162(__hip_bfloat162 x) { return __hip_bfloat162(x.x, x.x); }
ROCMEND_BOTH __hip_bfloat162 __high2bfloat162(__hip_bfloat162 x) { return __hip_bfloat162(x.y, x.y); }
ROCMEND_BOTH __hip_bfloat162 __lows2bfloat162(__hip_bfloat162 x, __hip_bfloat162 y) { return __hip_bfloat162(x.x, y.x); }
ROCMEND_BOTH __hip_bfloat162 __highs2bfloat162(__hip_bfloat162 x, __hip_bfloat162 y) { return __hip_bfloat162(x.y, y.y); }
ROCMEND_BOTH __hip_bfloat162 __lowhigh2highlow(__hip_bfloat162 x) { return __hip_bfloat162(x.y, x.x); }
ROCMEND_BOTH unsigned short __bfloat16_as_ushort(__hip_bfloat16 x) { return static_cast<__hip_bfloat16_raw>(x).x; }
ROCMEND_BOTH short __bfloat16_as_short(__hip_bfloat16 x) { return static_cast<short>(__bfloat16_as_ushort(x)); }
ROCMEND_BOTH __hip_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __hip_bfloat16(__hip_bfloat16_raw{x}); }
ROCMEND_BOTH __hip_bfloat16 __short_as_bfloat16(short x) { return __ushort_as_bfloat16(static_cast<unsigned short>(x)); }

// Arithmetic.
#define ROCMEND_ARITHMETIC(name, op)                                                                        \
  ROCMEND_BOTH __hip_bfloat16 __h##name(__hip_bfloat16 x, __hip_bfloat16 y) {                              \
    return __hip_bfloat16(static_cast<float>(x) op static_cast<float>(y));                                 \
  }                                                                                                        \
  ROCMEND_BOTH __hip_bfloat162 __h##name##2(__hip_bfloat162 x, __hip_bfloat162 y) {                        \
    return __hip_bfloat162(__h##name(x.x, y.x), __h##name(x.y, y.y));                                      \
  }                                                                                                        \
  ROCMEND_BOTH __hip_bfloat16 operator op(const __hip_bfloat16& x, const __hip_bfloat16& y) {              \
    return __h##name(x, y);                                                                                \
  }                                                                                                        \
  ROCMEND_BOTH __hip_bfloat16& operator op##=(__hip_bfloat16 & x, const __hip_bfloat16& y) {               \
    return x = __h##name(x, y);                                                                            \
  }                                                                                                        \
  ROCMEND_BOTH __hip_bfloat162 operator op(const __hip_bfloat162& x, const __hip_bfloat162& y) {           \
    return __hip_bfloat162(__h##name(x.x, y.x), __h##name(x.y, y.y));                                      \
  }                                                                                                        \
  ROCMEND_BOTH __hip_bfloat162& operator op##=(__hip_bfloat162 & x, const __hip_bfloat162& y) {            \
    return x = x op y;                                                                                     \
  }
ROCMEND_ARITHMETIC(add, +)
ROCMEND_ARITHMETIC(sub, -)
ROCMEND_ARITHMETIC(mul, *)
ROCMEND_ARITHMETIC(div, /)
#undef ROCMEND_ARITHMETIC
ROCMEND_BOTH __hip_bfloat162 __h2div(__hip_bfloat162 x, __hip_bfloat162 y) { return x / y; }
ROCMEND_BOTH __hip_bfloat16 __hneg(__hip_bfloat16 x) { return __ushort_as_bfloat16(__bfloat16_as_ushort(x) ^ 0x8000); }
ROCMEND_BOTH __hip_bfloat162 __hneg2(__hip_bfloat162 x) { return __hip_bfloat162(__hneg(x.x), __hneg(x.y)); }
ROCMEND_BOTH __hip_bfloat16 operator-(const __hip_bfloat16& x) { return __hneg(x); }
ROCMEND_BOTH __hip_bfloat16 operator+(const __hip_bfloat16& x) { return x; }
ROCMEND_BOTH __hip_bfloat162 operator-(const __hip_bfloat162& x) { return __hneg2(x); }
ROCMEND_BOTH __hip_bfloat16 __habs(__hip_bfloat16 x) { return __ushort_as_bfloat16(__bfloat16_as_ushort(x) & 0x7fff); }
ROCMEND_BOTH __hip_bfloat162 __habs2(__hip_bfloat162 x) { return __hip_bfloat162(__habs(x.x), __habs(x.y)); }
ROCMEND_BOTH __hip_bfloat16 __hfma(__hip_bfloat16 x, __hip_bfloat16 y, __hip_bfloat16 z) {
  return __hip_bfloat16(__builtin_fmaf(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)));
}
ROCMEND_BOTH __hip_bfloat162 __hfma2(__hip_bfloat162 x, __hip_bfloat162 y, __hip_bfloat162 z) {
  return __hip_bfloat162(__hfma(x.x, y.x, z.x), __hfma(x.y, y.y, z.y));
}

// Comparisons: the unordered ones are true where an operand is NaN.
ROCMEND_BOTH bool __hisnan(__hip_bfloat16 x) { return (__bfloat16_as_ushort(x) & 0x7fff) > 0x7f80; }
ROCMEND_BOTH bool __hisinf(__hip_bfloat16 x) { return (__bfloat16_as_ushort(x) & 0x7fff) == 0x7f80; }
#define ROCMEND_COMPARE(name, op)                                                                                \
  ROCMEND_BOTH bool __h##name(__hip_bfloat16 x, __hip_bfloat16 y) {                                             \
    return static_cast<float>(x) op static_cast<float>(y);                                                      \
  }                                                                                                             \
  ROCMEND_BOTH bool __h##name##u(__hip_bfloat16 x, __hip_bfloat16 y) {                                          \
    return __hisnan(x) || __hisnan(y) || static_cast<float>(x) op static_cast<float>(y);                        \
  }                                                                                                             \
  ROCMEND_BOTH __hip_bfloat162 __h##name##2(__hip_bfloat162 x, __hip_bfloat162 y) {                             \
    return __hip_bfloat162(__h##name(x.x, y.x) ? 1.0f : 0.0f, __h##name(x.y, y.y) ? 1.0f : 0.0f);               \
  }                                                                                                             \
  ROCMEND_BOTH bool __hb##name##2(__hip_bfloat162 x, __hip_bfloat162 y) {                                       \
    return __h##name(x.x, y.x) && __h##name(x.y, y.y);                                                          \
  }                                                                                                             \
  ROCMEND_BOTH bool __hb##name##u2(__hip_bfloat162 x, __hip_bfloat162 y) {                                      \
    return __h##name##u(x.x, y.x) && __h##name##u(x.y, y.y);                                                    \
  }                                                                                                             \
  ROCMEND_BOTH bool operator op(const __hip_bfloat16& x, const __hip_bfloat16& y) { return __h##name(x, y); }
ROCMEND_COMPARE(eq, ==)
ROCMEND_COMPARE(ne, !=)
ROCMEND_COMPARE(lt, <)
ROCMEND_COMPARE(le, <=)
ROCMEND_COMPARE(gt, >)
ROCMEND_COMPARE(ge, >=)
#undef ROCMEND_COMPARE
ROCMEND_BOTH __hip_bfloat16 __hmax(__hip_bfloat16 x, __hip_bfloat16 y) {
  return __hisnan(x) ? y : __hisnan(y) ? x : __hgt(x, y) ? x : y;
}
ROCMEND_BOTH __hip_bfloat16 __hmin(__hip_bfloat16 x, __hip_bfloat16 y) {
  return __hisnan(x) ? y : __hisnan(y) ? x : __hlt(x, y) ? x : y;
}
ROCMEND_BOTH __hip_bfloat162 __hmax2(__hip_bfloat162 x, __hip_bfloat162 y) {
  return __hip_bfloat162(__hmax(x.x, y.x), __hmax(x.y, y.y));
}
ROCMEND_BOTH __hip_bfloat162 __hmin2(__hip_bfloat162 x, __hip_bfloat162 y) {
  return __hip_bfloat162(__hmin(x.x, y.x), __hmin(x.y, y.y));
}

// Mathematics, in fp32.
#define ROCMEND_MATH(name, function)                                                                              \
  ROCMEND_DEVICE __hip_bfloat16 h##name(__hip_bfloat16 x) { return __hip_bfloat16(function(static_cast<float>(x))); } \
  ROCMEND_DEVICE __hip_bfloat162 h2##name(__hip_bfloat162 x) { return __hip_bfloat162(h##name(x.x), h##name(x.y)); }
ROCMEND_MATH(sqrt, ::sqrtf)
ROCMEND_MATH(rsqrt, ::rsqrtf)
ROCMEND_MATH(exp, ::expf)
ROCMEND_MATH(exp2, ::exp2f)
ROCMEND_MATH(exp10, ::exp10f)
ROCMEND_MATH(log, ::logf)
ROCMEND_MATH(log2, ::log2f)
ROCMEND_MATH(log10, ::log10f)
ROCMEND_MATH(sin, ::sinf)
ROCMEND_MATH(cos, ::cosf)
ROCMEND_MATH(ceil, ::ceilf)
ROCMEND_MATH(floor, ::floorf)
ROCMEND_MATH(rint, ::rintf)
ROCMEND_MATH(trunc, ::truncf)
ROCMEND_MATH(rcp, 1.0f /)
#undef ROCMEND_MATH

// Lanes.
#define ROCMEND_LANES(name, kind)                                                                                    \
  ROCMEND_DEVICE __hip_bfloat16 name(__hip_bfloat16 x, kind lane, int width = warpSize) {                            \
    return __ushort_as_bfloat16(                                                                                     \
        static_cast<unsigned short>(name(static_cast<int>(__bfloat16_as_ushort(x)), lane, width)));                  \
  }                                                                                                                  \
  ROCMEND_DEVICE __hip_bfloat162 name(__hip_bfloat162 x, kind lane, int width = warpSize) {                          \
    return __hip_bfloat162(name(x.x, lane, width), name(x.y, lane, width));                                          \
  }
ROCMEND_LANES(__shfl, int)
ROCMEND_LANES(__shfl_xor, int)
ROCMEND_LANES(__shfl_up, unsigned int)
ROCMEND_LANES(__shfl_down, unsigned int)
#undef ROCMEND_LANES

#undef ROCMEND_BOTH
#undef ROCMEND_DEVICE
#endif
