"""The reference: one step after another."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from rocmend.kernels.ops.rowwise.sort.reference import comparable


def _scan(op: str, x: Tensor, axis: int | None, *, reverse: bool = False, inclusive: bool = True) -> Tensor:
    return run(x, axis, op=op, reverse=reverse, inclusive=inclusive, dtype=result_type(x.dtype, op))


cumsum, cumprod, cummax, cummin, logcumsumexp = (
    partial(_scan, op) for op in ("sum", "prod", "max", "min", "logsumexp")
)


def cumsum_flat(x: Tensor, axis: int) -> Tensor:
    """Sum one row in its own type: integers wrap in any order."""
    return x.cumsum(axis, dtype=x.dtype)


def result_type(dtype: torch.dtype, op: str) -> torch.dtype:
    """Return the type of a scan: bool is summed in int32, integers have logarithms in float32."""
    if op == "sum" and dtype == torch.bool:
        return torch.int32
    if op == "logsumexp" and not dtype.is_floating_point:
        return torch.float32
    return dtype


def run(x: Tensor, axis: int | None, *, op: str, reverse: bool, inclusive: bool, dtype: torch.dtype) -> Tensor:
    """Compute what the other implementations do, in float64 or int64; ``axis`` None takes all as one row."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    if x.numel() == 0:
        return torch.empty(x.shape, dtype=dtype, device=x.device)
    if op == "logsumexp" or x.dtype.is_floating_point:
        wide = x.double()
    elif op in ("max", "min") or x.dtype != torch.uint64:
        wide = comparable(x)
    else:
        wide = x.view(torch.int64)
    wide = wide.movedim(axis, -1)
    wide = wide.flip(-1) if reverse else wide
    scanned = {
        "sum": lambda: wide.cumsum(-1),
        "prod": lambda: wide.cumprod(-1),
        "max": lambda: _extreme(wide, largest=True),
        "min": lambda: _extreme(wide, largest=False),
        "logsumexp": lambda: wide.logcumsumexp(-1),
    }[op]()
    if not inclusive:
        edge = torch.full_like(scanned[..., :1], _identity(op, x.dtype, scanned.dtype))
        scanned = torch.cat((edge, scanned[..., :-1]), -1)
    scanned = (scanned.flip(-1) if reverse else scanned).movedim(-1, axis)
    return _to(scanned, dtype, compared=op in ("max", "min"))


def _extreme(x: Tensor, *, largest: bool) -> Tensor:
    """Return the extreme so far with the sign of zero that MLX leaves: cummax takes the later, cummin the earlier.

    The extreme is zero from the row's first zero on, as long as it is zero: that is the zero that cummin keeps, and
    cummax goes on to the last so far. A NaN stays.
    """
    if not x.dtype.is_floating_point:
        return (x.cummax(-1) if largest else x.cummin(-1)).values
    best = (x.cummax(-1) if largest else x.cummin(-1)).values
    at = torch.arange(x.shape[-1], device=x.device).expand(x.shape)
    zeros = x == 0
    if largest:
        zero = torch.where(zeros, at, 0).cummax(-1).values
    else:
        zero = zeros.to(torch.int8).argmax(-1, keepdim=True).expand(x.shape)
    return torch.where(best == 0, x.gather(-1, zero), best)


def _identity(op: str, dtype: torch.dtype, wide: torch.dtype) -> float | int:
    if op in ("sum", "prod"):
        return int(op == "prod")
    if wide.is_floating_point:
        return float("inf") if op == "min" else float("-inf")
    if dtype == torch.uint64:
        info = torch.iinfo(torch.int64)
    elif dtype == torch.bool:
        return int(op == "min")
    else:
        info = torch.iinfo(dtype)
    return info.max if op == "min" else info.min


def _to(x: Tensor, dtype: torch.dtype, *, compared: bool) -> Tensor:
    """Cut numbers to a type as integers wrap."""
    if dtype == torch.bool:
        return x != 0
    signed = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}.get(dtype)
    if dtype == torch.uint64 and compared:
        x = x ^ torch.iinfo(torch.int64).min
    return x.to(dtype) if signed is None else x.to(signed).view(dtype)
