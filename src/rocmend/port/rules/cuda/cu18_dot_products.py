"""`__dp4a` and `__dp2a`.

## What it does

Replaces `__dp4a`, `__dp2a_lo` and `__dp2a_hi` with helpers.

## Why it matters

HIP has no such functions: `amd_mixed_dot` has other types and saturates. The machine instructions differ from target
to target (`v_dot4_i32_i8` on gfx906 and gfx9 with matrix cores, `v_dot4_i32_iu8` on gfx11 and gfx12, none on
gfx1010).

## Use instead

`hip_ptx::dp4a(a, b, c)` from `ptx.h`: plain C++ that is right on each target.

## Fix safety

Safe: each form was run against a model of the PTX instruction over random and edge operands. If performance matters,
use `__builtin_amdgcn_sdot4` and similar builtins.

## References

- CUDA math API, integer intrinsics
- LLVM, user guide for AMDGPU
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Found, rule
from rocmend.port.wave.cases import gated

_HELPERS = {b"__dp4a": b"hip_ptx::dp4a", b"__dp2a_lo": b"hip_ptx::dp2a_lo", b"__dp2a_hi": b"hip_ptx::dp2a_hi"}


@rule(
    "CU18",
    "__dp4a and __dp2a",
    Language.CUDA,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"__dp4a", b"__dp2a"),
    sources=(
        "https://docs.nvidia.com/cuda/cuda-math-api/cuda_math_api/group__CUDA__MATH__INTRINSIC__INT.html",
        "measured: built with g++, against a model of dp4a and dp2a",
    ),
    valid=(
        "__device__ int f(int a, int b) {\n  return hip_ptx::dp4a(a, b, 0);\n}\n",
        "__device__ int __dp4a(int a, int b, int c) {\n  return a;\n}\nint g(int a) {\n  return __dp4a(a, a, a);\n}\n",
    ),
    invalid=(
        gated(
            ("  return __dp4a(a, b, c) + __dp2a_lo(a, b, c);"),
            "  return hip_ptx::dp4a(a, b, c) + hip_ptx::dp2a_lo(a, b, c);",
            "__device__ int f(int a, int b, int c) {\n",
            "}\n",
        ),
    ),
)
def dot_products(file: CudaFile) -> Iterator[Found]:
    """Yield the calls; none where the project defines the function itself."""
    own = {one.name.text for one in file.functions} | file.macros.keys()
    for call in file.calls(*_HELPERS):
        name = call.name.text
        if name not in own and not call.qualifier:
            edit = Edit(call.name.start, call.name.end, _HELPERS[name])
            yield Found(call.start, call.end, f"HIP has no {name.decode()}", (edit,), needs=("ptx", "warp32"))
