// Declarations of hipBLAS, where it is not installed: types for headers that name them, and the calls that extensions
// make most. Nothing can be linked with them, and that the library agrees is not proven.
#ifndef ROCMEND_HIPBLAS_H
#define ROCMEND_HIPBLAS_H

#warning rocmend stand-in: hipblas/hipblas.h

#include <hip/hip_runtime_api.h>
#include <hip/library_types.h>
#include <hip/hip_complex.h>
#include <hipblas-common/hipblas-common.h>

#include <cstdint>

using hipblasHandle_t = void*;
using hipblasHalf = std::uint16_t;
using hipblasStride = std::int64_t;
using hipblasComplex = hipFloatComplex;
using hipblasDoubleComplex = hipDoubleComplex;
using hipblasDatatype_t = hipDataType;

enum hipblasPointerMode_t { HIPBLAS_POINTER_MODE_HOST, HIPBLAS_POINTER_MODE_DEVICE };
enum hipblasFillMode_t { HIPBLAS_FILL_MODE_UPPER = 121, HIPBLAS_FILL_MODE_LOWER = 122, HIPBLAS_FILL_MODE_FULL = 123 };
enum hipblasDiagType_t { HIPBLAS_DIAG_NON_UNIT = 131, HIPBLAS_DIAG_UNIT = 132 };
enum hipblasSideMode_t { HIPBLAS_SIDE_LEFT = 141, HIPBLAS_SIDE_RIGHT = 142, HIPBLAS_SIDE_BOTH = 143 };
enum hipblasGemmAlgo_t { HIPBLAS_GEMM_DEFAULT = 160 };
enum hipblasAtomicsMode_t { HIPBLAS_ATOMICS_NOT_ALLOWED, HIPBLAS_ATOMICS_ALLOWED };
enum hipblasMath_t { HIPBLAS_DEFAULT_MATH, HIPBLAS_XF32_XDL_MATH, HIPBLAS_PEDANTIC_MATH, HIPBLAS_TENSOR_OP_MATH };

extern "C" {
hipblasStatus_t hipblasCreate(hipblasHandle_t* handle);
hipblasStatus_t hipblasDestroy(hipblasHandle_t handle);
hipblasStatus_t hipblasSetStream(hipblasHandle_t handle, hipStream_t stream);
hipblasStatus_t hipblasGetStream(hipblasHandle_t handle, hipStream_t* stream);
hipblasStatus_t hipblasSetPointerMode(hipblasHandle_t handle, hipblasPointerMode_t mode);
hipblasStatus_t hipblasGetPointerMode(hipblasHandle_t handle, hipblasPointerMode_t* mode);
hipblasStatus_t hipblasSetMathMode(hipblasHandle_t handle, hipblasMath_t mode);
hipblasStatus_t hipblasGetMathMode(hipblasHandle_t handle, hipblasMath_t* mode);
hipblasStatus_t hipblasSetAtomicsMode(hipblasHandle_t handle, hipblasAtomicsMode_t mode);
const char* hipblasStatusToString(hipblasStatus_t status);

#define ROCMEND_BLAS(letter, type)                                                                                    \
  hipblasStatus_t hipblas##letter##gemm(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b,     \
      int m, int n, int k, const type* alpha, const type* a, int lda, const type* b, int ldb, const type* beta,       \
      type* c, int ldc);                                                                                              \
  hipblasStatus_t hipblas##letter##gemmBatched(hipblasHandle_t handle, hipblasOperation_t op_a,                       \
      hipblasOperation_t op_b, int m, int n, int k, const type* alpha, const type* const a[], int lda,                \
      const type* const b[], int ldb, const type* beta, type* const c[], int ldc, int count);                         \
  hipblasStatus_t hipblas##letter##gemmStridedBatched(hipblasHandle_t handle, hipblasOperation_t op_a,                \
      hipblasOperation_t op_b, int m, int n, int k, const type* alpha, const type* a, int lda, long long stride_a,    \
      const type* b, int ldb, long long stride_b, const type* beta, type* c, int ldc, long long stride_c, int count);
#define ROCMEND_BLAS_VECTORS(letter, type)                                                                            \
  hipblasStatus_t hipblas##letter##gemv(hipblasHandle_t handle, hipblasOperation_t op, int m, int n,                  \
      const type* alpha, const type* a, int lda, const type* x, int incx, const type* beta, type* y, int incy);       \
  hipblasStatus_t hipblas##letter##axpy(                                                                              \
      hipblasHandle_t handle, int n, const type* alpha, const type* x, int incx, type* y, int incy);                  \
  hipblasStatus_t hipblas##letter##scal(hipblasHandle_t handle, int n, const type* alpha, type* x, int incx);         \
  hipblasStatus_t hipblas##letter##copy(hipblasHandle_t handle, int n, const type* x, int incx, type* y, int incy);
ROCMEND_BLAS(H, hipblasHalf)
ROCMEND_BLAS(S, float)
ROCMEND_BLAS(D, double)
ROCMEND_BLAS(C, hipblasComplex)
ROCMEND_BLAS(Z, hipblasDoubleComplex)
ROCMEND_BLAS_VECTORS(S, float)
ROCMEND_BLAS_VECTORS(D, double)
ROCMEND_BLAS_VECTORS(C, hipblasComplex)
ROCMEND_BLAS_VECTORS(Z, hipblasDoubleComplex)
#undef ROCMEND_BLAS
#undef ROCMEND_BLAS_VECTORS
hipblasStatus_t hipblasSdot(hipblasHandle_t handle, int n, const float* x, int incx, const float* y, int incy, float* r);
hipblasStatus_t hipblasDdot(
    hipblasHandle_t handle, int n, const double* x, int incx, const double* y, int incy, double* r);
hipblasStatus_t hipblasSnrm2(hipblasHandle_t handle, int n, const float* x, int incx, float* r);
hipblasStatus_t hipblasDnrm2(hipblasHandle_t handle, int n, const double* x, int incx, double* r);
}

#define ROCMEND_GEMM_EX(compute)                                                                                      \
  hipblasStatus_t hipblasGemmEx(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b, int m,      \
      int n, int k, const void* alpha, const void* a, hipDataType type_a, int lda, const void* b, hipDataType type_b, \
      int ldb, const void* beta, void* c, hipDataType type_c, int ldc, compute type, hipblasGemmAlgo_t algorithm);    \
  hipblasStatus_t hipblasGemmBatchedEx(hipblasHandle_t handle, hipblasOperation_t op_a, hipblasOperation_t op_b,      \
      int m, int n, int k, const void* alpha, const void* a[], hipDataType type_a, int lda, const void* b[],          \
      hipDataType type_b, int ldb, const void* beta, void* c[], hipDataType type_c, int ldc, int count, compute type, \
      hipblasGemmAlgo_t algorithm);                                                                                   \
  hipblasStatus_t hipblasGemmStridedBatchedEx(hipblasHandle_t handle, hipblasOperation_t op_a,                        \
      hipblasOperation_t op_b, int m, int n, int k, const void* alpha, const void* a, hipDataType type_a, int lda,    \
      hipblasStride stride_a, const void* b, hipDataType type_b, int ldb, hipblasStride stride_b, const void* beta,   \
      void* c, hipDataType type_c, int ldc, hipblasStride stride_c, int count, compute type,                          \
      hipblasGemmAlgo_t algorithm);
ROCMEND_GEMM_EX(hipblasComputeType_t)
ROCMEND_GEMM_EX(hipDataType)
#undef ROCMEND_GEMM_EX

#endif
