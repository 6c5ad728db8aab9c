// Declarations of hipRAND, where it is not installed: types for headers that name them, and the calls that make a
// generator. Nothing can be linked with them, and that the library agrees is not proven.
#ifndef ROCMEND_HIPRAND_H
#define ROCMEND_HIPRAND_H

#warning rocmend stand-in: hiprand/hiprand.h

#include <hip/hip_runtime_api.h>

#include <cstddef>

struct hiprandGenerator_st;
using hiprandGenerator_t = hiprandGenerator_st*;

enum hiprandStatus_t {
  HIPRAND_STATUS_SUCCESS = 0,
  HIPRAND_STATUS_VERSION_MISMATCH = 100,
  HIPRAND_STATUS_NOT_INITIALIZED = 101,
  HIPRAND_STATUS_ALLOCATION_FAILED = 102,
  HIPRAND_STATUS_TYPE_ERROR = 103,
  HIPRAND_STATUS_OUT_OF_RANGE = 104,
  HIPRAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
  HIPRAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
  HIPRAND_STATUS_LAUNCH_FAILURE = 201,
  HIPRAND_STATUS_PREEXISTING_FAILURE = 202,
  HIPRAND_STATUS_INITIALIZATION_FAILED = 203,
  HIPRAND_STATUS_ARCH_MISMATCH = 204,
  HIPRAND_STATUS_INTERNAL_ERROR = 999,
  HIPRAND_STATUS_NOT_IMPLEMENTED = 1000,
};
enum hiprandRngType_t {
  HIPRAND_RNG_PSEUDO_DEFAULT = 400,
  HIPRAND_RNG_PSEUDO_XORWOW = 401,
  HIPRAND_RNG_PSEUDO_MRG32K3A = 402,
  HIPRAND_RNG_PSEUDO_MTGP32 = 403,
  HIPRAND_RNG_PSEUDO_MT19937 = 404,
  HIPRAND_RNG_PSEUDO_PHILOX4_32_10 = 405,
};

extern "C" {
hiprandStatus_t hiprandCreateGenerator(hiprandGenerator_t* generator, hiprandRngType_t type);
hiprandStatus_t hiprandDestroyGenerator(hiprandGenerator_t generator);
hiprandStatus_t hiprandSetStream(hiprandGenerator_t generator, hipStream_t stream);
hiprandStatus_t hiprandSetPseudoRandomGeneratorSeed(hiprandGenerator_t generator, unsigned long long seed);
hiprandStatus_t hiprandSetGeneratorOffset(hiprandGenerator_t generator, unsigned long long offset);
hiprandStatus_t hiprandGenerate(hiprandGenerator_t generator, unsigned* out, std::size_t count);
hiprandStatus_t hiprandGenerateUniform(hiprandGenerator_t generator, float* out, std::size_t count);
hiprandStatus_t hiprandGenerateUniformDouble(hiprandGenerator_t generator, double* out, std::size_t count);
hiprandStatus_t hiprandGenerateNormal(
    hiprandGenerator_t generator, float* out, std::size_t count, float mean, float deviation);
hiprandStatus_t hiprandGenerateNormalDouble(
    hiprandGenerator_t generator, double* out, std::size_t count, double mean, double deviation);
}

#endif
