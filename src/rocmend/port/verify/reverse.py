"""Compiling the ROCm side of a port with nvcc: HIP's names with CUDA's meaning.

A dozen headers with HIP's names are written into a folder; a source that includes them gets CUDA's, and macros from
each of HIP's names that it uses to CUDA's. What only an AMD compiler has (``__builtin_amdgcn_…``) stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.names import headers, hip_names, regular

__all__ = ["REVERSE", "write_headers"]

REVERSE = ("-DUSE_ROCM", "-D__HIP_PLATFORM_NVIDIA__")
"""What is defined for the ROCm side here: HIP, and that it stands on CUDA."""

_OF_HIP = re.compile(rb"hip|HIP|__hip")
_RUNTIME = """\
// HIP's names with CUDA's meaning, for nvcc; generated.
#pragma once
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#ifndef __HIP_PLATFORM_NVIDIA__
#define __HIP_PLATFORM_NVIDIA__ 1
#endif
#ifdef __CUDACC__
#define __HIPCC__ 1
static __device__ __forceinline__ unsigned int rocmend_lane() {
  unsigned int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
template <typename T>
static __device__ __forceinline__ T rocmend_shfl(T x, int lane, int width = 32) {
  return __shfl_sync(__activemask(), x, lane, width);
}
template <typename T>
static __device__ __forceinline__ T rocmend_shfl_up(T x, unsigned int delta, int width = 32) {
  return __shfl_up_sync(__activemask(), x, delta, width);
}
template <typename T>
static __device__ __forceinline__ T rocmend_shfl_down(T x, unsigned int delta, int width = 32) {
  return __shfl_down_sync(__activemask(), x, delta, width);
}
template <typename T>
static __device__ __forceinline__ T rocmend_shfl_xor(T x, int mask, int width = 32) {
  return __shfl_xor_sync(__activemask(), x, mask, width);
}
#define __shfl(...) rocmend_shfl(__VA_ARGS__)
#define __shfl_up(...) rocmend_shfl_up(__VA_ARGS__)
#define __shfl_down(...) rocmend_shfl_down(__VA_ARGS__)
#define __shfl_xor(...) rocmend_shfl_xor(__VA_ARGS__)
#define __ballot(p) (static_cast<unsigned long long>(__ballot_sync(__activemask(), (p))))
#define __any(p) __any_sync(__activemask(), (p))
#define __all(p) __all_sync(__activemask(), (p))
#define __lane_id() rocmend_lane()
#define hipLaunchKernelGGL(kernel, grid, block, lds, stream, ...) kernel<<<grid, block, lds, stream>>>(__VA_ARGS__)
#define __builtin_amdgcn_wave_barrier() __syncwarp(__activemask())
#define __builtin_amdgcn_fence(...) __threadfence_block()
#define __builtin_amdgcn_s_sleep(n) __nanosleep(64 * (n))
#define cuda_to_hip_atomicAdd atomicAdd  // a support header's: CUDA has it for every type
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#endif
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(x) x
"""


def write_headers(folder: Path, sources: Iterable[bytes]) -> None:
    """Write the headers.

    Args:
        folder: Where; a source that is compiled with ``-I folder`` finds them.
        sources: What will be compiled: the names that it uses are translated.
    """
    used: set[bytes] = set()
    for data in sources:
        used |= {token.text for token in CudaFile("", data).tokens if token.kind == Kind.NAME}
    names = hip_names()
    back: dict[bytes, bytes] = {}
    for cuda, hip in sorted(names.items(), key=lambda pair: (regular(pair[0].decode()).encode() != pair[1], pair[0])):
        # several names of CUDA become one of HIP: the regular one of the runtime stands for them all
        if _OF_HIP.match(hip) and (hip in used or cuda in used) and not back.get(hip, b"").startswith(b"cuda"):
            back[hip] = cuda
    lines = [f"#define {hip.decode()} {cuda.decode()}" for hip, cuda in sorted(back.items())]
    _write(folder / "hip/hip_runtime.h", _RUNTIME + "\n".join(lines) + "\n")
    _write(folder / "hip/hip_runtime_api.h", "#pragma once\n#include <hip/hip_runtime.h>\n")
    for name, header in headers().items():
        if not header.hip or name.endswith("/") or (folder / header.hip).exists():
            continue
        _write(folder / header.hip, _wrapped(name))
    _write(folder / "hipcub/hipcub.hpp", _wrapped("cub/cub.cuh") + "namespace hipcub = cub;\n")


_MACROS = ("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__ballot", "__any", "__all", "__lane_id")


def _wrapped(header: str) -> str:
    """Return a header that includes one of CUDA's without the macros above, whose names its own code may use."""
    lines = ["#pragma once", "#include <hip/hip_runtime.h>"]
    for name in _MACROS:
        lines += [f'#pragma push_macro("{name}")', f"#undef {name}"]
    lines.append(f"#include <{header}>")
    lines += [f'#pragma pop_macro("{name}")' for name in _MACROS]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
