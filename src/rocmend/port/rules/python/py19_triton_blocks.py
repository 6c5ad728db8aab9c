"""Triton blocks smaller than their wavefronts.

## What it does

Finds kernels whose blocks, as a `triton.Config` has them, hold fewer elements than `num_warps` wavefronts of 64 lanes.
The extents of all of the kernel's ranges have to be known.

## Why it matters

`num_warps` counts wavefronts: of 64 lanes on gfx9, of 32 on gfx10 to gfx12. Where a block has fewer elements than
there are lanes, lanes repeat the same work.

## Use instead

Fewer wavefronts or larger blocks among the configurations that are tried on ROCm.

## Fix safety

Nothing is rewritten: the result is right, only slower.

## References

- <https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/inference-optimization/optimizing-triton-kernel.html>
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_KERNEL = """import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({{"BLOCK": {size}}}, num_warps=4)], key=["n"])
@triton.jit
def add(x, n, BLOCK: tl.constexpr, OTHER: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None] + tl.arange(0, {shape})[None, :]
    tl.store(x + at, tl.load(x + at) + 1)
"""


@rule(
    "PY19",
    "Triton block smaller than its wavefronts",
    Language.PYTHON,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=(b"num_warps",),
    sources=(
        "https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/inference-optimization/optimizing-triton-kernel.html",
    ),
    valid=(
        _KERNEL.format(size=256, shape="BLOCK"),
        _KERNEL.format(size=64, shape="OTHER"),
        'import triton\n\nc = triton.Config({"BLOCK_SIZE": 128}, num_warps=4)\n',
    ),
    invalid=(Case(_KERNEL.format(size=128, shape="BLOCK"), None),),
    once=True,
)
def triton_blocks(file: PythonFile) -> Iterable[Found]:
    """Find configurations whose numbers are known."""
    for call in file.on_rocm_calls("triton.Config", "triton.runtime.Config"):
        if not call.args or not isinstance(call.args[0], ast.Dict):
            continue
        extents = _extents(_kernel(file, call.node))
        sizes = {
            key.value: value.value
            for key, value in zip(call.args[0].keys, call.args[0].values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant) and isinstance(value.value, int)
        }
        if not extents or not all(isinstance(one, int) or one in sizes for one in extents):
            continue  # the other sides of the block are chosen elsewhere
        elements = math.prod(one if isinstance(one, int) else sizes[one] for one in extents)
        warps = [value for found in file.arguments(call, "num_warps", 1) for value in file.values(found.value)[0]]
        if len(warps) == 1 and isinstance(warps[0], int) and elements < 64 * warps[0]:
            yield told(
                file,
                call.node,
                f"{elements} elements are fewer than the lanes of {warps[0]} 64-lane wavefronts: lanes repeat work "
                "on gfx9",
                outcome=Outcome.NOTE,
            )


def _kernel(file: PythonFile, node: ast.AST) -> ast.FunctionDef | None:
    """Return the kernel that a configuration among its decorators is for."""
    child = node
    while (parent := file.parent(child)) is not None:
        if isinstance(parent, ast.FunctionDef):
            return parent if child in parent.decorator_list else None
        child = parent
    return None


def _extents(kernel: ast.FunctionDef | None) -> set[int | str]:
    """Return the extents of a kernel's ranges; empty where one is more than a name or a number."""
    found: set[int | str] = set()
    for node in ast.walk(kernel) if kernel else ():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in {"make_block_ptr", "make_tensor_descriptor"}:
            return set()
        if node.func.attr == "arange":
            match node.args:
                case [_, ast.Name(id=name)]:
                    found.add(name)
                case [_, ast.Constant(value=int(number))]:
                    found.add(number)
                case _:
                    return set()
    return found
