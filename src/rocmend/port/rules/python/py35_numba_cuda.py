"""Numba's CUDA target.

## What it does

Finds imports of `numba.cuda`.

## Why it matters

Numba compiles for NVIDIA GPUs. AMD's `numba-hip` adds a target with the same interface, for some Numba releases,
where a warp has the device's size.

## Use instead

`numba-hip`: `numba.hip.pose_as_cuda()` before the import. Or Triton, or PyTorch.

## Fix safety

Not rewritten: the target is another package, and kernels that shuffle or vote depend on the wave size.

## References

- <https://github.com/ROCm/numba-hip>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.python.flags import Side
from rocmend.port.python.imported import imports_of, optional
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY35",
    "numba.cuda",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"numba",),
    sources=("https://github.com/ROCm/numba-hip",),
    valid=("from numba import njit\n",),
    invalid=(Case("from numba import cuda\n", None), Case("import numba.cuda as nc\n", None)),
)
def numba_cuda(file: PythonFile) -> Iterable[Found]:
    """Find imports that are not guarded."""
    for node, _ in imports_of(file, "numba.cuda"):
        if file.side(node) is not Side.CUDA and not optional(file, node):
            yield told(
                file,
                node,
                "Numba's CUDA target supports NVIDIA GPUs only",
                outcome=Outcome.MANUAL,
                remedy="Use numba-hip (numba.hip.pose_as_cuda()), Triton or PyTorch on ROCm.",
            )
