"""NVTX profiler ranges.

## What it does

Finds `torch.cuda.nvtx` and imports of `nvtx`.

## Why it matters

PyTorch for ROCm maps `torch.cuda.nvtx` to roctx where it was built with it, and raises an error where it was not. The
package `nvtx` needs NVIDIA's library to show anything.

## Use instead

The same calls; rocprofv3 shows the ranges with `--marker-trace`.

## Fix safety

Nothing is rewritten.

## References

- <https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.python.flags import Side
from rocmend.port.python.imported import imports_of
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY31",
    "NVTX ranges",
    Language.PYTHON,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=(b"nvtx",),
    sources=("https://rocm.docs.amd.com/projects/rocprofiler-sdk/en/latest/how-to/using-rocprofv3.html",),
    valid=("nvtx = None\n",),
    invalid=(
        Case("import torch\n\ntorch.cuda.nvtx.range_push('step')\n", None),
        Case("import nvtx\n", None),
    ),
    once=True,
)
def nvtx(file: PythonFile) -> Iterable[Found]:
    """Find calls and imports."""
    found = [call.node for call in file.calls(*(f"torch.cuda.nvtx.{name}" for name in _NAMES))]
    for node in [*found, *(node for node, _ in imports_of(file, "nvtx"))]:
        if file.side(node) is not Side.CUDA:
            yield told(
                file,
                node,
                "NVTX profiler ranges: on ROCm they map to roctx if PyTorch was built with it",
                outcome=Outcome.NOTE,
            )


_NAMES = ("range", "range_push", "range_pop", "range_start", "range_end", "mark")
