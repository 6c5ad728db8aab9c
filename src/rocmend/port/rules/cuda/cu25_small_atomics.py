"""atomicAdd of half and bfloat16.

What it does:
  Calls a compare-and-swap loop where `atomicAdd` adds `__half`, `__half2`, `__nv_bfloat16` or `__nv_bfloat162`.

Why it matters:
  CUDA has these overloads; HIP 6 has none of them, and `unsafeAtomicAdd` works on some GPUs and memory types only.

Use instead:
  `cuda_to_hip_atomicAdd` of the compatibility header: right on every GPU and all memory. `unsafeAtomicAdd` is faster
  where it may be used.

Fix safety:
  Safe: the loop adds in the same precision. Only calls whose pointer's type the file declares are rewritten; for
  others the compiler says that there is no such overload.

References:
  CUDA C++ programming guide, atomic functions. HIP 6.4 headers.
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.structure import Call
from rocmend.port.cuda.torch_names import SUPPORTED_BY_TORCH
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_TYPES = frozenset(
    (b"half", b"__half", b"half2", b"__half2", b"nv_bfloat16", b"__nv_bfloat16", b"nv_bfloat162", b"__nv_bfloat162")
)


@rule(
    "CU25",
    "atomicAdd of half and bfloat16",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"half", b"bfloat16"),
    sources=("https://docs.nvidia.com/cuda/cuda-c-programming-guide/#atomicadd", "measured: HIP 6.4 headers"),
    valid=(
        "__device__ void f(float *p) { atomicAdd(p, 1.0f); }\n",
        "struct half {};\n__device__ void f(int *p, half h) { atomicAdd(&p[2], 1); }\n",
    ),
    invalid=(
        Case(
            "__device__ void f(__half2 *p, __half2 v) {\n  atomicAdd(p + 1, v);\n}\n",
            "__device__ void f(__half2 *p, __half2 v) {\n#ifdef USE_ROCM\n  cuda_to_hip_atomicAdd(p + 1, v);\n"
            "#else\n  atomicAdd(p + 1, v);\n#endif\n}\n",
        ),
        Case(
            "__device__ void f(float *p, __half2 v) {\n  atomicAdd(reinterpret_cast<__half2 *>(p), v);\n}\n",
            "__device__ void f(float *p, __half2 v) {\n#ifdef USE_ROCM\n"
            "  cuda_to_hip_atomicAdd(reinterpret_cast<__half2 *>(p), v);\n"
            "#else\n  atomicAdd(reinterpret_cast<__half2 *>(p), v);\n#endif\n}\n",
        ),
    ),
)
def small_atomics(file: CudaFile) -> Iterator[Found]:
    """Yield the calls."""
    if any(one.name.text == b"atomicAdd" for one in file.functions):
        return
    for call in file.calls(b"atomicAdd"):
        if len(call.args) == 2 and not call.qualifier and _adds_small(file, call):
            yield Found(
                call.start,
                call.end,
                "HIP has no atomicAdd of this type",
                (Edit(call.name.start, call.name.end, b"cuda_to_hip_atomicAdd"),),
                needs=("cuda_to_hip",),
                unless=(SUPPORTED_BY_TORCH,),  # it compiles there: the project has an overload of its own
            )


def _adds_small(file: CudaFile, call: Call) -> bool:
    """Return whether the address is known to be one of a small type's."""
    address = call.args[0]
    tokens = file.tokens[address.first : address.last]
    words = [one.text for one in tokens] or [b""]
    if words[0] == b"reinterpret_cast" and len(words) > 3:
        return words[2] in _TYPES and words[3] == b"*"
    if words[0] == b"(" and len(words) > 3 and words[1] in _TYPES and words[2] == b"*":
        return True
    names = [one for one in tokens if one.kind == Kind.NAME]
    if not names or words[0] not in (b"&", names[0].text):
        return False
    declared = file.declaration_of(names[0].text, call.start)
    if declared is None or declared.type not in _TYPES:
        return False
    following = words[words.index(names[0].text) + 1 :]
    if words[0] == b"&":
        return bool(declared.pointers or declared.extents) == (following[:1] == [b"["])
    return following[:1] in ([], [b"+"]) and bool(declared.pointers or declared.extents)
