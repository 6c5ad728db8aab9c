"""What ops of floating types declare alike. Imports neither torch nor triton."""

from __future__ import annotations

from rocmend.kernels.op import Implementation, Problem
from rocmend.kernels.target import Target

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
"""Bytes of an element of each type that kernels take."""
HELD = 16384
"""Longest row that one program keeps in registers."""


def bytes_of(dtype: str) -> int:
    """Return the bytes of an element; 8 for types that only references take."""
    return BYTES.get(dtype, 8)


def rejects_dtype(problem: Problem, _target: Target) -> str | None:
    """Say why a kernel does not take the type of a problem (``dtype``), or None."""
    return None if problem.dtype in BYTES else f"the kernel takes {', '.join(BYTES)}, not {problem.dtype}"


def rejects_forward(problem: Problem, target: Target) -> str | None:
    """Say why a kernel without gradients does not take a problem (``dtype``, ``backward``), or None."""
    return "it has no gradients" if problem.backward else rejects_dtype(problem, target)


def rejects_backward(problem: Problem, target: Target) -> str | None:
    """Say why a kernel for gradients does not take a problem (``dtype``, ``backward``), or None."""
    return rejects_dtype(problem, target) if problem.backward else "it computes gradients"


def rejects_held_backward(problem: Problem, target: Target) -> str | None:
    """Say the same of a kernel for gradients that keeps a row in registers (``columns``, too)."""
    if problem.backward and problem.columns > (HELD if target.name != "gfx906" else HELD // 2):  # it would spill there
        return f"a row of {problem.columns} elements does not fit in registers"
    return rejects_backward(problem, target)


def references(forward: str, backward: str) -> tuple[Implementation, Implementation]:
    """Return the references of an op and of its gradients, by ``module:function``, for problems with ``backward``."""
    return (
        Implementation(
            "torch",
            "reference",
            forward,
            lambda problem, _target: "it has no gradients" if problem.backward else None,
        ),
        Implementation(
            "torch_backward",
            "reference",
            backward,
            lambda problem, _target: None if problem.backward else "it computes gradients",
        ),
    )


def width_class(n: int, held: int = HELD) -> str:
    """Name the class of row lengths: short, middle, long (held in registers by one program), split (over several)."""
    return "short" if n <= 512 else "middle" if n <= 4096 else "long" if n <= held else "split"
