"""bitsandbytes.

## What it does

Finds imports of `bitsandbytes`, once a file; not in bitsandbytes itself, and not where a
`try` stands around it.

## Why it matters

Wheels from version 0.49 on bring libraries for ROCm, for some gfx targets; older ones are for CUDA alone and fail at
the first call.

## Use instead

A release that has a library for the installed ROCm: `rocmend wheel inspect bitsandbytes` says which gfx targets a
wheel serves.

## Fix safety

Nothing is rewritten.

## References

- <https://huggingface.co/docs/bitsandbytes/main/en/installation>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.python.flags import Side
from rocmend.port.python.imported import imports_of, optional, unless_own
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY27",
    "bitsandbytes",
    Language.PYTHON,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=(b"bitsandbytes",),
    sources=("https://huggingface.co/docs/bitsandbytes/main/en/installation",),
    valid=(
        "import torch\n",
        "try:\n    import bitsandbytes\nexcept ImportError:\n    raise RuntimeError('pip install it')\n",
    ),
    invalid=(Case("import bitsandbytes as bnb\n", None),),
    once=True,
)
def bitsandbytes(file: PythonFile) -> Iterable[Found]:
    """Find imports."""
    for node, _ in imports_of(file, "bitsandbytes"):
        if file.side(node) is not Side.CUDA and not optional(file, node):
            yield told(
                file,
                node,
                "bitsandbytes needs a release that supports the installed ROCm and gfx target",
                outcome=Outcome.NOTE,
            )._replace(unless=unless_own("bitsandbytes"))
