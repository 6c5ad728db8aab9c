"""TF32 switched on for float32 products.

## What it does

Finds `torch.backends.cuda.matmul.allow_tf32 = True`, the same for cuDNN, and `fp32_precision` set to `"tf32"`.

## Why it matters

Where the hardware or hipBLASLt has no such path, products fail or warn; where it has one, results differ from those
that the project was tuned with. The difference is small, silent, and depends on the gfx target.

## Use instead

The default on ROCm: float32 products are float32. Take the switch back on a target where its results were compared.

## Fix safety

Safe: the switch is not set on ROCm, which leaves exact products.

## References

- <https://github.com/pytorch/pytorch/issues/188168>
- <https://github.com/pytorch/pytorch/pull/193345>
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import block_gate
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_SWITCHES = {
    "torch.backends.cuda.matmul.allow_tf32": True,
    "torch.backends.cudnn.allow_tf32": True,
    "torch.backends.fp32_precision": "tf32",
    "torch.backends.cuda.matmul.fp32_precision": "tf32",
    "torch.backends.cudnn.fp32_precision": "tf32",
    "torch.backends.cudnn.conv.fp32_precision": "tf32",
    "torch.backends.cudnn.rnn.fp32_precision": "tf32",
}


@rule(
    "PY08",
    "TF32 switched on",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.AUTO,
    triggers=(b"allow_tf32", b"fp32_precision"),
    sources=("https://github.com/pytorch/pytorch/issues/188168", "https://github.com/pytorch/pytorch/pull/193345"),
    valid=(
        "import torch\n\ntorch.backends.cuda.matmul.allow_tf32 = False\n",
        "import triton.language as tl\n\ny = tl.dot(a, b, allow_tf32=False)\n",
    ),
    invalid=(
        Case(
            "import torch\n\n\ndef setup():\n    torch.backends.cuda.matmul.allow_tf32 = True  # fast\n"
            "    torch.backends.cudnn.allow_tf32 = True\n    return 1\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n\ndef setup():\n    if not is_rocm:\n"
            "        torch.backends.cuda.matmul.allow_tf32 = True  # fast\n"
            "        torch.backends.cudnn.allow_tf32 = True\n    return 1\n",
        ),
        Case("import torch; torch.backends.cudnn.allow_tf32 = True\n", None),
    ),
)
def tf32(file: PythonFile) -> Iterable[Found]:
    """Find the switches where they are set to what is not known to be off; neighbours get one gate."""
    found = [node for node in file.of(ast.Assign) if _switches_on(file, node)]
    for run in _runs(file, found):
        yield gated(
            file,
            run[0],
            block_gate(file, run[0], run[-1], None),
            message="TF32 is switched on: on ROCm a matter of the gfx target, with numeric differences reported",
            remedy="Leave the switch alone on ROCm.",
        )


def _switches_on(file: PythonFile, node: ast.Assign) -> bool:
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Attribute):
        return False
    wanted = _SWITCHES.get(file.qualified(node.targets[0]) or "")
    values, complete = file.values(node.value)
    return wanted is not None and (wanted in values or not complete) and file.side(node) is not Side.CUDA


def _runs(file: PythonFile, found: list[ast.Assign]) -> Iterable[list[ast.Assign]]:
    run: list[ast.Assign] = []
    for node in sorted(found, key=lambda one: one.lineno):
        if run and not _follows(file, run[-1], node):
            yield run
            run = []
        run.append(node)
    if run:
        yield run


def _follows(file: PythonFile, one: ast.stmt, other: ast.stmt) -> bool:
    """Whether two statements follow each other in a block with nothing but white space and comments between."""
    parent = file.parent(one)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and one in block:
            at = block.index(one) + 1
            return at < len(block) and block[at] is other
    return False
