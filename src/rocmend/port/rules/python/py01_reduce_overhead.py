"""Compiling with ``mode="reduce-overhead"``.

## What it does

Finds calls of `torch.compile` whose mode is `"reduce-overhead"`, also through aliases of the function or the mode.

## Why it matters

The mode turns on CUDA graphs in Inductor. On ROCm it was reported to be tens of times slower than the default mode,
and to degrade training silently.

## Use instead

`"default"` on ROCm. If launch overhead is the bottleneck, capture a HIP graph manually and check its replay against
an eager run.

## Fix safety

A suggestion: the project asked for graphs, and with newer versions of PyTorch and ROCm they may work on the GPU at
hand. Both modes compute the same function. Measure both before you decide.

## References

- <https://github.com/pytorch/pytorch/issues/187715>
- `torch._inductor.list_mode_options`
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.gates import expression_gate
from rocmend.port.python.modes import known_modes
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY01",
    'torch.compile with mode="reduce-overhead"',
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.SUGGEST,
    triggers=(b"reduce-overhead",),
    sources=("https://github.com/pytorch/pytorch/issues/187715", "torch._inductor.list_mode_options, torch 2.13"),
    valid=(
        'import torch\n\nf = torch.compile(f, mode="max-autotune-no-cudagraphs")\n',
        'import re\n\nf = re.compile("reduce-overhead")\n',
        'import torch\n\nif torch.version.hip is None:\n    f = torch.compile(f, mode="reduce-overhead")\n',
        "def run(torch, f):\n    return torch.load(f, mode='reduce-overhead')\n",
    ),
    invalid=(
        Case(
            'import torch\n\nf = torch.compile(f, mode="reduce-overhead", fullgraph=True)\n',
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            'f = torch.compile(f, mode="default" if is_rocm else "reduce-overhead", fullgraph=True)\n',
        ),
        Case(
            "from functools import partial\n\nfrom torch import compile as tc\n\n\n"
            '@partial(tc, mode="reduce-overhead")\ndef f(x):\n    return x\n',
            "from functools import partial\n\nfrom torch import compile as tc\n\n"
            "from package._rocm import is_rocm\n\n\n"
            '@partial(tc, mode="default" if is_rocm else "reduce-overhead")\ndef f(x):\n    return x\n',
        ),
        Case(
            'import torch as t\n\nOPTIONS = {"mode": "reduce-overhead"}\nf = t.compile(f, **OPTIONS)\n',
            "import torch as t\n\nfrom package._rocm import is_rocm\n\n"
            'OPTIONS = {"mode": "default" if is_rocm else "reduce-overhead"}\nf = t.compile(f, **OPTIONS)\n',
        ),
        Case(
            'def f(m):\n    import torch\n\n    mode = "reduce-overhead"\n    return torch.compile(m, mode=mode)\n',
            "from package._rocm import is_rocm\n\n\ndef f(m):\n    import torch\n\n"
            '    mode = "reduce-overhead"\n    return torch.compile(m, mode="default" if is_rocm else mode)\n',
        ),
    ),
)
def reduce_overhead(file: PythonFile) -> Iterable[Found]:
    """Find the mode where it is surely this one."""
    for node, _ in known_modes(file, "reduce-overhead"):
        yield gated(
            file,
            node,
            expression_gate(file, node, '"default"'),
            message='torch.compile with mode="reduce-overhead" captures graphs, which was reported to be slow on ROCm',
            remedy='Compile with mode="default" on ROCm.',
        )
