"""PTX inside a Triton kernel.

## What it does

Finds `tl.inline_asm_elementwise`.

## Why it matters

The assembly is PTX: a kernel that reaches it does not compile for an AMD GPU.

## Use instead

The operation in Triton's language. A kernel chooses between both by a `tl.constexpr` argument that the host sets.

## Fix safety

Not rewritten.

## References

- <https://triton-lang.org/main/python-api/generated/triton.language.inline_asm_elementwise.html>
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_INSTEAD = (
    ("tanh.approx", "libdevice.tanh, or 2 * tl.sigmoid(2 * x) - 1"),
    ("ex2.approx", "tl.exp2"),
    ("lg2.approx", "tl.log2"),
    ("rcp.approx", "1.0 / x"),
    ("rsqrt.approx", "tl.rsqrt"),
    ("sqrt.approx", "tl.sqrt"),
    ("e2m1", "shifts and masks: Triton has no 4-bit type"),
    ("cvt.", "x.to(dtype)"),
    ("lop3", "&, | and ^"),
    ("prmt", "shifts and masks"),
    ("globaltimer", "nothing: measure time on the host"),
    ("%smid", "tl.program_id"),
    ("fma.", "tl.fma"),
    ("mul", "*"),
)


@rule(
    "PY23",
    "PTX inside a Triton kernel",
    Language.PYTHON,
    severity=Severity.ERROR,
    outcome=Outcome.MANUAL,
    triggers=(b"inline_asm_elementwise",),
    sources=("https://triton-lang.org/main/python-api/generated/triton.language.inline_asm_elementwise.html",),
    valid=("import triton.language as tl\n\ny = tl.exp2(x)\n",),
    invalid=(
        Case(
            'import triton.language as tl\n\ny = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x],\n'
            "    dtype=tl.float32, is_pure=True, pack=1)\n",
            None,
        ),
    ),
)
def triton_ptx(file: PythonFile) -> Iterable[Found]:
    """Find the calls, and say what the instruction is in Triton where it is known."""
    for call in file.on_rocm_calls(
        "triton.language.inline_asm_elementwise", "triton.language.core.inline_asm_elementwise"
    ):
        text = ast.unparse(call.args[0]) if call.args else "".join(ast.unparse(one.value) for one in call.keywords)
        instead = next((other for sign, other in _INSTEAD if sign in text), "the operation in Triton")
        yield told(
            file,
            call.node,
            "PTX in a Triton kernel, which does not compile for AMD GPUs",
            outcome=Outcome.MANUAL,
            remedy=f"Write {instead} on ROCm, chosen by a tl.constexpr argument.",
        )
