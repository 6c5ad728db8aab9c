"""A kernel launch from device code.

What it does:
  Finds kernel launches and runtime calls in device functions.

Why it matters:
  HIP has no dynamic parallelism and no device runtime: such calls in device code do not compile.

Use instead:
  A second launch from the host, a work queue with persistent workgroups, or recursion unrolled into levels.

Fix safety:
  Nothing is rewritten.

References:
  HIP documentation, what is not supported.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_RUNTIME = tuple(
    f"cuda{name}".encode()
    for name in (
        "DeviceSynchronize",
        "GetLastError",
        "PeekAtLastError",
        "Malloc",
        "Free",
        "MemcpyAsync",
        "MemsetAsync",
        "StreamCreateWithFlags",
        "StreamDestroy",
        "GetDevice",
        "DeviceGetAttribute",
    )
)
_REMEDIES = {
    "cudaMalloc": "Use device-side malloc().",
    "cudaFree": "Use device-side free().",
}
_REMEDY = "Launch from the host, level by level, or let persistent workgroups take work from a queue."


@rule(
    "CU43",
    "Kernel launch from device code (dynamic parallelism)",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"<<<", *_RUNTIME),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html",),
    valid=(
        "__global__ void k() {}\nvoid f() {\n  k<<<1, 2>>>();\n  cudaDeviceSynchronize();\n}\n",
        '__device__ void f(cudaError_t e) {\n  printf("%s", cudaGetErrorString(e));\n}\n',
        "__host__ __device__ void f() {\n#ifndef __CUDA_ARCH__\n  cudaDeviceSynchronize();\n#endif\n}\n",
    ),
    invalid=(
        Case("__global__ void k(int n) {\n  if (n > 0) k<<<1, 2>>>(n - 1);\n}\n", None),
        Case("__device__ void f() {\n  cudaDeviceSynchronize();\n}\n", None),
    ),
)
def launches_in_kernels(file: CudaFile) -> Iterator[Found]:
    """Yield the launches and the calls."""
    for launch in file.launches():
        if _on_device_only(file, launch.start):
            yield Found(launch.start, launch.end, "a kernel is launched from device code", remedy=_REMEDY)
    for call in file.calls(*_RUNTIME):
        if _on_device_only(file, call.start):
            name = call.name.text.decode()
            yield Found(call.start, call.end, f"{name} is called from device code", remedy=_REMEDIES.get(name, _REMEDY))


def _on_device_only(file: CudaFile, offset: int) -> bool:
    function = file.function_at(offset)
    return function is not None and function.on_device and b"__host__" not in function.qualifiers
