"""An import of pynvml.

## What it does

Finds imports of `pynvml` that the file cannot do without.

## Why it matters

There is no NVML on a machine with AMD GPUs: the import fails where the package is left out, as it should be, and
`nvmlInit` fails where it is there.

## Use instead

A stand-in for the most used functions, on amdsmi, which ROCm brings; `torch.cuda` for memory and device properties.

## Fix safety

Safe: the stand-in is imported on ROCm only. A function that it lacks raises an error that says so, and PY07 reports
it. Imports of single names are a suggestion.

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
        Case("from pynvml import *\n", None),
    ),
)
def pynvml(file: PythonFile) -> Iterable[Found]:
    """Find imports that are not guarded."""
    for node, _ in imports_of(file, "pynvml"):
        if optional(file, node) or file.side(node) is Side.CUDA:
            continue
        edits: tuple[Edit, ...] = ()
        if isinstance(node, ast.Import) and len(node.names) == 1 and node.names[0].name == "pynvml":
            name = node.names[0].asname or "pynvml"
            edits = statement_gate(file, node, f"from _rocm_nvml import nvml as {name}")
        yield gated(
            file,
            node,
            edits,
            message="there is no NVML where the GPUs are AMD's: this import, or the first call, fails",
            remedy="Import it on CUDA only, and ask torch.cuda or amdsmi on ROCm.",
            needs=("is_rocm", "nvml"),
        )
