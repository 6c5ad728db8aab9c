"""TF32 enabled for float32 matmuls.

## What it does

Finds `torch.backends.cuda.matmul.allow_tf32 = True`, the same for cuDNN, `fp32_precision` set to `"tf32"`,
and `tf32=True` among Transformers' training arguments, which raises an error on ROCm.

## Why it matters

Without hardware or hipBLASLt support, matmuls fail or warn; with it, results differ from those that the project was
tuned with. The difference is small, silent, and depends on the gfx target.

## Use instead

The default on ROCm: float32 matmuls are float32. Enable it on a target once its results were compared.

## Fix safety

A suggestion: the project chose speed over the last digits, and where a target has TF32 it may want the same. Only
Transformers' `tf32=True` is rewritten by itself, since it is an error on ROCm. A value that was read from the switch
and is put back is left alone.

## References

- <https://github.com/pytorch/pytorch/issues/188168>
- <https://github.com/pytorch/pytorch/pull/193345>
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.assigned import Assigned, assigned
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import block_gate, expression_gate
from rocmend.port.python.tested import looked_at
from rocmend.port.records import Edit, Language, Outcome
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

_ARGUMENTS = tuple(
    f"transformers.{module}{name}"
    for module in ("", "training_args.", "training_args_seq2seq.")
    for name in ("TrainingArguments", "Seq2SeqTrainingArguments")
)
"""Their ``tf32=True`` raises an error where PyTorch has no CUDA; None, the default, leaves the switch alone."""


@rule(
    "PY08",
    "TF32 switched on",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.SUGGEST,
    triggers=(b"tf32", b"fp32_precision"),
    sources=(
        "https://github.com/pytorch/pytorch/issues/188168",
        "https://github.com/pytorch/pytorch/pull/193345",
        "transformers.TrainingArguments and transformers.utils.is_torch_tf32_available, Transformers 4",
    ),
    valid=(
        "import torch\n\ntorch.backends.cuda.matmul.allow_tf32 = False\n",
        "import triton.language as tl\n\ny = tl.dot(a, b, allow_tf32=False)\n",
        "import torch\n\nold = torch.backends.cudnn.allow_tf32\nrun()\ntorch.backends.cudnn.allow_tf32 = old\n",
    ),
    invalid=(
        Case(
            "import torch\n\n\ndef setup():\n    torch.backends.cuda.matmul.allow_tf32 = True  # fast\n"
            "    torch.backends.cudnn.allow_tf32 = True\n    return 1\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n\ndef setup():\n    if not is_rocm:\n"
            "        torch.backends.cuda.matmul.allow_tf32 = True  # fast\n"
            "        torch.backends.cudnn.allow_tf32 = True\n    return 1\n",
        ),
        Case(
            "import torch; torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True\n",
            "from package._rocm import is_rocm\n\nimport torch; torch.backends.cudnn.allow_tf32 = "
            "torch.backends.cuda.matmul.allow_tf32 = False if is_rocm else True\n",
        ),
        Case(
            "import torch\n\ntorch.backends.cuda.matmul.allow_tf32 = settings.tf32\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "if not is_rocm:\n    torch.backends.cuda.matmul.allow_tf32 = settings.tf32\n",
        ),
        Case(
            "from transformers import TrainingArguments as A\n\na = A('out', tf32=True)\n",
            "from transformers import TrainingArguments as A\n\nfrom package._rocm import is_rocm\n\n"
            "a = A('out', tf32=None if is_rocm else True)\n",
        ),
        Case("import torch\n\ntorch.backends.cudnn.allow_tf32 = x.y = True\n", None),
    ),
)
def tf32(file: PythonFile) -> Iterable[Found]:
    """Find the switches where they are set to what is not known to be off; neighbours get one gate."""
    found = [one for one in assigned(file) if _switches_on(file, one) and not looked_at(file, one.value)]
    alone = [one.statement for one in found if one.statement is not None]
    for run in _runs(file, alone):
        values = [one.value for one in found if one.statement in run]
        sure = all(file.values(value)[1] for value in values)
        edits = block_gate(file, run[0], run[-1], None)
        if not edits and len(run) == 1 and sure:
            edits = expression_gate(file, values[0], _off(file, values[0]))
        yield _found(file, run[0], edits)
    for value in dict.fromkeys(one.value for one in found if one.statement is None):
        sure = file.values(value)[1] and _alike(file, value)
        yield _found(file, value, expression_gate(file, value, _off(file, value)) if sure else ())
    for call in file.on_rocm_calls(*_ARGUMENTS):
        for argument in file.arguments(call, "tf32"):
            if file.values(argument.value) == ({True}, True):
                edits = expression_gate(file, argument.value, "None")
                outcome = Outcome.SUGGEST if argument.shared else Outcome.AUTO
                yield _found(file, argument.value, edits, outcome)


def _found(file: PythonFile, node: ast.AST, edits: tuple[Edit, ...], outcome: Outcome = Outcome.SUGGEST) -> Found:
    return gated(
        file,
        node,
        edits,
        message="TF32 is enabled: on ROCm support depends on the gfx target, and numerical differences were reported",
        remedy="Do not set it on ROCm.",
        outcome=outcome,
    )


def _off(file: PythonFile, value: ast.expr) -> str:
    """Return what switches off what a value switches on."""
    return '"ieee"' if "tf32" in file.values(value)[0] else "False"


def _alike(file: PythonFile, value: ast.expr) -> bool:
    """Whether all that a statement sets to this value are switches of the same kind."""
    parent = file.parent(value)
    if not isinstance(parent, ast.Assign):
        return True
    wanted = {_SWITCHES.get(file.qualified(target) or "") for target in parent.targets}
    return len(wanted) == 1 and None not in wanted


def _switches_on(file: PythonFile, one: Assigned) -> bool:
    switch = file.qualified(one.target) or ""
    wanted = _SWITCHES.get(switch)
    if wanted is None or file.side(one.value) is Side.CUDA or switch in file.names(one.value):  # the last: put back
        return False
    values, complete = file.values(one.value)
    return wanted in values or not complete


def _runs(file: PythonFile, found: list[ast.stmt]) -> Iterable[list[ast.stmt]]:
    run: list[ast.stmt] = []
    for node in sorted(found, key=lambda one: (one.lineno, one.col_offset)):
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
