// The older bfloat16 of HIP (hip_bfloat16), where the HIP that is installed has no header for it.
#ifndef ROCMEND_HIP_BFLOAT16_H
#define ROCMEND_HIP_BFLOAT16_H

#warning rocmend stand-in: hip/hip_bfloat16.h

#include <hip/hip_common.h>
#include <hip/amd_detail/host_defines.h>

#include <cstdint>

struct hip_bfloat16 {
  std::uint16_t data;

  enum truncate_t { truncate };

  hip_bfloat16() = default;
  explicit __host__ __device__ hip_bfloat16(float x) : data(rounded(x)) {}
  explicit __host__ __device__ hip_bfloat16(float x, truncate_t)
      : data(static_cast<std::uint16_t>(__builtin_bit_cast(std::uint32_t, x) >> 16)) {}
  __host__ __device__ operator float() const {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(data) << 16);
  }
  static __host__ __device__ hip_bfloat16 round_to_bfloat16(float x) { return hip_bfloat16(x); }
  static __host__ __device__ hip_bfloat16 round_to_bfloat16(float x, truncate_t) { return hip_bfloat16(x, truncate); }

 private:
  static __host__ __device__ std::uint16_t rounded(float x) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  }
};

#define ROCMEND_ARITHMETIC(op)                                                                             \
  inline __host__ __device__ hip_bfloat16 operator op(hip_bfloat16 x, hip_bfloat16 y) {                    \
    return hip_bfloat16(static_cast<float>(x) op static_cast<float>(y));                                   \
  }                                                                                                        \
  inline __host__ __device__ hip_bfloat16& operator op##=(hip_bfloat16 & x, hip_bfloat16 y) { return x = x op y; }
ROCMEND_ARITHMETIC(+)
ROCMEND_ARITHMETIC(-)
ROCMEND_ARITHMETIC(*)
ROCMEND_ARITHMETIC(/)
#undef ROCMEND_ARITHMETIC
#define ROCMEND_COMPARE(op)                                                    \
  inline __host__ __device__ bool operator op(hip_bfloat16 x, hip_bfloat16 y) { \
    return static_cast<float>(x) op static_cast<float>(y);                     \
  }
ROCMEND_COMPARE(==)
ROCMEND_COMPARE(!=)
ROCMEND_COMPARE(<)
ROCMEND_COMPARE(<=)
ROCMEND_COMPARE(>)
ROCMEND_COMPARE(>=)
#undef ROCMEND_COMPARE
inline __host__ __device__ hip_bfloat16 operator-(hip_bfloat16 x) {
  x.data ^= 0x8000;
  return x;
}

#endif
