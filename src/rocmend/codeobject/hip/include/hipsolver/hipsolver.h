// Declarations of hipSOLVER, where it is not installed: types for headers that name them. Nothing can be linked with
// them, and that the library agrees is not proven.
#ifndef ROCMEND_HIPSOLVER_H
#define ROCMEND_HIPSOLVER_H

#warning rocmend stand-in: hipsolver/hipsolver.h

#include <hip/hip_runtime_api.h>

using hipsolverHandle_t = void*;
using hipsolverDnHandle_t = hipsolverHandle_t;
using hipsolverSyevjInfo_t = void*;
using hipsolverGesvdjInfo_t = void*;

enum hipsolverStatus_t {
  HIPSOLVER_STATUS_SUCCESS,
  HIPSOLVER_STATUS_NOT_INITIALIZED,
  HIPSOLVER_STATUS_ALLOC_FAILED,
  HIPSOLVER_STATUS_INVALID_VALUE,
  HIPSOLVER_STATUS_MAPPING_ERROR,
  HIPSOLVER_STATUS_EXECUTION_FAILED,
  HIPSOLVER_STATUS_INTERNAL_ERROR,
  HIPSOLVER_STATUS_NOT_SUPPORTED,
  HIPSOLVER_STATUS_ARCH_MISMATCH,
  HIPSOLVER_STATUS_HANDLE_IS_NULLPTR,
  HIPSOLVER_STATUS_INVALID_ENUM,
  HIPSOLVER_STATUS_UNKNOWN,
};

extern "C" {
hipsolverStatus_t hipsolverCreate(hipsolverHandle_t* handle);
hipsolverStatus_t hipsolverDestroy(hipsolverHandle_t handle);
hipsolverStatus_t hipsolverSetStream(hipsolverHandle_t handle, hipStream_t stream);
hipsolverStatus_t hipsolverGetStream(hipsolverHandle_t handle, hipStream_t* stream);
hipsolverStatus_t hipsolverDnCreate(hipsolverHandle_t* handle);
hipsolverStatus_t hipsolverDnDestroy(hipsolverHandle_t handle);
hipsolverStatus_t hipsolverDnSetStream(hipsolverHandle_t handle, hipStream_t stream);
}

#endif
