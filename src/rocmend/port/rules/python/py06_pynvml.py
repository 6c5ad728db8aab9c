"""An import of pynvml.

## What it does

Finds unconditional imports of `pynvml`.

## Why it matters

There is no NVML on a machine with AMD GPUs: the import fails if the package is not installed, and `nvmlInit` fails if
it is.

## Use instead

A replacement for the most used functions, based on ROCm's amdsmi; `torch.cuda` for memory and device properties.

## Fix safety

Safe: the replacement is imported on ROCm only. A function that it lacks raises a clear error, and PY07 reports it. An
import of names is rewritten if the replacement has all of them.

## References

- <https://rocm.docs.amd.com/projects/amdsmi/en/latest/reference/amdsmi-py-api.html>
- `torch.cuda`, which uses amdsmi itself on ROCm
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import statement_gate
from rocmend.port.python.imported import imports_of, optional
from rocmend.port.python.units import NVML_FUNCTIONS, NVML_NAMES
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY06",
    "import of pynvml",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"pynvml",),
    sources=(
        "https://rocm.docs.amd.com/projects/amdsmi/en/latest/reference/amdsmi-py-api.html",
        "torch.cuda, torch 2.13",
    ),
    valid=(
        "try:\n    import pynvml\nexcept ImportError:\n    pynvml = None\n",
        '"""import pynvml"""\n',
        "from package._rocm import is_rocm\n\nif not is_rocm:\n    import pynvml\n",
    ),
    invalid=(
        Case(
            "import os\n\nimport pynvml\nimport torch\n\npynvml.nvmlInit()\n",
            "import os\n\nfrom package._rocm import is_rocm\n\nif is_rocm:\n"
            "    from package._rocm_nvml import nvml as pynvml\nelse:\n    import pynvml\n"
            "import torch\n\npynvml.nvmlInit()\n",
        ),
        Case(
            "def free():\n    import pynvml as nv\n\n    nv.nvmlInit()\n",
            "from package._rocm import is_rocm\n\n\ndef free():\n    if is_rocm:\n"
            "        from package._rocm_nvml import nvml as nv\n    else:\n"
            "        import pynvml as nv\n\n    nv.nvmlInit()\n",
        ),
        Case(
            "from pynvml import nvmlDeviceGetCount as count, nvmlInit\n",
            "from package._rocm import is_rocm\n\nif is_rocm:\n"
            "    from package._rocm_nvml import nvmlDeviceGetCount as count, nvmlInit\nelse:\n"
            "    from pynvml import nvmlDeviceGetCount as count, nvmlInit\n",
        ),
        Case(
            "def f():\n    import os, pynvml\n",
            "from package._rocm import is_rocm\n\n\ndef f():\n    if is_rocm:\n        import os\n"
            "        from package._rocm_nvml import nvml as pynvml\n    else:\n        import os, pynvml\n",
        ),
        Case("from pynvml import *\n", None),
        Case("from pynvml import nvmlDeviceGetNvLinkState\n", None),
    ),
)
def pynvml(file: PythonFile) -> Iterable[Found]:
    """Find imports that are not guarded."""
    for node, _ in imports_of(file, "pynvml"):
        if optional(file, node) or file.side(node) is Side.CUDA:
            continue
        rocm = _stand_in(node)
        edits: tuple[Edit, ...] = statement_gate(file, node, rocm) if rocm else ()
        yield gated(
            file,
            node,
            edits,
            message="NVML does not exist for AMD GPUs: this import, or the first call, fails",
            remedy="Import it on CUDA only, and use torch.cuda or amdsmi on ROCm.",
            needs=("is_rocm", "nvml"),
        )


def _stand_in(node: ast.Import | ast.ImportFrom) -> str:
    """Return what is imported on ROCm; empty where the stand-in does not have it all."""
    if isinstance(node, ast.ImportFrom):
        known = node.module == "pynvml" and {one.name for one in node.names} <= NVML_FUNCTIONS | NVML_NAMES
        shown = [f"{one.name} as {one.asname}" if one.asname else one.name for one in node.names]
        return f"from _rocm_nvml import {', '.join(shown)}" if known else ""
    if any(one.name.startswith("pynvml.") for one in node.names):
        return ""
    lines = []
    for one in node.names:
        if one.name == "pynvml":
            lines.append(f"from _rocm_nvml import nvml as {one.asname or 'pynvml'}")
        else:
            lines.append(f"import {one.name} as {one.asname}" if one.asname else f"import {one.name}")
    return "\n".join(lines)
