"""Whether two outcomes of a statement agree, by the type of the result and by what was computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from generate import REDUCE_CLOSE, SCANS, SMOOTH, SMOOTH_BINARY, UNARY_CLOSE
from language import Program, array_of

# A step of each type at 1
EPSILON = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52, "complex64": 2**-23}
_CLOSE = {
    *UNARY_CLOSE, *REDUCE_CLOSE, *SCANS, *SMOOTH, *SMOOTH_BINARY, "divide", "power", "arctan2", "softmax", "matmul",
    "addmm", "einsum", "outer", "inner", "tensordot", "random.normal", "random.gumbel", "random.truncated_normal",
    "random.uniform", "first.quantize", "floor_divide", "remainder", "degrees", "radians",
}  # fmt: skip


def is_close_only(name: str) -> bool:
    """Return whether two right implementations may give results that differ in the last places."""
    return name in _CLOSE or name.startswith(("fast.", "transform.", "at.add", "inplace."))


def difference(name: str, theirs: Any, ours: Any) -> str:
    """Return how two outcomes of the same statement with equal inputs differ; empty if they agree.

    Args:
        name: what the statement does.
        theirs: outcome of the reference.
        ours: outcome of ``rocmend.mlx``.
    """
    if theirs[0] in ("error", "skipped") or ours[0] in ("error", "skipped"):
        if theirs[0] == ours[0]:
            return (
                "" if theirs[0] == "skipped" or _alike(theirs[1], ours[1]) else f"error type {ours[1]}, not {theirs[1]}"
            )
        if ours[0] == "error":
            return f"raises {ours[1]}: {ours[2]}"
        return f"does not raise {theirs[1]}: {theirs[2]}"
    if theirs[0] != ours[0]:
        return f"type {ours[0]}, not {theirs[0]}"
    if theirs[1] != ours[1]:
        return f"shape {ours[1]}, not {theirs[1]}"
    return values_differ(name, theirs, ours)


def _alike(theirs: str, ours: str) -> bool:
    # AxisError is both of the two that releases of MLX raise
    return theirs == ours or (ours == "AxisError" and theirs in ("IndexError", "ValueError"))


def values_differ(name: str, theirs: Any, ours: Any, slack: float = 1.0) -> str:
    """Return how two values of one type and shape differ; ``slack`` widens what is allowed."""
    a, b = array_of(theirs), array_of(ours)
    wrong = wrong_elements(name, theirs, ours, slack)
    if not wrong.any():
        return ""
    if name == "first.quantize" and a.dtype.kind not in "fc":
        return f"{wrong.sum()} of {a.size} words differ"
    at = tuple(int(item) for item in np.argwhere(wrong)[0])
    return f"value {b[at]!r}, not {a[at]!r}, at {at} ({wrong.sum()} of {a.size} differ)"


def wrong_elements(name: str, theirs: Any, ours: Any, slack: float = 1.0) -> Any:
    """Return for each element of two values of one type and shape whether they differ; see ``values_differ``."""
    a, b = array_of(theirs), array_of(ours)
    if a.size == 0:
        return np.zeros(a.shape, dtype=bool)
    if a.dtype.kind not in "fc":
        wrong = a != b
        if name == "first.quantize" and wrong.mean() < 0.3:
            wrong = np.zeros(a.shape, dtype=bool)
    elif not is_close_only(name) and slack == 1.0:
        same = (a == b) & (np.signbit(a.real) == np.signbit(b.real))
        wrong = ~(same | (np.isnan(a) & np.isnan(b)))
        if a.dtype.kind == "c":
            wrong = ~_near(a, b, EPSILON["complex64"] * 16)
    else:
        wrong = ~_near(a, b, EPSILON[theirs[0]] * 24 * slack)
    return wrong


def _near(a: Any, b: Any, relative: float) -> Any:
    with np.errstate(all="ignore"):
        finite = np.abs(a[np.isfinite(a)])
        scale = (
            min(float(finite.max()), 1e3) if finite.size else 1.0
        )  # sums cancel: an error is relative to their terms
        near = np.abs(a - b) <= relative * (np.abs(a) + max(scale, 1e-3))
        if a.dtype.kind == "c":
            return near | ~np.isfinite(a) | ~np.isfinite(b)
        return near | (a == b) | (np.isnan(a) & np.isnan(b))


def all_exact(program: Program) -> bool:
    """Return whether no statement of a program may round differently."""
    return not any(is_close_only(statement["do"]) for statement in program)
