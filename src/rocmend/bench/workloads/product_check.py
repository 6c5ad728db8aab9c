"""Whether a product of matrices is right. Standard library and torch alone.

Small products are compared in all elements with float64 on the CPU. Of large ones, random rows and columns are compared
with sums in float64, which on a GPU no matrix library computes, and all elements by checksums: each row's sum over 64
columns with random signs, against the product with those columns summed in the same way.

An element may be off by what rounding explains, and little more. With random operands an element of the product and the
error of its sum grow with the norm sqrt(sum a² b²), not with the sum of magnitudes, which would excuse anything.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

_ALL = 1 << 28
"""Multiply-adds up to which all elements are compared on the CPU."""
_LINES = 8
"""Rows, and columns, of a large product."""
_BATCHES = 4
_SEGMENT = 64
_CHUNK = 1 << 23
"""Elements of float64 that are handled at a time: 64 MiB."""


class Precision(NamedTuple):
    """How exact a product is.

    Attributes:
        result: Distance of 1 from the next number in the result's dtype.
        operand: The same of what operands are rounded to before they are multiplied; 0 where they are not.
        exact: No difference is allowed.
    """

    result: float
    operand: float = 0.0
    exact: bool = False

    def allowed(self, k: int) -> tuple[float, float]:
        """Return what an element may be off by: a part of its size, and a part of the norm.

        Partial sums may be rounded to the result's dtype (split-k), and single ones are kept in float32 at least.
        """
        if self.exact:
            return 0.0, 0.0
        single = 2.0**-53 if self.result < 2.0**-40 else 2.0**-23
        return self.result, 2 * self.result + 8 * self.operand + 4 * math.sqrt(k) * single


class Checked(NamedTuple):
    """What a comparison found: what is wrong, the largest error as a part of what is allowed, what was compared."""

    reason: str
    worst: float
    compared: str


def check(left: torch.Tensor, right: torch.Tensor, got: torch.Tensor, precision: Precision) -> Checked:
    """Compare a product with its reference.

    Args:
        left: ``[m, k]`` or ``[batch, m, k]``, as it was multiplied.
        right: ``[k, n]`` or ``[batch, k, n]``.
        got: The product.
        precision: How exact it is.
    """
    left, right, got = (part if part.dim() == 3 else part[None] for part in (left, right, got))
    batch, m, k = left.shape
    if batch * m * k * right.shape[2] <= _ALL:
        a, b = left.cpu().double(), right.cpu().double()
        norm = (a.square() @ b.square()).sqrt()
        found = _compare(got.cpu().double(), a @ b, norm, k, precision)
        return Checked(found[0], found[1], "all elements")
    import torch

    chosen = _places(batch, _BATCHES, torch.Generator().manual_seed(5))
    worst, parts = 0.0, []
    for index in chosen:
        for look in (_rows, _columns, _sums):
            reason, error = look(left[index], right[index], got[index], precision)
            worst = max(worst, error)
            if reason:
                return Checked(reason, worst, look.__name__.strip("_"))
    parts = [f"{min(m, _LINES)} rows", f"{min(right.shape[2], _LINES)} columns", "checksums of all elements"]
    where = f" in {len(chosen)} of {batch} products" if batch > len(chosen) else ""
    return Checked("", worst, ", ".join(parts) + where)


def _places(count: int, most: int, generator: torch.Generator) -> list[int]:
    """Return the first, the last and random places between them."""
    import torch

    inner = torch.randperm(max(count - 2, 0), generator=generator)[: most - 2] + 1
    return sorted({0, count - 1, *(int(place) for place in inner)})


def _compare(
    got: torch.Tensor, expected: torch.Tensor, norm: torch.Tensor, k: int, precision: Precision
) -> tuple[str, float]:
    import torch

    of_size, of_norm = precision.allowed(k)
    off = torch.nan_to_num((got - expected).abs(), nan=math.inf)
    allowed = of_size * expected.abs() + of_norm * norm
    share = torch.where(off == 0, 0.0, off / allowed.clamp_min(1e-300))
    worst = int(share.argmax())
    wrong = int((share > 1).sum())
    if not wrong:
        return "", float(share.max())
    place = [int(part) for part in torch.unravel_index(torch.tensor(worst), share.shape)]
    values = f"{got.flatten()[worst]:.6g} for {expected.flatten()[worst]:.6g}"
    limit = f", {allowed.flatten()[worst]:.2g} is allowed" if not precision.exact else ""
    return (
        f"{wrong:,} of {share.numel():,} compared elements are wrong: {values}{limit}, at {place} of them",
        float(share.max()),
    )


def _rows(left: torch.Tensor, right: torch.Tensor, got: torch.Tensor, precision: Precision) -> tuple[str, float]:
    import torch

    rows = _places(left.shape[0], _LINES, torch.Generator().manual_seed(6))
    picked = torch.stack([left[row].double() for row in rows])  # not every dtype can be indexed by a list
    norm = picked.square().sum(1, keepdim=True).sqrt() * _spread(right)
    return _compare(got[rows].double(), _summed(picked, right), norm, left.shape[1], precision)


def _columns(left: torch.Tensor, right: torch.Tensor, got: torch.Tensor, precision: Precision) -> tuple[str, float]:
    return _rows(right.T, left.T, got.T, precision)


def _summed(rows: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return rows times a matrix in float64; on a GPU by products of elements and sums, without a matrix library."""
    import torch

    k, n = right.shape
    total = torch.zeros(rows.shape[0], n, dtype=torch.float64, device=rows.device)
    step = max(1, _CHUNK // n)
    for begin in range(0, k, step):
        part, factors = right[begin : begin + step].double(), rows[:, begin : begin + step]
        if rows.device.type == "cpu":
            total += factors @ part
            continue
        for number, row in enumerate(factors):
            total[number] += (part * row[:, None]).sum(0)
    return total


def _sums(left: torch.Tensor, right: torch.Tensor, got: torch.Tensor, precision: Precision) -> tuple[str, float]:
    """Compare each row's sums over segments of columns, with random signs."""
    import torch

    (m, k), n = left.shape, right.shape[1]
    generator = torch.Generator().manual_seed(8)
    signs = (torch.randint(0, 2, (n,), generator=generator) * 2 - 1).to(left.device, torch.float64)

    def segments(part: torch.Tensor) -> torch.Tensor:
        signed = torch.nn.functional.pad(part.double() * signs, (0, -n % _SEGMENT))
        return signed.view(part.shape[0], -1, _SEGMENT).sum(-1)

    step = max(1, _CHUNK // n)
    summed = torch.cat([segments(right[begin : begin + step]) for begin in range(0, k, step)])
    scale = math.sqrt(k) * _spread(left) * _spread(right)
    norm = torch.full((1, 1), scale * math.sqrt(_SEGMENT), dtype=torch.float64, device=left.device)
    worst = 0.0
    step = max(1, _CHUNK // max(n, k))
    for begin in range(0, m, step):
        expected = left[begin : begin + step].double() @ summed
        # each of the 64 elements is off by a part of its own size as well, whatever they add up to
        rounded = precision._replace(operand=precision.operand + precision.result / 2)
        reason, error = _compare(segments(got[begin : begin + step]), expected, norm, k, rounded)
        worst = max(worst, error)
        if reason:
            return f"a checksum of {_SEGMENT} columns differs, in row {begin} or later: {reason}", worst
    return "", worst


def _spread(matrix: torch.Tensor) -> float:
    """Return the root mean square of a matrix, from rows throughout it."""
    some = matrix[:: max(1, matrix.shape[0] // 64)].double()
    return float(some.square().mean().sqrt())
