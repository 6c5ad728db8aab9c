"""Triton blocks smaller than the wavefronts that work on them.

## What it does

Finds `triton.Config` whose block sizes multiply to less than `num_warps` wavefronts of 64 lanes.

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
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


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
    valid=('import triton\n\nc = triton.Config({"BLOCK": 256}, num_warps=4)\n',),
    invalid=(Case('import triton\n\nc = triton.Config({"BLOCK_SIZE": 128}, num_warps=4)\n', None),),
)
def triton_blocks(file: PythonFile) -> Iterable[Found]:
    """Find configurations whose numbers are known."""
    for call in file.on_rocm_calls("triton.Config", "triton.runtime.Config"):
        if not call.args or not isinstance(call.args[0], ast.Dict):
            continue
        elements, blocks = 1, 0
        for key, value in zip(call.args[0].keys, call.args[0].values, strict=True):
            if isinstance(key, ast.Constant) and "BLOCK" in str(key.value).upper():
                size = value.value if isinstance(value, ast.Constant) else None
                elements *= size if isinstance(size, int) else 1 << 20
                blocks += 1
        warps = [value for found in file.arguments(call, "num_warps", 1) for value in file.values(found.value)[0]]
        if blocks and len(warps) == 1 and isinstance(warps[0], int) and elements < 64 * warps[0]:
            yield told(
                file,
                call.node,
                f"{elements} elements are fewer than the lanes of {warps[0]} wavefronts of 64: "
                f"lanes repeat work on gfx9",
                outcome=Outcome.NOTE,
            )
