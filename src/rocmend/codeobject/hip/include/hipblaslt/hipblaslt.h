// Declarations of hipBLASLt, where it is not installed: types for headers that name them, and the calls of a matrix
// product. Nothing can be linked with them, and that the library agrees is not proven.
#ifndef ROCMEND_HIPBLASLT_H
#define ROCMEND_HIPBLASLT_H

#warning rocmend stand-in: hipblaslt/hipblaslt.h

#include <hip/hip_runtime_api.h>
#include <hip/library_types.h>
#include <hipblas-common/hipblas-common.h>

#include <cstddef>
#include <cstdint>

using hipblasLtHandle_t = void*;

struct hipblasLtMatrixLayoutOpaque_t {
  std::uint64_t data[4];
};
struct hipblasLtMatmulDescOpaque_t {
  std::uint64_t data[8];
};
struct hipblasLtMatmulPreferenceOpaque_t {
  std::uint64_t data[5];
};
using hipblasLtMatrixLayout_t = hipblasLtMatrixLayoutOpaque_t*;
using hipblasLtMatmulDesc_t = hipblasLtMatmulDescOpaque_t*;
using hipblasLtMatmulPreference_t = hipblasLtMatmulPreferenceOpaque_t*;

struct hipblasLtMatmulAlgo_t {
  std::uint8_t data[16];
  std::size_t max_workspace_bytes;
};
struct hipblasLtMatmulHeuristicResult_t {
  hipblasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  hipblasStatus_t state;
  float wavesCount;
  int reserved[4];
};

enum hipblasLtEpilogue_t {
  HIPBLASLT_EPILOGUE_DEFAULT = 1,
  HIPBLASLT_EPILOGUE_RELU = 2,
  HIPBLASLT_EPILOGUE_BIAS = 4,
  HIPBLASLT_EPILOGUE_RELU_BIAS = 6,
  HIPBLASLT_EPILOGUE_GELU = 32,
  HIPBLASLT_EPILOGUE_GELU_BIAS = 36,
};
enum hipblasLtMatmulDescAttributes_t {
  HIPBLASLT_MATMUL_DESC_TRANSA,
  HIPBLASLT_MATMUL_DESC_TRANSB,
  HIPBLASLT_MATMUL_DESC_EPILOGUE,
  HIPBLASLT_MATMUL_DESC_BIAS_POINTER,
  HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
  HIPBLASLT_MATMUL_DESC_A_SCALE_POINTER,
  HIPBLASLT_MATMUL_DESC_B_SCALE_POINTER,
};
enum hipblasLtMatmulPreferenceAttributes_t {
  HIPBLASLT_MATMUL_PREF_SEARCH_MODE,
  HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
};
enum hipblasLtMatrixLayoutAttribute_t {
  HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
  HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
};

extern "C" {
hipblasStatus_t hipblasLtCreate(hipblasLtHandle_t* handle);
hipblasStatus_t hipblasLtDestroy(const hipblasLtHandle_t handle);
hipblasStatus_t hipblasLtMatrixLayoutCreate(
    hipblasLtMatrixLayout_t* layout, hipDataType type, std::uint64_t rows, std::uint64_t cols, std::int64_t ld);
hipblasStatus_t hipblasLtMatrixLayoutDestroy(const hipblasLtMatrixLayout_t layout);
hipblasStatus_t hipblasLtMatrixLayoutSetAttribute(
    hipblasLtMatrixLayout_t layout, hipblasLtMatrixLayoutAttribute_t attribute, const void* value, std::size_t bytes);
hipblasStatus_t hipblasLtMatmulDescCreate(
    hipblasLtMatmulDesc_t* product, hipblasComputeType_t compute, hipDataType scale);
hipblasStatus_t hipblasLtMatmulDescDestroy(const hipblasLtMatmulDesc_t product);
hipblasStatus_t hipblasLtMatmulDescSetAttribute(
    hipblasLtMatmulDesc_t product, hipblasLtMatmulDescAttributes_t attribute, const void* value, std::size_t bytes);
hipblasStatus_t hipblasLtMatmulPreferenceCreate(hipblasLtMatmulPreference_t* preference);
hipblasStatus_t hipblasLtMatmulPreferenceDestroy(const hipblasLtMatmulPreference_t preference);
hipblasStatus_t hipblasLtMatmulPreferenceSetAttribute(hipblasLtMatmulPreference_t preference,
    hipblasLtMatmulPreferenceAttributes_t attribute, const void* value, std::size_t bytes);
hipblasStatus_t hipblasLtMatmulAlgoGetHeuristic(hipblasLtHandle_t handle, hipblasLtMatmulDesc_t product,
    hipblasLtMatrixLayout_t a, hipblasLtMatrixLayout_t b, hipblasLtMatrixLayout_t c, hipblasLtMatrixLayout_t d,
    hipblasLtMatmulPreference_t preference, int wanted, hipblasLtMatmulHeuristicResult_t results[], int* found);
hipblasStatus_t hipblasLtMatmul(hipblasLtHandle_t handle, hipblasLtMatmulDesc_t product, const void* alpha,
    const void* a, hipblasLtMatrixLayout_t layout_a, const void* b, hipblasLtMatrixLayout_t layout_b, const void* beta,
    const void* c, hipblasLtMatrixLayout_t layout_c, void* d, hipblasLtMatrixLayout_t layout_d,
    const hipblasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t workspace_bytes, hipStream_t stream);
}

#endif
