"""Differences from the reference that are known and right to keep: each a narrow rule with its reason.

A rule looks at one statement on given operands. It excuses the elements for which its reason holds, and no others: what
it leaves is a finding. A rule of the wrong type or shape, or of an error, excuses the statement as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from compare import EPSILON, wrong_elements
from language import Program, array_of, decoded
from parts import TENDS_TO_ONE

_EXTREMES = {"maximum", "minimum", "clip", "max", "min", "cummax", "cummin", "at.maximum", "at.minimum"}
_APPROXIMATED = {"exp", "expm1", "sinh", "cosh", "sin", "cos", "tan"}
_ITEM = {"float16": 2, "bfloat16": 2, "float32": 4, "complex64": 8}
_VIEW = {"int8": 1, "uint8": 1, "uint16": 2, "int32": 4, "float32": 4}


@dataclass
class Case:
    """One statement, its operands, and both outcomes."""

    name: str
    statement: dict[str, Any]
    dtypes: list[str]
    operands: list[Any]
    theirs: Any
    ours: Any
    a: Any  # values of the reference; None where there are not two of one type and shape
    b: Any

    @property
    def chain(self) -> list[str]:
        """Names of the functions that a transformation is of."""
        return [step[0] for step in self.statement.get("chain", [])]

    @property
    def refused(self) -> str:
        """Text of the reference's error where ours gives a value."""
        return self.theirs[2] if self.theirs[0] == "error" and self.ours[0] != "error" else ""

    @property
    def refuses(self) -> str:
        """Text of our error where the reference gives a value."""
        return self.ours[2] if self.ours[0] == "error" and self.theirs[0] != "error" else ""


Excuse = Callable[[Case], Any]
Spread = Callable[[Program, Any], Any]


def _zeros(case: Case) -> Any:
    return case.a is not None and case.name in _EXTREMES and (case.a == 0) & (case.b == 0)


def _scattered_nan(case: Case) -> Any:
    return (
        case.a is not None
        and case.name in ("at.maximum", "at.minimum")
        and case.b.dtype.kind == "f"
        and np.isnan(case.b) & ~np.isnan(case.a)
    )


def _half_nan(case: Case) -> Any:
    half = case.a is not None and case.name in ("cummax", "cummin") and case.dtypes[0] in ("float16", "bfloat16")
    return half and np.isnan(case.b) & ~np.isnan(case.a)


def _kept_axis(case: Case) -> Any:
    return case.name in ("argmax", "argmin") and case.operands[0].ndim == 0 and "max_size" in case.refused


def _refused_join(case: Case) -> Any:
    ufunc = {"at.add": np.add, "at.maximum": np.maximum, "at.minimum": np.minimum}.get(case.name)
    if ufunc is None or not any(
        text in case.refused
        for text in ("Negative dimensions", "[broadcast_shapes]", "too large", "Cannot broadcast", "[reshape]")
    ):
        return False
    if not case.operands[0].size:
        return case.ours[:2] == (case.dtypes[0], list(case.operands[0].shape))
    _, where, value = (decoded(None, item, case.operands) for item in case.statement["args"])
    expected = case.operands[0].copy()
    try:
        ufunc.at(expected, where, np.asarray(value).astype(expected.dtype))
    except (IndexError, ValueError):
        return False
    return case.ours[0] == case.dtypes[0] and np.allclose(array_of(case.ours), expected, rtol=0.05, equal_nan=True)


def _refused_read(case: Case) -> Any:
    return (
        case.name == "getitem" and "input is empty" in case.refused and 0 in case.ours[1] and not case.operands[0].size
    )


def _approximate(case: Case) -> Any:
    function = getattr(np, case.name, None)
    if case.a is None or function is None or case.name not in _APPROXIMATED or case.theirs[0] != "float32":
        return False
    right = function(case.operands[0].astype(np.float32).astype(np.float64))
    near = np.abs(case.b - right) <= 4 * EPSILON["float32"] * np.abs(right)
    return near & (np.abs(case.a - right) <= 1e-4 * np.abs(right))


def _large_angle(case: Case) -> Any:
    names = ("exp", "softmax", "logsumexp", "logcumsumexp", "sin", "cos")
    if case.a is None or case.name not in names or case.dtypes[0] != "complex64":
        return False
    return (np.abs(case.operands[0]).max() > 1e3) & (np.abs(case.a - case.b) <= 2e-3)


def _cancelled_product(case: Case) -> Any:
    if case.a is None or case.name not in ("matmul", "inner", "tensordot", "einsum", "addmm"):
        return False
    sizes = [np.abs(x[np.isfinite(x)]).max(initial=0) for x in case.operands]
    return np.abs(case.a - case.b) <= EPSILON[case.theirs[0]] * 24 * max(sizes[-1] * sizes[-2], *sizes)


def _complex_infinities(case: Case) -> Any:
    if case.a is None or case.name != "isclose" or "complex64" not in case.dtypes:
        return False
    return ~np.isfinite(sum(x.astype(np.complex128) for x in case.operands)) & ~case.b


def _turns(case: Case) -> Any:
    if case.a is None or case.name not in ("logsumexp", "logcumsumexp") or case.theirs[0] != "complex64":
        return False
    apart = case.a - case.b
    turns = np.round(apart.imag / (2 * np.pi))
    return np.abs(apart - 2j * np.pi * turns) <= 1e-5 * (1 + np.abs(case.a))


def _by_zero(case: Case) -> Any:
    if case.name not in ("floor_divide", "remainder") or len(case.operands) != 2 or case.ours[0] in _ITEM:
        return False
    by_zero = case.operands[1] == 0
    return "ZeroDivisionError" in case.refuses and by_zero.any() if case.a is None else by_zero


def _complex_floor(case: Case) -> Any:
    return case.name == "floor_divide" and "Complex" in case.refuses and "complex64" in case.dtypes


def _wide_floor(case: Case) -> Any:
    if case.a is None or case.name != "floor_divide" or case.theirs[0] not in ("uint64", "int64"):
        return False
    places = [np.broadcast_to(np.abs(x.astype(np.float64)) >= 2**53, case.a.shape) for x in case.operands]
    return np.logical_or.reduce(places)


def _nan_bits(case: Case) -> Any:
    if case.a is None or case.name != "method.view" or case.dtypes[0] not in _ITEM or not case.a.ndim:
        return False
    nan = np.repeat(np.isnan(case.operands[0]), _ITEM[case.dtypes[0]], axis=-1)
    return nan.reshape(*case.a.shape, _VIEW[case.theirs[0]]).any(-1)


def _sum_wraps(case: Case) -> Any:
    if case.a is None or case.name not in ("mean", "var", "std") or case.operands[0].dtype.kind not in "iu":
        return False
    x = np.abs(case.operands[0].astype(np.float64))
    bound = 2.0**63 if case.operands[0].dtype.itemsize == 8 else 2.0**31
    return float((x if case.name == "mean" else x * x).sum()) >= bound


def _wraps_below_zero(case: Case) -> Any:
    if case.a is None or case.name not in ("logsumexp", "softmax") or case.operands[0].dtype.kind not in "iub":
        return False
    x = case.operands[0].astype(np.float64)
    if case.operands[0].dtype.kind == "i" and np.ptp(x) < 2.0 ** (8 * case.operands[0].dtype.itemsize - 1):
        return False
    ndim = case.operands[0].ndim
    axis = case.statement.get("kw", {}).get("axis")
    return ndim > 1 and (axis is None or axis not in (-1, ndim - 1))


def _nothing(case: Case) -> Any:
    neutral = {"prod": 1, "all": 1, "any": 0, "sum": 0}.get(case.name)
    return case.a is not None and neutral is not None and case.operands[0].size == 0 and case.b == neutral


def _empty_product(case: Case) -> Any:
    return case.name == "addmm" and "[reshape]" in case.refused and case.operands[0].size == 0


def _flat_tanh(case: Case) -> Any:
    return case.name == "transform.second" and "tanh" in case.chain and np.isnan(case.a) & np.isfinite(case.b)


def _one_minus(case: Case) -> Any:
    if case.a is None or not case.name.startswith("transform."):
        return False
    if not TENDS_TO_ONE & {*case.chain} and (case.name, case.theirs[0] == "float32") != ("transform.second", False):
        return False
    return np.abs(case.a - case.b) <= EPSILON[case.theirs[0]] * 24


def _erf(case: Case) -> Any:
    return case.a is not None and case.name == "erf" and np.abs(case.a - case.b) <= 6e-7


def _normed(case: Case) -> Any:
    if case.a is None or case.name != "fast.layer_norm":
        return False
    x, weight = (item.astype(np.float64) for item in case.operands)
    scale = np.abs(x).max(-1, keepdims=True) / np.sqrt(x.var(-1, keepdims=True) + case.statement["args"][3])
    return np.abs(case.a - case.b) <= EPSILON["float32"] * 24 * scale * np.abs(weight)


def _large_terms(case: Case) -> Any:
    if case.a is None or case.name not in ("sum", "mean", "cumsum", "fast.rope") or case.a.dtype.kind not in "fc":
        return False
    x = np.abs(case.operands[0].astype(np.complex128))
    x = x[np.isfinite(x)]
    terms = float(x.max()) if x.size else 0.0
    return np.abs(case.a - case.b) <= EPSILON[case.theirs[0]] * 24 * terms


def _many_terms(case: Case) -> Any:
    if case.a is None or case.name not in ("var", "std", "mean") or case.operands[0].dtype.kind == "c":
        return False
    x = case.operands[0].astype(np.float64)
    axis = case.statement.get("kw", {}).get("axis")
    kw = {"axis": tuple(axis) if isinstance(axis, list) else axis, "keepdims": case.statement["kw"]["keepdims"]}
    ddof = {"ddof": case.statement["kw"].get("ddof", 0)} if case.name != "mean" else {}
    right = getattr(np, case.name)(x, **kw, **ddof)
    size = float(np.abs(x).max(initial=0, where=np.isfinite(x)))
    near = np.abs(case.b - right) <= 4 * EPSILON[case.ours[0]] * (np.abs(right) + size * (case.name == "std"))
    terms = size ** (1 if case.name == "mean" else 2)
    power = 2 if case.name == "std" else 1
    apart = np.abs(case.a.astype(np.float64) ** power - case.b.astype(np.float64) ** power)
    return near & (apart <= EPSILON["float32"] * x.size * terms)


def _half_scan(case: Case) -> Any:
    ufunc = {"cumsum": np.cumsum, "cumprod": np.cumprod}.get(case.name)
    if case.a is None or ufunc is None or case.theirs[0] != "float16":
        return False
    return ~np.isfinite(case.a) & (np.isfinite(case.b) | np.isinf(case.b))


def _overflow_times_zero(case: Case) -> Any:
    if case.a is None or case.name not in ("prod", "cumprod") or case.operands[0].dtype.kind != "f":
        return False
    x = np.abs(case.operands[0].astype(np.float64))
    limit = np.log(65504.0 if case.theirs[0] == "float16" else 3e38)
    large = np.log(x, where=x > 1, out=np.zeros_like(x)).sum() > limit
    return large & (x == 0).any() & (np.isnan(case.a) ^ np.isnan(case.b))


def _half_overflows(case: Case) -> Any:
    if case.a is None or not case.name.startswith("transform.") or case.theirs[0] != "float16":
        return False
    small = np.minimum(np.abs(case.a), np.abs(case.b))
    return (np.isinf(case.a) ^ np.isinf(case.b)) & (np.sign(case.a) == np.sign(case.b)) & (small >= 2**13)


RULES: dict[str, Excuse] = {
    "which of 0 and -0 an extreme gives is not defined; MLX's depends on the order of the operands": _zeros,
    "a scatter's extreme drops NaN in MLX, where maximum and max keep it; ours keeps it": _scattered_nan,
    "MLX's cummax and cummin of half types lose NaN along axes with a stride, those of float32 do not": _half_nan,
    "MLX cannot keep the axes that a number has not": _kept_axis,
    "MLX refuses some joins of arrays and slices, of empty ones too; ours gives what numpy gives": _refused_join,
    "MLX refuses to read nothing of some empty arrays": _refused_read,
    "MLX's exponentials of large numbers are off by 1e-5 at times; ours is next to the exact value": _approximate,
    "MLX's sine and cosine of numbers beyond 1000 are off by 1e-4; ours are those of numpy": _large_angle,
    "products that cancel: their error is relative to the greatest term": _cancelled_product,
    "MLX takes complex infinities for close to what they are not": _complex_infinities,
    "the imaginary part of a logarithm is known up to whole turns; ours is the principal one": _turns,
    "integers divided by zero are undefined in MLX (its CPU build may end); ours raises": _by_zero,
    "MLX's floor_divide of complex numbers does not round; ours refuses": _complex_floor,
    "MLX divides 64-bit integers as floats of 53 bits; ours is exact": _wide_floor,
    "which bits a NaN has is not defined": _nan_bits,
    "MLX adds integers for a mean in their own width, which wraps; ours adds floats": _sum_wraps,
    "MLX takes the maximum from integers and bools in their own type, which may wrap": _wraps_below_zero,
    "MLX leaves what nothing is reduced to unset at times": _nothing,
    "MLX refuses to add to some products of empty matrices": _empty_product,
    "MLX's second derivative of tanh is NaN far from 0, where it is 0": _flat_tanh,
    "1 - y of y near 1, and second derivatives of half types, cancel: their error is one of terms of size 1": _one_minus,
    "MLX's erf is off by up to 5e-7": _erf,
    "the mean of elements that are almost equal has an error that layer_norm makes large": _normed,
    "MLX adds terms one after another, with an error that grows with their number; ours is next to the exact value": (
        _many_terms
    ),
    "products of float16 that come near the greatest number overflow in one order and not in another": _half_overflows,
    "MLX scans float16 in float16, and stays infinite or NaN where a part overflows; ours scans in float32": _half_scan,
    "a product that overflows is NaN where a factor 0 comes after, and 0 where it came before": _overflow_times_zero,
    "sums that cancel: their error is relative to the greatest term": _large_terms,
}


AMPLIFIED = "a step of the chain that is off in the last place moves the result as far"


def unexplained(program: Program, theirs: Any, ours: Any, spread: Spread) -> tuple[bool, str]:
    """Return whether a difference is left, and what explains (a part of) it.

    Args:
        program: literals, and the statement that differs.
        theirs: its outcome at the reference.
        ours: its outcome at ``rocmend.mlx``.
        spread: gives how far ours moves, element by element, where a step of a chain is a little off.
    """
    statement = program[-1]
    literals = [one["args"] for one in program[:-1]]
    operands = [array_of((dtype, shape, bytes.fromhex(data))) for dtype, shape, data in literals]
    failed = {"error", "skipped"} & {theirs[0], ours[0]}
    valued = not failed and theirs[:2] == ours[:2]
    a, b = (array_of(theirs), array_of(ours)) if valued else (None, None)
    case = Case(statement["do"], statement, [one[0] for one in literals], operands, theirs, ours, a, b)
    left = wrong_elements(case.name, theirs, ours) if valued else np.array(True)
    reasons = []
    with np.errstate(all="ignore"):
        for reason, excuse in RULES.items():
            after = left & ~np.asarray(excuse(case), dtype=bool) if operands else left
            if (after != left).any():
                reasons.append(reason)
                left = after
        if a is not None and b is not None and left.any() and case.chain and EPSILON.get(theirs[0]):
            moves = spread(program, ours)
            after = left & ~((np.abs(a - b) <= 4 * moves) | np.isinf(moves))
            if (after != left).any():
                reasons.append(AMPLIFIED)
                left = after
    return bool(left.any()), "; ".join(reasons)
