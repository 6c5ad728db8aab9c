"""Graphs captured by hand.

## What it does

Finds `torch.cuda.CUDAGraph`, `torch.cuda.graph` and `torch.cuda.make_graphed_callables`.

## Why it matters

HIP graphs are there, but an operation that must not be captured may not raise an error as it does on CUDA: the replay
then computes something else, in silence.

## Use instead

The same calls, with the outputs of a replay compared with those of a plain run, once, on each gfx target.

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
    "graph captured by hand",
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
            "what a graph replays on ROCm has to be compared with a plain run: illegal captures may pass unseen",
            outcome=Outcome.MANUAL,
            remedy="Compare the outputs of a replay with those of a plain run on each gfx target.",
        )
