"""A kernel passed without a cast to `const void *`.

What it does:
  Casts the kernel argument of `cudaFuncSetAttribute`, `cudaFuncGetAttributes` and similar functions.

Why it matters:
  CUDA has templates of these functions that take any kernel; HIP only has overloads for `const void *`, and C++ does
  not convert function pointers to it.

Use instead:
  `reinterpret_cast<const void *>(kernel)`.

Fix safety:
  Safe: it is what CUDA's template does. An argument that is cast already is left alone.

References:
  HIP runtime API, execution control.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.structure import Call
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_AT = {
    b"cudaFuncSetAttribute": 0,
    b"cudaFuncSetCacheConfig": 0,
    b"cudaFuncSetSharedMemConfig": 0,
    b"cudaFuncGetAttributes": 1,
    b"cudaLaunchKernel": 0,
}
"""Which argument is the kernel."""


@rule(
    "CU21",
    "Kernel passed without a cast to const void *",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"cudaFunc", b"cudaLaunchKernel"),
    sources=(
        "https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hip_runtime_api/modules/execution_control.html",
        "measured: HIP 6.4 headers",
    ),
    valid=(
        "void f() { cudaFuncSetCacheConfig((const void *)k, cudaFuncCachePreferL1); }\n",
        "void f() { cudaFuncSetCacheConfig(reinterpret_cast<void *>(k), cudaFuncCachePreferL1); }\n",
        "void f() { cudaFuncSetCacheConfig(ROCM_ONLY((const void *)) k, cudaFuncCachePreferL1); }\n",
        "void f(const void *kernel) { cudaFuncSetCacheConfig(kernel, cudaFuncCachePreferL1); }\n",
    ),
    invalid=(
        Case(
            "void f() {\n  cudaFuncSetAttribute(k<float, 4>, attribute, 1024);\n}\n",
            "void f() {\n#ifdef USE_ROCM\n"
            "  cudaFuncSetAttribute(reinterpret_cast<const void *>(k<float, 4>), attribute, 1024);\n"
            "#else\n  cudaFuncSetAttribute(k<float, 4>, attribute, 1024);\n#endif\n}\n",
        ),
        Case(
            "void f() {\n  cudaFuncGetAttributes(&attributes, k);\n}\n",
            "void f() {\n#ifdef USE_ROCM\n"
            "  cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(k));\n"
            "#else\n  cudaFuncGetAttributes(&attributes, k);\n#endif\n}\n",
        ),
        Case(
            "void f() {\n  check(cudaFuncSetAttribute(\n      k,\n      attribute,\n      1024));\n}\n",
            "void f() {\n  check(cudaFuncSetAttribute(\n#ifdef USE_ROCM\n      reinterpret_cast<const void *>(k),\n"
            "#else\n      k,\n#endif\n      attribute,\n      1024));\n}\n",
        ),
    ),
)
def kernels_as_pointers(file: CudaFile) -> Iterator[Found]:
    """Yield the calls."""
    if file.path.endswith(".c"):
        return
    for call in file.calls(*_AT):
        at = _AT[call.name.text]
        if at >= len(call.args) or _is_pointer(file, call, at):
            continue
        kernel = call.args[at]
        if any(one.directive >= 0 for one in file.tokens[kernel.first : kernel.last]):
            continue  # it is another on each side already
        text = b"reinterpret_cast<const void *>(" + file.data[kernel.start : kernel.end] + b")"
        yield Found(
            kernel.start,
            kernel.end,
            f"{call.name.text.decode()} takes a const void * in HIP",
            (Edit(kernel.start, kernel.end, text),),
        )


def _cast_by_macro(file: CudaFile, first: int, last: int) -> bool:
    """Return whether a macro of the project casts on ROCm: ``ROCM_ONLY((void *)) kernel``."""
    closed = file.partner.get(first + 1, last)
    inside = [one.text for one in file.tokens[first + 2 : closed]]
    return file.tokens[first].text.isupper() and closed < last - 1 and inside[-3:] == [b"void", b"*", b")"]


def _is_pointer(file: CudaFile, call: Call, at: int) -> bool:
    kernel = call.args[at]
    first = file.tokens[kernel.first]
    if first.text in (b"reinterpret_cast", b"static_cast", b"nullptr", b"NULL"):
        return True
    if first.text == b"(" and file.partner.get(kernel.first, kernel.last) < kernel.last - 1:
        return True
    if _cast_by_macro(file, kernel.first, kernel.last):
        return True
    declared = file.declaration_of(first.text, call.start) if kernel.last - kernel.first == 1 else None
    return declared is not None and declared.type in (b"void", b"const void") and b"*" in declared.pointers
