"""The RNG state, read during graph capture.

## What it does

Finds `torch.cuda.get_rng_state` and `set_rng_state` in functions that capture graphs.

## Why it matters

Reading the RNG state during capture raises an error. Compiled functions read it on entry, so a compiled function
inside a captured region fails.

## Use instead

Read the state before the capture, and register the generator with the graph (`graph.register_generator_state`).

## Fix safety

Not rewritten.

## References

- <https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs>
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
    "PY17",
    "RNG state read during graph capture",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=(b"rng_state",),
    sources=("https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs",),
    valid=(
        "import torch\n\nstate = torch.cuda.get_rng_state()\n",
        (
            "import torch\n\n\ndef state():\n    return torch.cuda.get_rng_state()\n\n\n"
            "def graph():\n    return torch.cuda.CUDAGraph()\n"
        ),
    ),
    invalid=(
        Case(
            "import torch\n\ng = torch.cuda.CUDAGraph()\n"
            "with torch.cuda.graph(g):\n    s = torch.cuda.get_rng_state()\n",
            None,
        ),
    ),
)
def rng_in_capture(file: PythonFile) -> Iterable[Found]:
    """Find reads and writes of the state in functions that capture, and at the top of files that do."""
    functions = {id(file.scope(call).node) for call in captures(file)}
    names = ("get_rng_state", "set_rng_state", "get_rng_state_all", "set_rng_state_all")
    for node in file.on_rocm(file.references(*(f"torch.cuda.{name}" for name in names))):
        if id(file.scope(node).node) in functions:
            yield told(
                file,
                node,
                "the RNG state cannot be read during graph capture",
                outcome=Outcome.MANUAL,
                remedy="Read it before capture, and register the generator with the graph.",
            )
