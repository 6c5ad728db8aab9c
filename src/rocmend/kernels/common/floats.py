"""What ops declare alike: element types, rules, references, costs, tolerances. Imports neither torch nor triton."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rocmend.kernels.op import Cost, Implementation, Problem, Rule, Tolerance
from rocmend.kernels.target import Target

BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
"""Bytes of an element of each type that kernels take."""
FLOATS = tuple(BYTES)
"""The types that kernels take."""
NUMBERS = {
    "bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
}  # fmt: skip
"""Bytes of an element of each type that can be ordered."""
ELEMENTS = {**NUMBERS, "complex64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1}
"""Bytes of an element of each type."""
HELD = 16384
"""Longest row that one program keeps in registers."""


class Rows(NamedTuple):
    """What choices depend on, for an op over rows and for its gradients."""

    dtype: str
    rows: int
    columns: int
    backward: bool = False

    @property
    def elements(self) -> float:
        """Elements of all rows."""
        return float(self.rows) * self.columns


def bytes_of(dtype: str) -> int:
    """Return the bytes of an element; 8 for types that only references take."""
    return BYTES.get(dtype, 8)


def rejects_dtype(problem: Problem, _target: Target) -> str | None:
    """Say why a kernel does not take the type of a problem (``dtype``), or None."""
    return None if problem.dtype in BYTES else f"the kernel takes {', '.join(BYTES)}, not {problem.dtype}"


def limits(**most: int) -> Rule:
    """Return the rule of a kernel that takes fields of a problem up to limits, and the types of ``rejects_dtype``."""

    def rejects(problem: Problem, target: Target) -> str | None:
        for name, limit in most.items():
            if (value := getattr(problem, name)) > limit:
                return f"the kernel takes {name.replace('_', ' ')} up to {limit}, not {value}"
        return rejects_dtype(problem, target)

    return rejects


def rejects_forward(problem: Problem, target: Target) -> str | None:
    """Say why a kernel without gradients does not take a problem (``dtype``, ``backward``), or None."""
    return "it has no gradients" if problem.backward else rejects_dtype(problem, target)


def rejects_backward(problem: Problem, target: Target) -> str | None:
    """Say why a kernel for gradients does not take a problem (``dtype``, ``backward``), or None."""
    return rejects_dtype(problem, target) if problem.backward else "it computes gradients"


def held_rows(longest: int = HELD) -> Rule:
    """Return the rule of a kernel that keeps rows (``columns``) of up to so many elements in registers."""
    return lambda problem, _target: (
        None if problem.columns <= longest else f"a row of {problem.columns} elements does not fit in registers"
    )


def rejects_held_backward(problem: Problem, target: Target) -> str | None:
    """Say why a kernel for gradients that keeps a row in registers does not take a problem (``columns``), or None."""
    longest = HELD if target.name != "gfx906" else HELD // 2  # it would spill there
    return rejects_backward(problem, target) or held_rows(longest)(problem, target)


def kernel(
    name: str,
    *rules: Rule,
    note: str = "",
    avoid: Rule = lambda _problem, _target: None,
    record_class: Callable[[Problem], str] | None = None,
    function: str = "",
    file: str = "kernel",
    **more: Any,
) -> Implementation:
    """Return a kernel of an op, for problems that no rule rejects.

    Args:
        name: Its name, which is that of its tuning records and of the function that launches it.
        rules: See ``Implementation.rejects``.
        note: See ``Implementation``, as for the rest.
        avoid: See there.
        record_class: See there.
        function: Another name of the function.
        file: Where the function is: ``kernel`` or ``host``.
        more: See there.
    """

    def rejects(problem: Problem, target: Target) -> str | None:
        return next((reason for rule in rules if (reason := rule(problem, target))), None)

    run = f"{file}:{function or name}"
    return Implementation(name, "triton", run, rejects, note, avoid, record_class=record_class, **more)


def any_class(_problem: Problem) -> str:
    """Name the class of tuning records that hold for all problems."""
    return "*"


def class_of_width(problem: Problem) -> str:
    """Name a problem's class of row lengths (``columns``)."""
    return width_class(problem.columns)


def forward(
    name: str,
    note: str,
    *rules: Rule,
    record_class: Callable[[Problem], str] | None = any_class,
    function: str = "",
) -> Implementation:
    """Return a kernel without gradients; see ``kernel``."""
    return kernel(name, rejects_forward, *rules, note=note, record_class=record_class, function=function)


def held(
    note: str = "keeps rows in registers",
    longest: int = HELD,
    record_class: Callable[[Problem], str] | None = class_of_width,
) -> Implementation:
    """Return the kernel that keeps rows of up to so many elements in registers; see ``kernel``."""
    return forward("held", note, held_rows(longest), record_class=record_class)


def backward(
    name: str = "backward",
    *rules: Rule,
    note: str = "",
    record_class: Callable[[Problem], str] | None = any_class,
) -> Implementation:
    """Return a kernel for gradients; see ``kernel``."""
    return kernel(name, rejects_backward, *rules, note=note, record_class=record_class)


def references(forward: str, backward: str) -> tuple[Implementation, Implementation]:
    """Return the references of an op and of its gradients, functions of ``reference.py``."""
    return (
        Implementation("torch", "reference", f"reference:{forward}", rejects_gradients),
        Implementation(
            "torch_backward",
            "reference",
            f"reference:{backward}",
            lambda problem, _target: None if problem.backward else "it computes gradients",
        ),
    )


def rejects_gradients(problem: Problem, _target: Target) -> str | None:
    """Say that an implementation has no gradients, for a problem with ``backward``; None for others."""
    return "it has no gradients" if problem.backward else None


def cost_per_element(
    flops: float, tensors: float, backward: tuple[float, float], *, per_row: int = 0
) -> Callable[[Problem], Cost]:
    """Return the cost of problems with ``dtype``, ``elements`` and ``backward``, where memory is read or written once.

    Args:
        flops: Operations an element.
        tensors: Tensors read or written.
        backward: Both for the gradients.
        per_row: Elements read or written for each row (``rows``) beside these.
    """

    def cost(problem: Problem) -> Cost:
        operations, moved = backward if problem.backward else (flops, tensors)
        elements = moved * problem.elements + (per_row * problem.rows if per_row else 0)
        return Cost(operations * problem.elements, elements * bytes_of(problem.dtype))

    return cost


def tolerances(float32: Tolerance, half: Tolerance, bfloat16: Tolerance | None = None) -> dict[str, Tolerance]:
    """Return tolerances by type: of float32, and of both half types or each."""
    return {"float32": float32, "float16": half, "bfloat16": bfloat16 or half}


def width_class(n: int, held: int = HELD) -> str:
    """Name the class of row lengths: short, middle, long (held in registers by one program), split (over several)."""
    return "short" if n <= 512 else "middle" if n <= 4096 else "long" if n <= held else "split"
