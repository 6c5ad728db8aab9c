"""Inductor's CUDA graphs, enabled in its configuration.

## What it does

Finds `torch._inductor.config.triton.cudagraphs = True` and `cudagraph_trees = True`, as assignments, by `setattr`, in
the options of `torch.compile` and of Inductor's own functions, and in patches of the configuration. A value that the
file does not show to be True is not reported.

## Why it matters

Inductor's captured graphs make `reduce-overhead` slow and unreliable on ROCm; the setting has the same effect as the
mode.

## Use instead

False on ROCm.

## Fix safety

Safe: the switch changes how compiled code is launched, not what it computes. A suggestion where a dict
of options may serve other calls too.

## References

- <https://github.com/pytorch/pytorch/issues/187715>
- `torch._inductor.config` of torch 2.13
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.gates import expression_gate
from rocmend.port.python.inductor import switched_on
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_NAMES = ("triton.cudagraphs", "triton.cudagraph_trees")


@rule(
    "PY04",
    "Inductor configured to capture graphs",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"cudagraph",),
    sources=("https://github.com/pytorch/pytorch/issues/187715", "torch._inductor.config, torch 2.13"),
    valid=(
        "import torch._inductor.config as config\n\nconfig.triton.cudagraphs = False\n",
        "config.triton.cudagraphs = True\n",
    ),
    invalid=(
        Case(
            "import torch._inductor.config as config\n\nconfig.triton.cudagraphs = True\n",
            "import torch._inductor.config as config\n\nfrom package._rocm import is_rocm\n\n"
            "config.triton.cudagraphs = False if is_rocm else True\n",
        ),
        Case(
            'import torch\n\nf = torch.compile(f, options={"triton.cudagraphs": True, "shape_padding": True})\n',
            "import torch\n\nfrom package._rocm import is_rocm\n\nf = torch.compile(f, options="
            '{"triton.cudagraphs": False if is_rocm else True, "shape_padding": True})\n',
        ),
        Case(
            "from torch._inductor import config\n\nsetattr(config.triton, 'cudagraphs', True)\n",
            "from torch._inductor import config\n\nfrom package._rocm import is_rocm\n\n"
            "setattr(config.triton, 'cudagraphs', False if is_rocm else True)\n",
        ),
        Case(
            "from torch._inductor.compile_fx import compile_fx\n\n"
            'f = compile_fx(g, x, config_patches={"triton.cudagraphs": True})\n',
            "from torch._inductor.compile_fx import compile_fx\n\nfrom package._rocm import is_rocm\n\n"
            'f = compile_fx(g, x, config_patches={"triton.cudagraphs": False if is_rocm else True})\n',
        ),
        Case(
            "from torch._inductor import config\n\nwith config.patch({'triton.cudagraph_trees': True}):\n    run()\n",
            "from torch._inductor import config\n\nfrom package._rocm import is_rocm\n\n"
            "with config.patch({'triton.cudagraph_trees': False if is_rocm else True}):\n    run()\n",
        ),
    ),
)
def inductor_cudagraphs(file: PythonFile) -> Iterable[Found]:
    """Find the switches where they are surely on."""
    for name, value, shared in switched_on(file, _NAMES):
        yield gated(
            file,
            value,
            expression_gate(file, value, "False"),
            message=f"Inductor's {name} is on: captured graphs are slow and unreliable on ROCm",
            remedy=f"Leave {name} off on ROCm.",
            outcome=Outcome.SUGGEST if shared else None,
        )
