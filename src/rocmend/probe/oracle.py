"""Comparing an operation's result with its reference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

TOLERANCE = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float16": 1e-2,
    "bfloat16": 5e-2,
    "float8_e4m3fn": 1.5e-1,
    "float8_e5m2": 3e-1,
}
"""Relative and absolute tolerance by dtype; other dtypes are compared exactly."""


@dataclass(frozen=True)
class Comparison:
    """How far a result is from its reference.

    Attributes:
        ok: Every element is within the tolerance.
        reason: What is wrong, in a sentence; empty where it is right.
        output: Which of the operation's results it is about, counted from 0.
        max_abs_error: Largest difference.
        max_rel_error: Largest difference relative to the reference's element or its scale, whichever is larger.
        worst_index: Where the difference is largest.
        actual: The value there.
        expected: The reference's value there.
        tolerance: What was allowed, relative to element and scale.
        wrong: Number of elements out of tolerance.
        count: Number of elements.
        nan: Number of elements that are NaN where the reference is not.
    """

    ok: bool
    reason: str = ""
    output: int = 0
    max_abs_error: float = 0.0
    max_rel_error: float = 0.0
    worst_index: tuple[int, ...] = ()
    actual: float = 0.0
    expected: float = 0.0
    tolerance: float = 0.0
    wrong: int = 0
    count: int = 0
    nan: int = 0


def tolerance_of(dtype: str, *, exact: bool = False, loosen: float = 1.0) -> float:
    """Return the tolerance of a dtype by its name; 0 for one that is compared exactly."""
    return 0.0 if exact else TOLERANCE.get(dtype, 0.0) * loosen


def compare(actual: torch.Tensor, expected: torch.Tensor, tolerance: float, output: int = 0) -> Comparison:
    """Compare a result with its reference.

    An element is right where |actual - expected| ≤ tolerance · (|expected| + scale); the scale is the root mean
    square of the reference's finite elements, so that small results are not excused by a fixed absolute tolerance.

    Args:
        actual: The result, on any device.
        expected: The reference, on the CPU, float64 where it is floating.
        tolerance: Relative to element and scale; 0 compares exactly in the result's own dtype.
        output: Number of the result, for the report.
    """
    import torch

    if actual.shape != expected.shape:
        text = f"its shape is {tuple(actual.shape)}, the reference's {tuple(expected.shape)}"
        return Comparison(ok=False, reason=text, output=output)
    if tolerance == 0:
        expected = expected.to(actual.dtype)
    complex_ = actual.is_complex() or expected.is_complex()
    wide = torch.complex128 if complex_ else torch.float64
    got, want = actual.detach().cpu().to(wide).reshape(-1), expected.detach().to(wide).reshape(-1)
    if got.numel() == 0:
        return Comparison(ok=True, output=output, tolerance=tolerance)
    if complex_:  # parts are compared each by itself: an index counts real and imaginary part
        got, want = torch.view_as_real(got).reshape(-1), torch.view_as_real(want).reshape(-1)
    shape = (*actual.shape, 2) if complex_ else tuple(actual.shape)
    return _judge(got, want, shape, tolerance, output)


def _judge(got: torch.Tensor, want: torch.Tensor, shape: tuple[int, ...], tolerance: float, output: int) -> Comparison:
    import torch

    same = (got == want) | (got.isnan() & want.isnan())
    difference = torch.where(same, torch.zeros_like(got), (got - want).abs())
    difference = torch.nan_to_num(difference, nan=math.inf)
    finite = want[want.isfinite()]
    scale = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    size = torch.nan_to_num(want.abs(), nan=0.0, posinf=0.0) + (scale or 1.0)
    relative = difference / size
    wrong = relative > tolerance
    worst = int(relative.argmax())
    nan = int((got.isnan() & ~want.isnan()).sum())
    count = int(wrong.sum())
    index = tuple(int(place) for place in _unravel(worst, shape))
    result = Comparison(
        ok=count == 0,
        output=output,
        max_abs_error=float(difference.max()),
        max_rel_error=float(relative[worst]),
        worst_index=index,
        actual=float(got[worst]),
        expected=float(want[worst]),
        tolerance=tolerance,
        wrong=count,
        count=got.numel(),
        nan=nan,
    )
    return result if result.ok else _explained(result)


def _explained(found: Comparison) -> Comparison:
    from dataclasses import replace

    if found.nan:
        text = f"{found.nan} of {found.count} elements are NaN: never written, or computed from memory never written"
    else:
        allowed = f"{found.tolerance:.3g} allowed" if found.tolerance else "no difference allowed"
        text = (
            f"{found.wrong} of {found.count} elements are wrong; worst {found.actual:.6g} for {found.expected:.6g} "
            f"(relative {found.max_rel_error:.3g}, {allowed})"
        )
    return replace(found, reason=f"{text}, at {list(found.worst_index)} of result {found.output}")


def _unravel(index: int, shape: tuple[int, ...]) -> list[int]:
    places: list[int] = []
    for size in reversed(shape):
        index, place = divmod(index, size)
        places.append(place)
    return places[::-1]


def flatten(value: Any) -> list[torch.Tensor]:
    """Return the tensors of a result, which may be nested in tuples, lists and mappings, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [tensor for part in value.values() for tensor in flatten(part)]
    if isinstance(value, list | tuple):
        return [tensor for part in value for tensor in flatten(part)]
    if isinstance(value, bool | int | float | complex):
        return [torch.tensor(value)]
    return []
