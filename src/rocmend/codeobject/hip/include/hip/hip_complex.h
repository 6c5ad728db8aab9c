// Complex numbers for HIP, where the HIP that is installed has no header for them: the names of hip/hip_complex.h.
#ifndef ROCMEND_HIP_COMPLEX_H
#define ROCMEND_HIP_COMPLEX_H

#warning rocmend stand-in: hip/hip_complex.h

#include <hip/hip_common.h>
#include <hip/amd_detail/host_defines.h>
#include <hip/amd_detail/amd_hip_vector_types.h>

#include <cmath>

typedef float2 hipFloatComplex;
typedef double2 hipDoubleComplex;
typedef hipFloatComplex hipComplex;

#define ROCMEND_COMPLEX(type, real, suffix, hypotenuse)                                                             \
  inline __host__ __device__ real hipCreal##suffix(type z) { return z.x; }                                         \
  inline __host__ __device__ real hipCimag##suffix(type z) { return z.y; }                                         \
  inline __host__ __device__ type hipConj##suffix(type z) { return type{z.x, -z.y}; }                              \
  inline __host__ __device__ real hipCsqabs##suffix(type z) { return z.x * z.x + z.y * z.y; }                      \
  inline __host__ __device__ real hipCabs##suffix(type z) { return hypotenuse(z.x, z.y); }                         \
  inline __host__ __device__ type hipCadd##suffix(type p, type q) { return type{p.x + q.x, p.y + q.y}; }           \
  inline __host__ __device__ type hipCsub##suffix(type p, type q) { return type{p.x - q.x, p.y - q.y}; }           \
  inline __host__ __device__ type hipCmul##suffix(type p, type q) {                                                \
    return type{p.x * q.x - p.y * q.y, p.y * q.x + p.x * q.y};                                                     \
  }                                                                                                                \
  inline __host__ __device__ type hipCdiv##suffix(type p, type q) {                                                \
    const real d = hipCsqabs##suffix(q);                                                                           \
    return type{(p.x * q.x + p.y * q.y) / d, (p.y * q.x - p.x * q.y) / d};                                         \
  }                                                                                                                \
  inline __host__ __device__ type hipCfma##suffix(type p, type q, type r) {                                        \
    return type{p.x * q.x - p.y * q.y + r.x, p.x * q.y + p.y * q.x + r.y};                                         \
  }
ROCMEND_COMPLEX(hipFloatComplex, float, f, ::hypotf)
ROCMEND_COMPLEX(hipDoubleComplex, double, , ::hypot)
#undef ROCMEND_COMPLEX

inline __host__ __device__ hipFloatComplex make_hipFloatComplex(float x, float y) { return hipFloatComplex{x, y}; }
inline __host__ __device__ hipDoubleComplex make_hipDoubleComplex(double x, double y) { return hipDoubleComplex{x, y}; }
inline __host__ __device__ hipComplex make_hipComplex(float x, float y) { return hipComplex{x, y}; }
inline __host__ __device__ hipFloatComplex hipComplexDoubleToFloat(hipDoubleComplex z) {
  return hipFloatComplex{static_cast<float>(z.x), static_cast<float>(z.y)};
}
inline __host__ __device__ hipDoubleComplex hipComplexFloatToDouble(hipFloatComplex z) {
  return hipDoubleComplex{static_cast<double>(z.x), static_cast<double>(z.y)};
}

#endif
