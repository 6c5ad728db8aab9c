"""Triton kernels with more wavefronts than a workgroup holds.

## What it does

Finds `num_warps` above 16 in `triton.Config` and in kernel launches.

## Why it matters

A workgroup has 1024 work-items at most. `num_warps` counts wavefronts, of 64 lanes on gfx9: 32 of them are 2048
work-items, and the kernel does not launch.

## Use instead

16, which works for both wavefront sizes.

## Fix safety

Safe for a number: how many wavefronts share the work does not change what a Triton kernel computes. A list that a
loop goes through is a suggestion.

## References

- <https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hardware_features.html>: 1024 work-items a workgroup
- `triton.backends.amd.compiler.HIPOptions`, Triton 3.9
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.calls import Argument, Call
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import expression_gate
from rocmend.port.python.modes import leaves
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_MOST = 16
_AMD = re.compile(r"cdna|rdna|gfx|navi|amd|hip|rocm|wave", re.IGNORECASE)


@rule(
    "PY21",
    "num_warps above 16",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"num_warps",),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hardware_features.html",),
    valid=(
        "import triton\n\nc = triton.Config({}, num_warps=16)\n",
        "plan(num_warps=32)\n",
        "import triton\n\nc = [triton.Config({}, num_warps=w) for w in (16, 32) if w * device.warp_size <= 1024]\n",
        "import triton\n\nc = triton.Config({}, num_warps=32 if not is_cdna() else 16)\n",
        "import triton\n\nfrom utils import is_hip\n\nc = triton.Config({}, num_warps=16 if is_hip() else 32)\n",
    ),
    invalid=(
        Case(
            "import triton\n\nc = triton.Config({}, num_warps=32, num_stages=2)\n",
            "import triton\n\nfrom package._rocm import is_rocm\n\n"
            "c = triton.Config({}, num_warps=16 if is_rocm else 32, num_stages=2)\n",
        ),
        Case(
            "from kernels import add\n\nadd[(8,)](x, y, num_warps=32)\n",
            "from kernels import add\n\nfrom package._rocm import is_rocm\n\n"
            "add[(8,)](x, y, num_warps=16 if is_rocm else 32)\n",
        ),
        Case(
            "from kernels import add\n\nw = 8\nif big:\n    w = 32\nadd[(8,)](x, num_warps=w)\n"
            "add[(8,)](x, num_warps=32 if big else 4)\n",
            "from kernels import add\n\nfrom package._rocm import is_rocm\n\nw = 8\nif big:\n    w = 32\n"
            "add[(8,)](x, num_warps=min(w, 16) if is_rocm else w)\n"
            "add[(8,)](x, num_warps=(16 if is_rocm else 32) if big else 4)\n",
        ),
        Case(
            "import triton\n\nfrom kernels import add\n\nc = triton.Config({}, 32)\nkw = {'num_warps': 32}\n"
            "add[(8,)](x, **kw)\n",
            "import triton\n\nfrom kernels import add\n\nfrom package._rocm import is_rocm\n\n"
            "c = triton.Config({}, 16 if is_rocm else 32)\nkw = {'num_warps': 16 if is_rocm else 32}\n"
            "add[(8,)](x, **kw)\n",
        ),
        Case(
            "import triton\n\ncs = [triton.Config({}, num_warps=w) for w in [4, 8, 16, 32]]\n",
            "import triton\n\nfrom package._rocm import is_rocm\n\n"
            "cs = [triton.Config({}, num_warps=w) for w in ([4, 8, 16] if is_rocm else [4, 8, 16, 32])]\n",
        ),
    ),
)
def num_warps(file: PythonFile) -> Iterable[Found]:
    """Find numbers that are known to be too many."""
    for value, shared in _unique(file):
        known, complete = file.values(value)
        if _asks_for_amd(file, value):
            continue
        numbers = [number for number in known if isinstance(number, int)]
        lists = _looped(file, value)
        outcome = Outcome.SUGGEST if shared else None
        node = value
        if complete and numbers and len(numbers) == len(known) and min(numbers) > _MOST:
            edits = expression_gate(file, value, str(_MOST))
        elif lists is not None:
            left = [file.source(item) for item in lists.elts if not _too_many(item)] or [str(_MOST)]
            shown = f"[{', '.join(left)}]" if isinstance(lists, ast.List) else f"({', '.join(left)},)"
            edits, outcome, node = expression_gate(file, lists, shown), Outcome.SUGGEST, lists
        elif numbers and max(numbers) > _MOST and isinstance(value, ast.Name):
            edits, outcome = expression_gate(file, value, f"min({value.id}, {_MOST})"), Outcome.SUGGEST
        else:
            continue
        yield gated(
            file,
            node,
            edits,
            message="more than 16 wavefronts of 64 lanes exceed the 1024 work-items of a workgroup",
            remedy="Use 16 or fewer on ROCm.",
            outcome=outcome,
        )


def _asks_for_amd(file: PythonFile, node: ast.expr) -> bool:
    """Whether a number is chosen by a test that asks for AMD's architectures: its author has thought of them."""
    parent = file.parent(node)
    return isinstance(parent, ast.IfExp) and _AMD.search(ast.unparse(parent.test)) is not None


def _unique(file: PythonFile) -> Iterable[tuple[ast.expr, bool]]:
    """Return the expressions that numbers come from, once each, and whether they may serve others too."""
    return {leaf: given.shared for given in _given(file) for leaf in leaves(file, given.value)}.items()


def _given(file: PythonFile) -> Iterable[Argument]:
    for node in file.of(ast.Call):
        launch = isinstance(node.func, ast.Subscript)
        config = file.qualified(node.func) == "triton.Config"
        if file.side(node) is Side.CUDA or not (launch or config):
            continue
        call = Call(node, "triton.Config" if config else "", node.args, node.keywords)
        for argument in file.arguments(call, "num_warps", 1 if config else None):
            if file.side(argument.value) is not Side.CUDA:
                yield argument


def _too_many(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value > _MOST


def _looped(file: PythonFile, value: ast.expr) -> ast.List | ast.Tuple | None:
    """Return the literal that a comprehension takes a name's values from, where it holds a number too large."""
    if not isinstance(value, ast.Name):
        return None
    found = file.scope(value).lookup(value.id)
    for binding in found[1] if found else ():
        loop = file.parent(binding.node)
        if isinstance(loop, ast.comprehension) and any("warp" in ast.unparse(test) for test in loop.ifs):
            continue  # it is chosen from by what the device has
        literal = loop.iter if isinstance(loop, ast.comprehension) else None
        if not isinstance(literal, ast.List | ast.Tuple) or file.side(literal) is Side.CUDA:
            continue
        if any(map(_too_many, literal.elts)):
            return literal
    return None
