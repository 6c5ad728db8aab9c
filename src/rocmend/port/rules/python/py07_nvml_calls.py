"""NVML functions without a ROCm replacement.

## What it does

Finds uses of `pynvml` that PY06's replacement does not support.

## Why it matters

NVML is NVIDIA's; the same data comes from amdsmi, which has a different API.

## Use instead

`amdsmi` (`amdsmi_get_gpu_activity`, `amdsmi_get_power_info`, `amdsmi_get_temp_metric` …), or
`torch.cuda.utilization`, `torch.cuda.temperature`, `torch.cuda.power_draw` and `torch.cuda.clock_rate`, which work on
ROCm too.

## Fix safety

Not rewritten.

## References

- <https://rocm.docs.amd.com/projects/amdsmi/en/latest/reference/amdsmi-py-api.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.python.units import NVML_FUNCTIONS, NVML_NAMES
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY07",
    "NVML function without a ROCm replacement",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=(b"pynvml",),
    sources=("https://rocm.docs.amd.com/projects/amdsmi/en/latest/reference/amdsmi-py-api.html",),
    valid=("try:\n    import pynvml\nexcept ImportError:\n    pynvml = None\n\npynvml.nvmlDeviceGetCount()\n",),
    invalid=(
        Case(
            "try:\n    import pynvml\nexcept ImportError:\n    pynvml = None\n\n"
            "pynvml.nvmlDeviceGetNvLinkState(h, 0)\n",
            None,
        ),
        Case(
            "try:\n    import pynvml\nexcept ImportError:\n    pynvml = None\n\n"
            "try:\n    f()\nexcept pynvml.NVMLError_NotSupported:\n    pass\n",
            None,
        ),
        Case("from pynvml import nvmlDeviceGetTopologyCommonAncestor as ancestor\n\nancestor(a, b)\n", None),
    ),
)
def nvml_calls(file: PythonFile) -> Iterable[Found]:
    """Find uses of functions that the stand-in lacks."""
    for node in file.on_rocm([*file.of(ast.Attribute), *file.of(ast.Name)]):
        for name in file.names(node):
            function = (name or "").partition("pynvml.")[2]
            own = (name or "").startswith("pynvml.") and re.fullmatch(r"nvml[A-Z]\w*|NVML\w+", function)
            if own and function not in NVML_FUNCTIONS | NVML_NAMES:
                yield told(
                    file,
                    node,
                    f"{function} is not implemented by the ROCm replacement for NVML",
                    outcome=Outcome.MANUAL,
                    remedy="Use amdsmi or torch.cuda on ROCm.",
                )
