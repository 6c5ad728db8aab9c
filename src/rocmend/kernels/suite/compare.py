"""Compare an output with its reference."""

from __future__ import annotations

from typing import NamedTuple

import torch

from rocmend.kernels.op import Tolerance


class Comparison(NamedTuple):
    """How an output stands to its reference.

    Args:
        ok: Whether it is within the tolerance, everywhere.
        worst: Largest error as a multiple of what is allowed; bit by bit: the number of elements that differ.
        detail: Where the worst element is and what stands there; empty where all agree.
    """

    ok: bool
    worst: float
    detail: str


def ulp(reference: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return the unit in the last place of ``dtype`` at each value of a float64 tensor."""
    info = torch.finfo(dtype)
    exponent = torch.frexp(reference.abs().clamp_min(info.tiny)).exponent - 1
    return torch.ldexp(torch.full_like(reference, info.eps), exponent)


def compare(out: torch.Tensor, reference: torch.Tensor, tolerance: Tolerance) -> Comparison:
    """Compare an output with a reference of the same shape.

    Args:
        out: What a kernel gave.
        reference: In float64 for a floating output, or in the output's dtype where the tolerance is exact.
        tolerance: What is allowed.
    """
    if out.shape != reference.shape:
        return Comparison(False, float("inf"), f"shape {tuple(out.shape)}, expected {tuple(reference.shape)}")
    if out.numel() == 0:
        return Comparison(True, 0.0, "")
    out, reference = out.detach(), reference.detach().to(out.device)
    if tolerance.exact or not out.dtype.is_floating_point:
        return _bitwise(out, reference)
    wide, wanted = out.double(), reference.double()
    # What the output's type cannot hold is its infinity there.
    limit = torch.finfo(out.dtype).max
    overflow = wanted.abs() > limit * (1 + torch.finfo(out.dtype).eps / 2)
    wanted = torch.where(overflow, torch.copysign(torch.full_like(wanted, float("inf")), wanted), wanted)
    same = (wide == wanted) | (wide.isnan() & wanted.isnan())
    finite = wanted[wanted.isfinite()]
    peak = float(finite.abs().max()) if finite.numel() else 0.0
    allowed = tolerance.ulps * ulp(torch.where(wanted.isfinite(), wanted, 0.0), out.dtype) + tolerance.scaled * peak
    # At the very edge of the range the infinity and the largest number are neighbours.
    edge = wanted.isinf() & (wide.abs() >= limit * 0.99) & (wide.sign() == wanted.sign()) & overflow
    # Compilers may flush denormals of the wide types to zero; those of fp16 are ordinary numbers and must be kept.
    flushed = (wanted.abs() < torch.finfo(out.dtype).tiny) & (wide == 0) & (out.dtype != torch.float16)
    error = torch.where(same | edge | flushed, 0.0, (wide - wanted).abs() / allowed)
    error = torch.where(error.isnan(), float("inf"), error)
    worst = float(error.max())
    return Comparison(worst <= 1.0, worst, "" if worst == 0.0 else _where(error, out, reference))


def _bitwise(out: torch.Tensor, reference: torch.Tensor) -> Comparison:
    if out.dtype != reference.dtype:
        return Comparison(False, float("inf"), f"dtype {out.dtype}, expected {reference.dtype}")
    if out.dtype.is_floating_point:
        bits = {2: torch.int16, 4: torch.int32, 8: torch.int64, 1: torch.int8}[out.element_size()]
        same = out.contiguous().view(bits) == reference.contiguous().view(bits)
        if out.element_size() > 1:
            same |= out.isnan() & reference.isnan()
    else:
        same = out == reference
    differ = int((~same).sum())
    return Comparison(differ == 0, float(differ), "" if differ == 0 else _where((~same).double(), out, reference))


def _where(error: torch.Tensor, out: torch.Tensor, reference: torch.Tensor) -> str:
    flat = int(error.reshape(-1).argmax())
    place = tuple(int(index) for index in torch.unravel_index(torch.tensor(flat), error.shape)) if error.dim() else ()
    got, want = out.reshape(-1)[flat].item(), reference.reshape(-1)[flat].item()
    return (
        f"at {place}: got {got!r}, expected {want!r}; {int((error > 1).sum())} of {error.numel()} elements are outside"
    )
