"""A hard-coded warp size of 32.

## What it does

Finds names and parameters that say warp size and are 32, in files with GPU kernels.

## Why it matters

The wave size is 64 on gfx9 and 32 on gfx10, gfx11 and gfx12. Kernels in Triton, Numba or CuPy that divide or shuffle
by a constant of 32 compute something else on gfx9.

## Use instead

The wave size of the device: `torch.cuda.get_device_properties(0).warp_size`, for Triton
`triton.runtime.driver.active.get_current_target().warp_size`.

## Fix safety

Not rewritten: everything that depends on it has to be checked.

## References

- <https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hardware_features.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_NAME = re.compile(r"_*(?:cuda_?|nv_?)?(?:warp_?size|threads_?per_?warp|lanes_?per_?warp|warp_?width)", re.IGNORECASE)
_KERNELS = re.compile(rb"\b(?:triton|numba|cupy|cuda)\b")


@rule(
    "PY24",
    "hard-coded warp size of 32",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.MANUAL,
    triggers=(b"warp", b"WARP", b"Warp"),
    sources=("https://rocm.docs.amd.com/projects/HIP/en/latest/reference/hardware_features.html",),
    valid=(
        "import triton\n\nwarp_size = target.warp_size\n",
        "WARP_SIZE = 32  # of a weaver's loom\n",
        "import triton\n\nnum_warps = 32\n",
    ),
    invalid=(
        Case("import triton\n\nWARP_SIZE = 32\n", None),
        Case("from numba import cuda\n\n\ndef f(x, warp_size=32):\n    return x // warp_size\n", None),
    ),
)
def warp_size(file: PythonFile) -> Iterable[Found]:
    """Find assignments, defaults and keyword arguments."""
    if not _KERNELS.search(file.data):
        return
    for name, value, node in _named(file):
        if _NAME.fullmatch(name) and _is_32(file, value) and node in file.on_rocm([node]):
            yield told(
                file,
                node,
                "the wavefront size is 64 on gfx9 and 32 on gfx10 to gfx12",
                outcome=Outcome.MANUAL,
                remedy="Query the device: torch.cuda.get_device_properties(device).warp_size.",
            )


def _named(file: PythonFile) -> Iterator[tuple[str, ast.expr, ast.AST]]:
    for scope in {id(scope): scope for scope in file.scopes.scope_of.values()}.values():
        for name, bindings in scope.bindings.items():
            for binding in bindings:
                value = binding.value or binding.default
                if value is not None:
                    yield name, value, binding.node
    for call in file.of(ast.Call):
        for keyword in call.keywords:
            if keyword.arg:
                yield keyword.arg, keyword.value, keyword


def _is_32(file: PythonFile, value: ast.expr) -> bool:
    if (
        isinstance(value, ast.Call)
        and len(value.args) == 1
        and file.qualified(value.func) == "triton.language.constexpr"
    ):
        value = value.args[0]
    return isinstance(value, ast.Constant) and value.value == 32
