"""Attention restricted to backends that a GPU may lack.

## What it does

Finds the math backend of `scaled_dot_product_attention` disabled, and `sdpa_kernel` without it.

## Why it matters

On ROCm the flash and memory-efficient backends exist for some gfx targets only. If no allowed backend works, the call
raises `No available kernel`.

## Use instead

The math backend among the allowed ones on ROCm: it is used if no other works.

## Fix safety

A suggestion: it can use more memory, which the restriction may have been meant to save.

## References

- `torch.nn.attention.sdpa_kernel`, torch 2.13
- <https://github.com/ROCm/aotriton>, which lists its targets
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import gated
from rocmend.port.python.flags import Side
from rocmend.port.python.gates import expression_gate
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "PY30",
    "attention without the math backend",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.SUGGEST,
    triggers=(b"sdp",),
    sources=("torch.nn.attention, torch 2.13", "https://github.com/ROCm/aotriton"),
    valid=(
        "import torch\n\ntorch.backends.cuda.enable_math_sdp(True)\n",
        "from torch.nn.attention import SDPBackend, sdpa_kernel\n\nwith sdpa_kernel(SDPBackend.MATH):\n    run()\n",
    ),
    invalid=(
        Case(
            "import torch\n\ntorch.backends.cuda.enable_math_sdp(False)\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\n"
            "torch.backends.cuda.enable_math_sdp(True if is_rocm else False)\n",
        ),
        Case(
            "from torch.nn.attention import SDPBackend, sdpa_kernel\n\n"
            "with sdpa_kernel(SDPBackend.FLASH_ATTENTION):\n    run()\n",
            "from torch.nn.attention import SDPBackend, sdpa_kernel\n\nfrom package._rocm import is_rocm\n\n"
            "with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH] "
            "if is_rocm else SDPBackend.FLASH_ATTENTION):\n"
            "    run()\n",
        ),
        Case(
            "from torch.nn.attention import SDPBackend, sdpa_kernel\n\nFAST = [SDPBackend.FLASH_ATTENTION]\n"
            "with sdpa_kernel(FAST):\n    run()\n",
            "from torch.nn.attention import SDPBackend, sdpa_kernel\n\nfrom package._rocm import is_rocm\n\n"
            "FAST = [SDPBackend.FLASH_ATTENTION]\n"
            "with sdpa_kernel([*FAST, SDPBackend.MATH] if is_rocm else FAST):\n    run()\n",
        ),
        Case(
            "import torch\n\nwith torch.backends.cuda.sdp_kernel(enable_flash=True, enable_math=False):\n    run()\n",
            "import torch\n\nfrom package._rocm import is_rocm\n\nwith torch.backends.cuda.sdp_kernel("
            "enable_flash=True, enable_math=True if is_rocm else False):\n    run()\n",
        ),
    ),
)
def sdp_backends(file: PythonFile) -> Iterable[Found]:
    """Find switches and contexts that leave the math back end out."""
    for value, rocm in [*_switches(file), *_contexts(file)]:
        if file.side(value) is Side.CUDA:
            continue
        yield gated(
            file,
            value,
            expression_gate(file, value, rocm) if rocm else (),
            message="without the math backend, attention fails on gfx targets that support no other",
            remedy="Allow the math backend on ROCm.",
        )


def _switches(file: PythonFile) -> Iterator[tuple[ast.expr, str]]:
    pairs = (
        ("torch.backends.cuda.enable_math_sdp", "enabled", 0),
        ("torch.backends.cuda.sdp_kernel", "enable_math", 1),
    )
    for function, name, position in pairs:
        for call in file.on_rocm_calls(function):
            for argument in file.arguments(call, name, position):
                if file.values(argument.value) == ({False}, True):
                    yield argument.value, "True"


def _contexts(file: PythonFile) -> Iterator[tuple[ast.expr, str]]:
    for call in file.on_rocm_calls("torch.nn.attention.sdpa_kernel"):
        for argument in file.arguments(call, "backends", 0):
            value = argument.value
            literal = _literal(file, value)
            several = isinstance(literal, ast.List | ast.Tuple)
            backends = literal.elts if isinstance(literal, ast.List | ast.Tuple) else [literal]
            names = [file.qualified(one) or "" for one in backends]
            if not backends or not all(name.startswith("torch.nn.attention.SDPBackend.") for name in names):
                continue
            if any(name.endswith(".MATH") for name in names):
                continue
            math = f"{file.source(backends[0]).rpartition('.')[0]}.MATH"
            shown = [file.source(one) for one in backends] if literal is value else [f"*{file.source(value)}"]
            yield value, f"[{', '.join([*shown, math])}]" if several or "\n" not in shown[0] else ""


def _literal(file: PythonFile, value: ast.expr) -> ast.expr:
    """Return the list that a name is bound to, once; else the expression itself."""
    found = file.scope(value).lookup(value.id) if isinstance(value, ast.Name) else None
    bound = found[1][0].value if found and len(found[1]) == 1 else None
    return bound if isinstance(bound, ast.List | ast.Tuple) else value
