"""What HIP has only with a few lines of help: pieces of the compatibility header, each taken where its name is used."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["SHIMS", "Shim"]


class Shim(NamedTuple):
    """A piece of the compatibility header.

    Attributes:
        text: Its lines.
        replaces: Names that need no ``#define`` then.
        headers: HIP headers that it needs.
    """

    text: str
    replaces: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


def _kernel_call(name: str, hip: str, before: str, after: str, passed: str) -> Shim:
    """Return a template that takes a kernel where HIP takes ``const void *``."""
    first = f"{before}, " if before else ""
    return Shim(
        f"template <typename Kernel> static inline hipError_t {name}({first}Kernel kernel{after}) {{\n"
        f"  return {hip}({passed.replace('kernel', 'reinterpret_cast<const void *>(kernel)')});\n}}",
        (name,),
    )


def _load(name: str) -> Shim:
    return Shim(
        f"#ifdef __HIPCC__ // a cache hint: the value is the same\n"
        f"template <typename T> __device__ __forceinline__ T cuda_to_hip{name}(const T *address) {{ return *address; }}\n"
        f"#define {name}(address) cuda_to_hip{name}(address)\n#endif"
    )


def _store(name: str) -> Shim:
    return Shim(
        f"#ifdef __HIPCC__ // a cache hint: what is stored is the same\n"
        f"template <typename T> __device__ __forceinline__ void cuda_to_hip{name}(T *address, T value) {{\n"
        f"  *address = value;\n}}\n"
        f"#define {name}(address, value) cuda_to_hip{name}(address, value)\n#endif"
    )


SHIMS: dict[bytes, Shim] = {
    b"cudaFuncSetAttribute": _kernel_call(
        "cudaFuncSetAttribute",
        "hipFuncSetAttribute",
        "",
        ", hipFuncAttribute attribute, int value",
        "kernel, attribute, value",
    ),
    b"cudaFuncSetCacheConfig": _kernel_call(
        "cudaFuncSetCacheConfig", "hipFuncSetCacheConfig", "", ", hipFuncCache_t config", "kernel, config"
    ),
    b"cudaFuncSetSharedMemConfig": _kernel_call(
        "cudaFuncSetSharedMemConfig", "hipFuncSetSharedMemConfig", "", ", hipSharedMemConfig config", "kernel, config"
    ),
    b"cudaFuncGetAttributes": _kernel_call(
        "cudaFuncGetAttributes", "hipFuncGetAttributes", "hipFuncAttributes *attributes", "", "attributes, kernel"
    ),
    b"cudaLaunchKernel": _kernel_call(
        "cudaLaunchKernel",
        "hipLaunchKernel",
        "",
        ", dim3 grid, dim3 block, void **args, size_t shared_bytes = 0, hipStream_t stream = nullptr",
        "kernel, grid, block, args, shared_bytes, stream",
    ),
    b"cudaGraphInstantiate": Shim(
        "static inline hipError_t cudaGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, unsigned long long flags = 0) {\n"
        "  return hipGraphInstantiateWithFlags(exec, graph, flags);\n}\n"
        "static inline hipError_t cudaGraphInstantiate(hipGraphExec_t *exec, hipGraph_t graph, hipGraphNode_t *node, char *log,\n"
        "                                              size_t size) {\n"
        "  return hipGraphInstantiate(exec, graph, node, log, size);\n}",
        ("cudaGraphInstantiate",),
    ),
    b"__trap": Shim("#ifdef __HIPCC__\n#define __trap() __builtin_trap()\n#endif"),
    b"__brkpt": Shim("#ifdef __HIPCC__\n#define __brkpt() __builtin_debugtrap()\n#endif"),
    b"CUDART_CB": Shim("#define CUDART_CB", ("CUDART_CB",)),
    **{name.encode(): _load(name) for name in ("__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv")},
    **{name.encode(): _store(name) for name in ("__stcg", "__stcs", "__stwb", "__stwt")},
}
