// Declarations of hipSPARSE, where it is not installed: types for headers that name them. Nothing can be linked with
// them, and that the library agrees is not proven.
#ifndef ROCMEND_HIPSPARSE_H
#define ROCMEND_HIPSPARSE_H

#warning rocmend stand-in: hipsparse/hipsparse.h

#include <hip/hip_runtime_api.h>
#include <hip/library_types.h>

using hipsparseHandle_t = void*;
using hipsparseMatDescr_t = void*;
using hipsparseSpMatDescr_t = void*;
using hipsparseDnMatDescr_t = void*;
using hipsparseSpVecDescr_t = void*;
using hipsparseDnVecDescr_t = void*;
using hipsparseConstSpMatDescr_t = const void*;
using hipsparseConstDnMatDescr_t = const void*;
using hipsparseConstDnVecDescr_t = const void*;

enum hipsparseStatus_t {
  HIPSPARSE_STATUS_SUCCESS,
  HIPSPARSE_STATUS_NOT_INITIALIZED,
  HIPSPARSE_STATUS_ALLOC_FAILED,
  HIPSPARSE_STATUS_INVALID_VALUE,
  HIPSPARSE_STATUS_ARCH_MISMATCH,
  HIPSPARSE_STATUS_MAPPING_ERROR,
  HIPSPARSE_STATUS_EXECUTION_FAILED,
  HIPSPARSE_STATUS_INTERNAL_ERROR,
  HIPSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED,
  HIPSPARSE_STATUS_ZERO_PIVOT,
  HIPSPARSE_STATUS_NOT_SUPPORTED,
  HIPSPARSE_STATUS_INSUFFICIENT_RESOURCES,
};
enum hipsparseOperation_t {
  HIPSPARSE_OPERATION_NON_TRANSPOSE,
  HIPSPARSE_OPERATION_TRANSPOSE,
  HIPSPARSE_OPERATION_CONJUGATE_TRANSPOSE,
};
enum hipsparsePointerMode_t { HIPSPARSE_POINTER_MODE_HOST, HIPSPARSE_POINTER_MODE_DEVICE };
enum hipsparseIndexBase_t { HIPSPARSE_INDEX_BASE_ZERO, HIPSPARSE_INDEX_BASE_ONE };
enum hipsparseIndexType_t { HIPSPARSE_INDEX_16U = 1, HIPSPARSE_INDEX_32I, HIPSPARSE_INDEX_64I };
enum hipsparseFillMode_t { HIPSPARSE_FILL_MODE_LOWER, HIPSPARSE_FILL_MODE_UPPER };
enum hipsparseDiagType_t { HIPSPARSE_DIAG_TYPE_NON_UNIT, HIPSPARSE_DIAG_TYPE_UNIT };
enum hipsparseDirection_t { HIPSPARSE_DIRECTION_ROW, HIPSPARSE_DIRECTION_COLUMN };
enum hipsparseSolvePolicy_t { HIPSPARSE_SOLVE_POLICY_NO_LEVEL, HIPSPARSE_SOLVE_POLICY_USE_LEVEL };
enum hipsparseOrder_t { HIPSPARSE_ORDER_ROW, HIPSPARSE_ORDER_COL };

extern "C" {
hipsparseStatus_t hipsparseCreate(hipsparseHandle_t* handle);
hipsparseStatus_t hipsparseDestroy(hipsparseHandle_t handle);
hipsparseStatus_t hipsparseSetStream(hipsparseHandle_t handle, hipStream_t stream);
hipsparseStatus_t hipsparseGetStream(hipsparseHandle_t handle, hipStream_t* stream);
const char* hipsparseGetErrorName(hipsparseStatus_t status);
const char* hipsparseGetErrorString(hipsparseStatus_t status);
}

#endif
