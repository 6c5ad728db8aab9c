"""The second argument of `__launch_bounds__`.

## What it does

Notes it.

## Why it matters

In CUDA it is the minimum number of blocks per multiprocessor, in HIP the minimum number of wavefronts per SIMD
(execution unit): the same number means another register budget. Too many wavefronts make the compiler spill
registers. Results do not change.

## Use instead

For `__launch_bounds__(threads, blocks)` the guide gives `blocks * threads / 32` as HIP's second argument. Look at the
spills of the code object, then choose.

## Fix safety

Nothing is rewritten.

## References

- HIP porting guide, `__launch_bounds__`
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.core.records import Severity
from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "CU27",
    "Second argument of __launch_bounds__",
    Language.CUDA,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=(b"__launch_bounds__",),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_porting_guide.html",),
    valid=("__global__ void __launch_bounds__(256) f(int* x) {\n}\n",),
    invalid=(Case("__global__ void __launch_bounds__(256, 2) f(int* x) {\n}\n", None),),
)
def launch_bounds(file: CudaFile) -> Iterator[Found]:
    """Yield them."""
    for call in file.calls(b"__launch_bounds__", declarations=True):
        if len(call.args) > 1:
            text = file.data[call.args[1].start : call.args[1].end].decode("utf-8", "replace")
            yield Found(
                call.start,
                call.end,
                f"the second argument ({text}) means blocks per multiprocessor in CUDA, but wavefronts per SIMD in HIP",
            )
