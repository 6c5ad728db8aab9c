"""Compiling with ``mode="max-autotune"``.

## What it does

Finds calls of `torch.compile` whose mode is `"max-autotune"`, also through aliases of the function or the mode.

## Why it matters

The mode does not only tune: it enables CUDA graphs like `"reduce-overhead"`, with the same problems on ROCm.

## Use instead

`"max-autotune-no-cudagraphs"` on ROCm tunes without capturing graphs. Tuning itself can take minutes at the first
run; `"default"` does not tune.

## Fix safety

Safe: tuning, which the project asked for, stays; all modes compute the same function. A suggestion where a dict of
arguments may serve other calls too, or the receiver of `.compile` is not known.

## References

- `torch._inductor.list_mode_options` of torch 2.13: `max-autotune` sets `triton.cudagraphs`
- <https://github.com/pytorch/pytorch/issues/187715>
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
    "PY02",
    'torch.compile with mode="max-autotune"',
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"max-autotune",),
    sources=("torch._inductor.list_mode_options, torch 2.13", "https://github.com/pytorch/pytorch/issues/187715"),
    valid=(
        'import torch\n\nf = torch.compile(f, mode="max-autotune-no-cudagraphs")\n',
        "print(\"torch.compile(f, mode='max-autotune')\")\n",
    ),
    invalid=(
        Case(
            'import torch\n\n\n@torch.compile(mode="max-autotune")\ndef f(x):\n    return x\n',
            "import torch\n\nfrom package._rocm import is_rocm\n\n\n"
            '@torch.compile(mode="max-autotune-no-cudagraphs" if is_rocm else "max-autotune")\n'
            "def f(x):\n    return x\n",
        ),
        Case(
            'import torch\n\nf = torch.compile(f, mode="max-autotune" if tune else None)\n',
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "f = torch.compile(f, "
            'mode=("max-autotune-no-cudagraphs" if is_rocm else "max-autotune") if tune else None)\n',
        ),
    ),
)
def max_autotune(file: PythonFile) -> Iterable[Found]:
    """Find the mode where it is surely this one."""
    for node, own in known_modes(file, "max-autotune"):
        yield gated(
            file,
            node,
            expression_gate(file, node, '"max-autotune-no-cudagraphs"'),
            message='torch.compile with mode="max-autotune" captures graphs in addition to tuning',
            remedy='Compile with mode="max-autotune-no-cudagraphs" on ROCm.',
            outcome=None if own else Outcome.SUGGEST,
        )
