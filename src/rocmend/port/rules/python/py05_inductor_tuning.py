"""Inductor's memory planning and autotuning, enabled in its configuration.

## What it does

Finds `memory_planning`, `max_autotune` and its variants, and `coordinate_descent_tuning` set to True in Inductor's
configuration or in the options of `torch.compile`.

## Why it matters

Memory planning was reported to recurse until the process crashes on ROCm; autotuning at first use can take so long
that it looks like a hang.

## Use instead

False on ROCm; tune in a separate run.

## Fix safety

Safe: the switches change how code is chosen and memory laid out, not what is computed.

## References

- The configuration that ports to MI300X and MI350X settled on: memory planning and autotuning off, GEMMs by ATen
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

_NAMES = (
    "memory_planning",
    "max_autotune",
    "max_autotune_gemm",
    "max_autotune_pointwise",
    "coordinate_descent_tuning",
)


@rule(
    "PY05",
    "Inductor configured to plan memory or to autotune",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.AUTO,
    triggers=(b"memory_planning", b"max_autotune", b"coordinate_descent_tuning"),
    sources=("reported from ports to MI300X and MI350X", "torch._inductor.config, torch 2.13"),
    valid=(
        "import torch._inductor.config\n\ntorch._inductor.config.max_autotune = False\n",
        "settings.max_autotune = True\n",
        'import torch\n\nf = torch.compile(f, options={"epilogue_fusion": True})\n',
    ),
    invalid=(
        Case(
            "import torch\nimport torch._inductor.config\n\ntorch._inductor.config.memory_planning = True\n",
            "import torch\nimport torch._inductor.config\n\nfrom package._rocm import is_rocm\n\n"
            "torch._inductor.config.memory_planning = False if is_rocm else True\n",
        ),
        Case(
            "from torch._inductor import config\n\nwith config.patch(max_autotune=True):\n    run()\n",
            "from torch._inductor import config\n\nfrom package._rocm import is_rocm\n\n"
            "with config.patch(max_autotune=False if is_rocm else True):\n    run()\n",
        ),
    ),
)
def inductor_tuning(file: PythonFile) -> Iterable[Found]:
    """Find the switches where they are surely on."""
    for name, value, shared in switched_on(file, _NAMES):
        yield gated(
            file,
            value,
            expression_gate(file, value, "False"),
            message=f"Inductor's {name} is on, which can crash or stall compilation on ROCm",
            remedy=f"Leave {name} off on ROCm.",
            outcome=Outcome.SUGGEST if shared else None,
        )
