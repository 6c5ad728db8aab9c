"""Manually captured graphs.

## What it does

Finds `torch.cuda.CUDAGraph`, `torch.cuda.graph` and `torch.cuda.make_graphed_callables`.

## Why it matters

HIP supports graphs, but an operation that must not be captured may not raise an error as on CUDA: the replay is then
silently wrong.

## Use instead

The same calls, with the outputs of a replay compared with an eager run once on each gfx target.

## Fix safety

Not rewritten.

## References

- <https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/hipgraph.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.capture import captures
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY18",
    "manual graph capture",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=(b"CUDAGraph", b"cuda.graph", b"make_graphed_callables", b"import graph"),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/how-to/hip_runtime_api/hipgraph.html",),
    valid=("from networkx import graph\n\ngraph.Graph()\n", "# torch.cuda.CUDAGraph()\n"),
    invalid=(
        Case("from torch.cuda import CUDAGraph\n\ng = CUDAGraph()\n", None),
        Case("import torch\n\nf = torch.cuda.make_graphed_callables(f, (x,))\n", None),
    ),
    once=True,
)
def graph_capture(file: PythonFile) -> Iterable[Found]:
    """Find captures, one finding a call."""
    for node in file.on_rocm(captures(file)):
        yield told(
            file,
            node,
            "compare graph replays on ROCm with an eager run: illegal captures may go unnoticed",
            outcome=Outcome.MANUAL,
            remedy="Compare the outputs of a replay with an eager run on each gfx target.",
        )
