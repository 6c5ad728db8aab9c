"""TF32 precision in a Triton kernel.

## What it does

Finds `tl.dot(…, input_precision="tf32")` and `"tf32x3"`.

## Why it matters

Triton's AMD backend supports `"ieee"`, `"bf16x3"` and `"bf16x6"`, and `"tf32"` on gfx942 alone: elsewhere the kernel
does not compile. `allow_tf32=True` is accepted everywhere.

## Use instead

A `tl.constexpr` argument for the precision that the host sets to `"ieee"` on ROCm.

## Fix safety

Not rewritten: a kernel cannot test the ROCm flag.

## References

- `triton.backends.amd.compiler.HIPOptions`, Triton 3.9
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY34",
    "TF32 precision in a Triton kernel",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"tf32",),
    sources=("triton.backends.amd.compiler.HIPOptions, Triton 3.9",),
    valid=('import triton.language as tl\n\nz = tl.dot(x, y, input_precision="ieee")\n',),
    invalid=(
        Case('import triton.language as tl\n\nz = tl.dot(x, y, input_precision="tf32x3")\n', None),
        Case('import triton.language as tl\n\nP = "tf32"\nz = tl.dot(x, y, input_precision=P)\n', None),
    ),
)
def triton_tf32(file: PythonFile) -> Iterable[Found]:
    """Find products whose precision is known to be one that AMD's back end lacks."""
    for call in file.on_rocm_calls("triton.language.dot", "triton.language.dot_scaled"):
        for argument in file.arguments(call, "input_precision", 3):
            if file.values(argument.value)[0] & {"tf32", "tf32x3"}:
                yield told(
                    file,
                    argument.value,
                    "Triton's AMD backend supports tf32 on gfx942 only and tf32x3 nowhere: the kernel does not compile",
                    outcome=Outcome.MANUAL,
                    remedy='Pass the precision as a tl.constexpr argument, "ieee" on ROCm.',
                )
