// 8-bit floating point for HIP, where the HIP that is installed has no header for it: the names and meanings of
// hip/hip_fp8.h. As there, a target has only the types in device code that it has instructions for: FNUZ on gfx942, OCP
// on gfx950 and gfx12, both elsewhere. Conversions are computed, not the hardware's instructions.
#ifndef ROCMEND_HIP_FP8_H
#define ROCMEND_HIP_FP8_H

#warning rocmend stand-in: hip/hip_fp8.h

#include <hip/hip_fp16.h>
#include <hip/hip_bf16.h>

#include <type_traits>

#if defined(__gfx942__) && defined(__HIP_DEVICE_COMPILE__)
#define HIP_FP8_TYPE_OCP 0
#define HIP_FP8_TYPE_FNUZ 1
#elif (defined(__gfx950__) || defined(__gfx1200__) || defined(__gfx1201__)) && defined(__HIP_DEVICE_COMPILE__)
#define HIP_FP8_TYPE_OCP 1
#define HIP_FP8_TYPE_FNUZ 0
#else
#define HIP_FP8_TYPE_OCP 1
#define HIP_FP8_TYPE_FNUZ 1
#endif

#define ROCMEND_BOTH __host__ __device__ inline

typedef unsigned char __hip_fp8_storage_t;
typedef unsigned short __hip_fp8x2_storage_t;
typedef unsigned int __hip_fp8x4_storage_t;

enum __hip_saturation_t { __HIP_NOSAT = 0, __HIP_SATFINITE = 1 };
enum __hip_fp8_interpretation_t { __HIP_E4M3 = 0, __HIP_E5M2 = 1, __HIP_E4M3_FNUZ = 2, __HIP_E5M2_FNUZ = 3 };

namespace rocmend_fp8 {
ROCMEND_BOTH bool fnuz(__hip_fp8_interpretation_t kind) { return kind == __HIP_E4M3_FNUZ || kind == __HIP_E5M2_FNUZ; }
ROCMEND_BOTH int fraction_bits(__hip_fp8_interpretation_t kind) {
  return kind == __HIP_E4M3 || kind == __HIP_E4M3_FNUZ ? 3 : 2;
}
ROCMEND_BOTH int bias(__hip_fp8_interpretation_t kind) {
  return (fraction_bits(kind) == 3 ? 7 : 15) + (fnuz(kind) ? 1 : 0);
}
ROCMEND_BOTH unsigned largest(__hip_fp8_interpretation_t kind) {
  return fnuz(kind) ? 0x7fu : kind == __HIP_E4M3 ? 0x7eu : 0x7bu;
}
ROCMEND_BOTH int exponent(float x) { return static_cast<int>((__builtin_bit_cast(unsigned, x) >> 23) & 0xffu) - 127; }
ROCMEND_BOTH int exponent(double x) {
  return static_cast<int>((__builtin_bit_cast(unsigned long long, x) >> 52) & 0x7ffu) - 1023;
}
ROCMEND_BOTH float scaled(float x, int power) { return __builtin_ldexpf(x, power); }
ROCMEND_BOTH double scaled(double x, int power) { return __builtin_ldexp(x, power); }
ROCMEND_BOTH float nearest_even(float x) { return __builtin_rintf(x); }
ROCMEND_BOTH double nearest_even(double x) { return __builtin_rint(x); }

template <typename F>
ROCMEND_BOTH __hip_fp8_storage_t encoded(F x, __hip_saturation_t saturation, __hip_fp8_interpretation_t kind) {
  const unsigned sign = __builtin_signbit(x) ? 0x80u : 0u;
  if (x != x) return static_cast<__hip_fp8_storage_t>(fnuz(kind) ? 0x80u : 0x7fu | sign);
  const F size = sign ? -x : x;
  const int bits = fraction_bits(kind), least = 1 - bias(kind);
  unsigned code = largest(kind) + 1;
  const int e = exponent(size);
  if (e < 32) {
    // steps of the format in x; a carry into the exponent is the next exponent's first code
    const int used = e > least ? e : least;
    code = (static_cast<unsigned>(used - least) << bits) + static_cast<unsigned>(nearest_even(scaled(size, bits - used)));
  }
  if (code > largest(kind)) {
    if (saturation == __HIP_SATFINITE) code = largest(kind);
    else if (fnuz(kind)) return 0x80u;
    else code = kind == __HIP_E4M3 ? 0x7fu : 0x7cu;
  }
  if (code == 0 && fnuz(kind)) return 0;
  return static_cast<__hip_fp8_storage_t>(code | sign);
}

ROCMEND_BOTH float decoded(__hip_fp8_storage_t x, __hip_fp8_interpretation_t kind) {
  const unsigned code = x & 0x7fu;
  const int bits = fraction_bits(kind), e = static_cast<int>(code >> bits);
  const unsigned fraction = code & ((1u << bits) - 1u);
  if (fnuz(kind) ? x == 0x80u : kind == __HIP_E4M3 ? code == 0x7fu : code > 0x7cu) return __builtin_nanf("");
  const float size = kind == __HIP_E5M2 && code == 0x7cu ? __builtin_inff()
                     : e == 0 ? scaled(static_cast<float>(fraction), 1 - bias(kind) - bits)
                              : scaled(static_cast<float>(fraction + (1u << bits)), e - bias(kind) - bits);
  return x & 0x80u ? -size : size;
}

ROCMEND_BOTH float of_half(__half_raw x) { return static_cast<float>(x.data); }
ROCMEND_BOTH __half_raw to_half(float x) {
  __half_raw r;
  r.data = static_cast<_Float16>(x);
  return r;
}
ROCMEND_BOTH float of_bfloat16(__hip_bfloat16_raw x) { return rocmend_bf16::widened(x.x); }
template <typename Packed>
ROCMEND_BOTH __hip_fp8_storage_t part(Packed x, int number) {
  return static_cast<__hip_fp8_storage_t>(x >> (8 * number));
}
}  // namespace rocmend_fp8

// Conversions of what is stored.
#define ROCMEND_PAIR(low, high)                                     \
  static_cast<__hip_fp8x2_storage_t>(                               \
      rocmend_fp8::encoded(low, saturation, kind) |                 \
      static_cast<unsigned>(rocmend_fp8::encoded(high, saturation, kind)) << 8)
ROCMEND_BOTH __hip_fp8_storage_t __hip_cvt_float_to_fp8(
    const float x, const __hip_saturation_t saturation, const __hip_fp8_interpretation_t kind) {
  return rocmend_fp8::encoded(x, saturation, kind);
}
ROCMEND_BOTH __hip_fp8x2_storage_t __hip_cvt_float2_to_fp8x2(
    const float2 x, const __hip_saturation_t saturation, const __hip_fp8_interpretation_t kind) {
  return ROCMEND_PAIR(static_cast<float>(x.x), static_cast<float>(x.y));
}
ROCMEND_BOTH __hip_fp8_storage_t __hip_cvt_double_to_fp8(
    const double x, const __hip_saturation_t saturation, const __hip_fp8_interpretation_t kind) {
  return rocmend_fp8::encoded(x, saturation, kind);
}
ROCMEND_BOTH __hip_fp8x2_storage_t __hip_cvt_double2_to_fp8x2(
    const double2 x, const __hip_saturation_t saturation, const __hip_fp8_interpretation_t kind) {
  return ROCMEND_PAIR(static_cast<double>(x.x), static_cast<double>(x.y));
}
ROCMEND_BOTH __hip_fp8_storage_t __hip_cvt_halfraw_to_fp8(
    const __half_raw x, const __hip_saturation_t saturation, const __hip_fp8_interpretation_t kind) {
  return rocmend_fp8::encoded(rocmend_fp8::of_half(x), saturation, kind);
}
ROCMEND_BOTH __hip_fp8x2_storage_t __hip_cvt_halfraw2_to_fp8x2(
    const __half2_raw x, const __hip_saturation_t saturation, const __hip_fp8_interpretation_t kind) {
  return ROCMEND_PAIR(static_cast<float>(x.data[0]), static_cast<float>(x.data[1]));
}
ROCMEND_BOTH __hip_fp8_storage_t __hip_cvt_bfloat16raw_to_fp8(
    const __hip_bfloat16_raw x, const __hip_saturation_t saturation, const __hip_fp8_interpretation_t kind) {
  return rocmend_fp8::encoded(rocmend_fp8::of_bfloat16(x), saturation, kind);
}
ROCMEND_BOTH __hip_fp8x2_storage_t __hip_cvt_bfloat16raw2_to_fp8x2(
    const __hip_bfloat162_raw x, const __hip_saturation_t saturation, const __hip_fp8_interpretation_t kind) {
  return ROCMEND_PAIR(rocmend_bf16::widened(x.x), rocmend_bf16::widened(x.y));
}
#undef ROCMEND_PAIR
ROCMEND_BOTH __half_raw __hip_cvt_fp8_to_halfraw(const __hip_fp8_storage_t x, const __hip_fp8_interpretation_t kind) {
  return rocmend_fp8::to_half(rocmend_fp8::decoded(x, kind));
}
ROCMEND_BOTH __half2_raw __hip_cvt_fp8x2_to_halfraw2(
    const __hip_fp8x2_storage_t x, const __hip_fp8_interpretation_t kind) {
  __half2_raw r;
  r.data = _Float16_2{
      static_cast<_Float16>(rocmend_fp8::decoded(rocmend_fp8::part(x, 0), kind)),
      static_cast<_Float16>(rocmend_fp8::decoded(rocmend_fp8::part(x, 1), kind))};
  return r;
}

// The types: one value, two, four.
#define ROCMEND_ONE(name, kind, side)                                                                                \
  struct name {                                                                                                      \
    __hip_fp8_storage_t __x;                                                                                         \
    static constexpr __hip_saturation_t __default_saturation = __HIP_SATFINITE;                                      \
    static constexpr __hip_fp8_interpretation_t __default_interpret = kind;                                          \
    side name() = default;                                                                                           \
    side name(const float x) : __x(rocmend_fp8::encoded(x, __HIP_SATFINITE, kind)) {}                                \
    side name(const double x) : __x(rocmend_fp8::encoded(x, __HIP_SATFINITE, kind)) {}                               \
    side name(const __half x) : name(rocmend_fp8::of_half(static_cast<__half_raw>(x))) {}                            \
    side name(const __hip_bfloat16 x) : name(static_cast<float>(x)) {}                                               \
    template <typename T, std::enable_if_t<std::is_integral<T>::value>* = nullptr>                                   \
    side name(const T x) : name(static_cast<float>(x)) {}                                                            \
    side operator float() const { return rocmend_fp8::decoded(__x, kind); }                                          \
    side operator __half() const { return __half(rocmend_fp8::to_half(static_cast<float>(*this))); }                 \
    side operator __hip_bfloat16() const { return __hip_bfloat16(static_cast<float>(*this)); }                       \
    side explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }                 \
    side explicit operator bool() const { return static_cast<float>(*this) != 0.0f; }                                \
    template <typename T, std::enable_if_t<std::is_integral<T>::value && !std::is_same<T, bool>::value>* = nullptr>  \
    side explicit operator T() const {                                                                               \
      return static_cast<T>(static_cast<float>(*this));                                                              \
    }                                                                                                                \
  };
#define ROCMEND_TWO(name, kind, side)                                                                                \
  struct name {                                                                                                      \
    __hip_fp8x2_storage_t __x;                                                                                       \
    static constexpr __hip_saturation_t __default_saturation = __HIP_SATFINITE;                                      \
    static constexpr __hip_fp8_interpretation_t __default_interpret = kind;                                          \
    side name() = default;                                                                                           \
    side name(const float2 x) : __x(__hip_cvt_float2_to_fp8x2(x, __HIP_SATFINITE, kind)) {}                          \
    side name(const double2 x) : __x(__hip_cvt_double2_to_fp8x2(x, __HIP_SATFINITE, kind)) {}                        \
    side name(const __half2 x)                                                                                       \
        : __x(__hip_cvt_halfraw2_to_fp8x2(static_cast<__half2_raw>(x), __HIP_SATFINITE, kind)) {}                    \
    side name(const __hip_bfloat162 x)                                                                               \
        : __x(__hip_cvt_bfloat16raw2_to_fp8x2(static_cast<__hip_bfloat162_raw>(x), __HIP_SATFINITE, kind)) {}        \
    side operator float2() const {                                                                                   \
      return float2{rocmend_fp8::decoded(rocmend_fp8::part(__x, 0), kind),                                           \
                    rocmend_fp8::decoded(rocmend_fp8::part(__x, 1), kind)};                                          \
    }                                                                                                                \
    side operator __half2() const { return __half2(__hip_cvt_fp8x2_to_halfraw2(__x, kind)); }                        \
    side operator __hip_bfloat162() const {                                                                          \
      const float2 x = static_cast<float2>(*this);                                                                   \
      return __hip_bfloat162(__hip_bfloat16(x.x), __hip_bfloat16(x.y));                                              \
    }                                                                                                                \
  };
#define ROCMEND_FOUR(name, two, kind, side)                                                                          \
  struct name {                                                                                                      \
    __hip_fp8x4_storage_t __x;                                                                                       \
    static constexpr __hip_saturation_t __default_saturation = __HIP_SATFINITE;                                      \
    static constexpr __hip_fp8_interpretation_t __default_interpret = kind;                                          \
    side name() = default;                                                                                           \
    side name(const two low, const two high)                                                                         \
        : __x(low.__x | static_cast<__hip_fp8x4_storage_t>(high.__x) << 16) {}                                       \
    side name(const float4 x) : name(two(float2{x.x, x.y}), two(float2{x.z, x.w})) {}                                \
    side name(const double4 x) : name(two(double2{x.x, x.y}), two(double2{x.z, x.w})) {}                             \
    side name(const __half2 low, const __half2 high) : name(two(low), two(high)) {}                                  \
    side name(const __hip_bfloat162 low, const __hip_bfloat162 high) : name(two(low), two(high)) {}                  \
    side operator float4() const {                                                                                   \
      return float4{rocmend_fp8::decoded(rocmend_fp8::part(__x, 0), kind),                                           \
                    rocmend_fp8::decoded(rocmend_fp8::part(__x, 1), kind),                                           \
                    rocmend_fp8::decoded(rocmend_fp8::part(__x, 2), kind),                                           \
                    rocmend_fp8::decoded(rocmend_fp8::part(__x, 3), kind)};                                          \
    }                                                                                                                \
  };
#define ROCMEND_FORMAT(format, kind, side)                 \
  ROCMEND_ONE(__hip_fp8_##format, kind, side)              \
  ROCMEND_TWO(__hip_fp8x2_##format, kind, side)            \
  ROCMEND_FOUR(__hip_fp8x4_##format, __hip_fp8x2_##format, kind, side)

#if HIP_FP8_TYPE_OCP
ROCMEND_FORMAT(e4m3, __HIP_E4M3, __host__ __device__)
ROCMEND_FORMAT(e5m2, __HIP_E5M2, __host__ __device__)
#else
ROCMEND_FORMAT(e4m3, __HIP_E4M3, __host__)
ROCMEND_FORMAT(e5m2, __HIP_E5M2, __host__)
#endif
#if HIP_FP8_TYPE_FNUZ
ROCMEND_FORMAT(e4m3_fnuz, __HIP_E4M3_FNUZ, __host__ __device__)
ROCMEND_FORMAT(e5m2_fnuz, __HIP_E5M2_FNUZ, __host__ __device__)
#else
ROCMEND_FORMAT(e4m3_fnuz, __HIP_E4M3_FNUZ, __host__)
ROCMEND_FORMAT(e5m2_fnuz, __HIP_E5M2_FNUZ, __host__)
#endif
#undef ROCMEND_FORMAT
#undef ROCMEND_FOUR
#undef ROCMEND_TWO
#undef ROCMEND_ONE
#undef ROCMEND_BOTH

#endif
