"""What PyTorch's build of extensions translates for ROCm by itself (hipify), of what extensions use."""

from __future__ import annotations

__all__ = ["BUILT_BY_TORCH", "CUB", "HEADERS", "NAMES", "SUPPORTED_BY_TORCH"]

BUILT_BY_TORCH = "CUDA is compiled by PyTorch's build alone"
SUPPORTED_BY_TORCH = "for ROCm, it is compiled by PyTorch's build already"
"""Of a project, as ``Issue.unless`` has them."""

_CURAND = "curand_init curand_normal curand_normal4 curand_uniform curand_uniform4 curandState curandState_t"
_RUNTIME = (
    "cudaDevAttrMultiProcessorCount cudaDeviceGetAttribute cudaDeviceSynchronize cudaError_t cudaEventCreate"
    " cudaEventCreateWithFlags cudaEventDestroy cudaEventDisableTiming cudaEventElapsedTime cudaEventRecord"
    " cudaEventSynchronize cudaEvent_t cudaFree cudaFreeHost cudaFuncAttributeMaxDynamicSharedMemorySize"
    " cudaFuncSetAttribute cudaGetDevice cudaGetErrorString cudaGetLastError"
    " cudaHostAlloc cudaMalloc cudaMallocHost cudaMemcpy cudaMemcpyAsync cudaMemcpyDeviceToDevice"
    " cudaMemcpyDeviceToHost cudaMemcpyHostToDevice cudaMemset cudaMemsetAsync cudaPeekAtLastError cudaSetDevice"
    " cudaStreamCreate cudaStreamDestroy cudaStreamSynchronize cudaStreamWaitEvent cudaStream_t cudaSuccess"
)
NAMES = frozenset(name.encode() for name in [*_RUNTIME.split(), *_CURAND.split(), "curandStatePhilox4_32_10_t"])
_CUB = (
    "ArgMax ArgMin BLOCK_SCAN_WARP_SCANS BLOCK_REDUCE_WARP_REDUCTIONS BLOCK_STORE_WARP_TRANSPOSE"
    " BLOCK_LOAD_DIRECT BLOCK_STORE_DIRECT BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY BlockReduce BlockScan"
    " BlockLoad BlockStore BlockRakingLayout BlockRadixSort Uninitialized RowMajorTid"
    " CachingDeviceAllocator CountingInputIterator DeviceHistogram DeviceRadixSort DeviceReduce"
    " DeviceRunLengthEncode DeviceScan DeviceSegmentedRadixSort DeviceSegmentedReduce DeviceSelect"
    " FpLimits KeyValuePair Max Min Sum Log2 LaneId WarpMask ShuffleIndex ShuffleDown"
    " ArgIndexInputIterator TransformInputIterator WarpReduce CTA_SYNC"
)
CUB = frozenset(name.encode() for name in _CUB.split())
"""Of the namespace ``cub``: another name of it stays as it is."""
HEADERS = frozenset(
    name.encode()
    for name in [
        "cuda.h",
        "cuda_runtime.h",
        "cuda_runtime_api.h",
        "cuda_fp16.h",
        "cuda_bf16.h",
        "cooperative_groups.h",
        "curand_kernel.h",
        "curand.h",
        "cub/cub.cuh",
        "cub/config.cuh",
        "cub/util_ptx.cuh",
        "cub/util_type.cuh",
        "cub/block/block_load.cuh",
        "cub/block/block_store.cuh",
        "cub/block/block_scan.cuh",
        "cub/block/block_reduce.cuh",
        "cub/block/block_raking_layout.cuh",
    ]
)
"""Of those that every hipify since PyTorch 2.1 translates, what extensions use; another name needs a port."""
