"""Compute capabilities compared with numbers.

## What it does

Finds comparisons of `torch.cuda.get_device_capability()`, or of `major` and `minor` of device properties, with
numbers, also by variables, functions and texts made of them. Where other code gets the capability (a function, a table,
an object, what a function returns), that is reported.

## Why it matters

On ROCm the capability is the number of the gfx target: (9, 4) for gfx942, (11, 0) for gfx1100. A test for Hopper (`>=
9`) is true there, a test for `(8, 0)` too, and NVIDIA code is selected.

## Use instead

The flag before the comparison. Test for features (`torch.cuda.is_bf16_supported()`), or use `gcnArchName`.

## Fix safety

A suggestion: on ROCm the GPU is treated as lacking the feature (`>=` becomes False, `<` True), as having it where
bfloat16 is meant, and as recent enough where an error or an assertion follows; `==` is False. Check which branch is
right.

## References

- `torch.cuda.get_device_capability`, which on ROCm gives the gfx target's numbers
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.capability import given_away, is_capability
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.gates import asserted, condition_gate
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_FIRST = 9
"""The least major number of a gfx target that PyTorch is built for: gfx900."""

_BF16 = re.compile(r"bf16|bfloat16", re.IGNORECASE)


@rule(
    "PY14",
    "compute capability compared with a number",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.SUGGEST,
    triggers=(b"get_device_capability", b"get_device_properties"),
    sources=("torch.cuda.get_device_capability, torch 2.13",),
    valid=(
        "import torch\n\nprint(torch.cuda.get_device_capability())\n",
        "import torch\n\ncap = torch.cuda.get_device_capability()\nlogger.info('%d.%d', *cap)\nprint(f'sm_{cap[0]}')\n",
        "import torch\n\nif torch.version.cuda and torch.cuda.get_device_capability()[0] >= 9:\n    run()\n",
        "import torch\n\nsame = torch.cuda.get_device_capability(0) == torch.cuda.get_device_capability(1)\n",
        (
            "import torch\n\nif DEVICE_TYPE == 'hip':\n    x = 1\nelif DEVICE_TYPE == 'cuda':\n"
            "    x = torch.cuda.get_device_capability()[0] >= 9\n"
        ),
        "import torch\n\nbig = torch.cuda.get_device_properties(0).total_memory > 1e10\n",
        "import torch\n\nis_sm89 = torch.cuda.get_device_capability() == (8, 9)\n",
        "import torch\n\nis_sm8x = torch.cuda.get_device_capability()[0] in (7, 8)\n",
    ),
    invalid=(
        Case(
            "import torch\n\nif torch.cuda.get_device_capability()[0] >= 9:\n    run()\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "if not is_rocm and torch.cuda.get_device_capability()[0] >= 9:\n    run()\n",
        ),
        Case(
            "import torch\n\nbf16 = torch.cuda.get_device_capability() >= (8, 0)\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "bf16 = is_rocm or torch.cuda.get_device_capability() >= (8, 0)\n",
        ),
        Case(
            "import torch\n\nif torch.cuda.get_device_capability()[0] >= 8:\n    types.append(torch.bfloat16)\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "if is_rocm or torch.cuda.get_device_capability()[0] >= 8:\n    types.append(torch.bfloat16)\n",
        ),
        Case(
            "import torch\n\nmajor, minor = torch.cuda.get_device_capability(0)\nfast = major >= 8 and wanted\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "major, minor = torch.cuda.get_device_capability(0)\nfast = (not is_rocm and major >= 8) and wanted\n",
        ),
        Case(
            "import torch\n\nold = torch.cuda.get_device_capability() < (9, 0)\n"
            "if torch.cuda.get_device_capability()[0] < 7:\n    raise RuntimeError('too old')\n"
            "if not torch.cuda.get_device_capability()[0] >= 7:\n    raise RuntimeError('too old')\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "old = is_rocm or torch.cuda.get_device_capability() < (9, 0)\n"
            "if not is_rocm and torch.cuda.get_device_capability()[0] < 7:\n    raise RuntimeError('too old')\n"
            "if not (is_rocm or torch.cuda.get_device_capability()[0] >= 7):\n    raise RuntimeError('too old')\n",
        ),
        Case(
            "import torch\n\nif torch.cuda.get_device_capability() != (9, 0):\n    raise RuntimeError('for Hopper')\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "if is_rocm or torch.cuda.get_device_capability() != (9, 0):\n    raise RuntimeError('for Hopper')\n",
        ),
        Case(
            "import torch\n\nif joint != 'hip':\n    x = torch.cuda.get_device_capability()[0] >= 9\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\nif joint != 'hip':\n"
            "    x = not is_rocm and torch.cuda.get_device_capability()[0] >= 9\n",
        ),
        Case(
            "import torch\n\nmajor, minor = torch.cuda.get_device_capability()\nnew = 10 * major + minor >= 90\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\nmajor, minor = torch.cuda.get_device_capability()\n"
            "new = not is_rocm and 10 * major + minor >= 90\n",
        ),
        Case(
            "import torch\n\nmajor, minor = torch.cuda.get_device_capability()\nnew = int(f'{major}{minor}') >= 90\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\nmajor, minor = torch.cuda.get_device_capability()\n"
            "new = not is_rocm and int(f'{major}{minor}') >= 90\n",
        ),
        Case("import torch\n\nif (cap := torch.cuda.get_device_capability()) >= (8, 0):\n    run(cap)\n", None),
        Case("import torch\n\n\ndef version():\n    return torch.cuda.get_device_capability()[0]\n", None),
        Case("import torch\n\nblock = BLOCKS[torch.cuda.get_device_capability()]\n", None),
        Case("import torch\n\nkernel = choose(torch.cuda.get_device_capability()[0])\n", None),
        Case("import torch\n\n\ndef f(config):\n    config.sm = torch.cuda.get_device_capability()\n", None),
        Case(
            "import torch\n\nmajor, minor = torch.cuda.get_device_capability()\narch = f'sm_{major}{minor}'\n",
            None,
        ),
        Case("import torch\n\nmatch torch.cuda.get_device_capability():\n    case (9, 0):\n        run()\n", None),
    ),
)
def capability(file: PythonFile) -> Iterable[Found]:
    """Find comparisons whose one side is a capability and whose other side is known."""
    for node in file.on_rocm(file.of(ast.Compare)):
        sides = [node.left, *node.comparators]
        if not any(is_capability(file, side) for side in sides) or any(
            isinstance(side, ast.Constant) and side.value is None for side in sides
        ):
            continue
        if isinstance(node.ops[0], ast.Eq | ast.NotEq) and not any(_is_number(file, side) for side in sides):
            continue  # two devices are compared with each other
        if all(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in node.ops) and _of_none(file, sides):
            continue  # no AMD GPU has this number: the comparison already says so
        binds = any(isinstance(one, ast.NamedExpr) for one in ast.walk(node))
        yield gated(
            file,
            node,
            () if binds else condition_gate(file, node, rocm=_on_rocm(file, node)),
            message="on ROCm the capability is the gfx target's number (9, 4 for gfx942): the comparison says nothing",
            remedy="Test for the feature, or compare on CUDA only.",
        )
    for given in given_away(file):
        yield gated(
            file,
            given,
            (),
            message="on ROCm the capability is the gfx target's number (9, 4 for gfx942), and other code gets it here",
            remedy="Choose there by the feature, or give CUDA's number on CUDA only.",
        )
    for match in file.on_rocm(file.of(ast.Match)):
        if is_capability(file, match.subject):
            yield gated(
                file,
                match.subject,
                (),
                message="on ROCm the capability is the gfx target's number (9, 4 for gfx942): the cases say nothing",
                remedy="Test for the feature, or compare on CUDA only.",
            )


def _of_none(file: PythonFile, sides: list[ast.expr]) -> bool:
    """Whether a capability is compared with numbers that no AMD GPU has: their first part is below 9."""
    major = None
    for side in sides:
        match side:
            case _ if is_capability(file, side):
                item = side.slice if isinstance(side, ast.Subscript) else None
                first = item is None or (isinstance(item, ast.Constant) and item.value == 0)
                whole = item is not None or isinstance(side, ast.Call)
                if not first or not whole:
                    return False
            case ast.Constant(value=int(number)) | ast.Tuple(elts=[ast.Constant(value=int(number)), *_]):
                among = isinstance(side, ast.Tuple) and isinstance(sides[0], ast.Subscript)  # one of several numbers
                rest = side.elts[1:] if isinstance(side, ast.Tuple) and among else []
                others = [one.value for one in rest if isinstance(one, ast.Constant) and isinstance(one.value, int)]
                if len(others) != len(rest):
                    return False
                major = max([number, *others])
            case _:
                return False
    return isinstance(major, int) and major < _FIRST


def _is_number(file: PythonFile, node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple | ast.List):
        return all(_is_number(file, one) for one in node.elts)
    return any(isinstance(value, int | float) or (isinstance(value, str) and value) for value in file.values(node)[0])


def _on_rocm(file: PythonFile, node: ast.Compare) -> bool:
    """Return what a comparison becomes on ROCm: the GPU has bfloat16, lacks other features, and is not refused."""
    statement = file.statement(node)
    if any(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in node.ops):  # code for one GPU alone
        return _asks_for_less(file, node)
    if asserted(file, node):
        return True
    if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Raise):
        return _negated(file, node)
    said = file.source(statement).split("\n", 1)[0]
    if isinstance(statement, ast.If):  # what it is for may stand in what is done
        said += file.source(statement.body[0]).split("\n", 1)[0]
    has = _BF16.search(said) is not None
    return has is not _asks_for_less(file, node)


def _negated(file: PythonFile, node: ast.expr) -> bool:
    """Whether a part of a test stands under ``not``."""
    child: ast.AST = node
    negated = False
    while isinstance(parent := file.parent(child), ast.BoolOp | ast.UnaryOp):
        negated ^= isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
        child = parent
    return negated


def _asks_for_less(file: PythonFile, node: ast.Compare) -> bool:
    """Whether a comparison is true of GPUs that are older than some."""
    if len(node.ops) != 1:
        return False
    older = (ast.Lt, ast.LtE) if is_capability(file, node.left) else (ast.Gt, ast.GtE)
    return isinstance(node.ops[0], (*older, ast.NotEq, ast.NotIn))
