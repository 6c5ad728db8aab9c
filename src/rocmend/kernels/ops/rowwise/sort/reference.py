"""The reference: torch's stable sort by number, with NaN behind everything and -0.0 equal to 0.0."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.common.reference import SIGNED


def comparable(x: Tensor) -> Tensor:
    """Return float64 or int64 numbers in the order of the elements (uint64: the sign bit flipped)."""
    if x.dtype.is_floating_point:
        return x.double() + 0.0
    if x.dtype == torch.uint64:
        return x.view(torch.int64) ^ torch.iinfo(torch.int64).min
    if x.dtype in (torch.uint16, torch.uint32):
        return x.view(SIGNED[x.dtype]).to(torch.int64) & (0xFFFF if x.dtype == torch.uint16 else 0xFFFFFFFF)
    return x.to(torch.int64)


def order(x: Tensor, axis: int, *, descending: bool = False) -> Tensor:
    """Return the places of the elements in order; equal ones keep theirs."""
    keys = comparable(x.reshape(1) if x.dim() == 0 else x)
    if not descending:
        return torch.sort(keys, dim=axis, stable=True).indices
    if keys.dtype.is_floating_point:
        # Twice: by number, downwards, then NaN to the front.
        first = torch.sort(torch.where(keys.isnan(), 0.0, -keys), dim=axis, stable=True).indices
        later = (~keys.isnan()).to(torch.int8).gather(axis, first)
        return first.gather(axis, torch.sort(later, dim=axis, stable=True).indices)
    return torch.sort(~keys, dim=axis, stable=True).indices


def gather(x: Tensor, axis: int, places: Tensor) -> Tensor:
    """Return elements along an axis, of types that torch cannot gather too."""
    if x.dtype in SIGNED:
        return x.view(SIGNED[x.dtype]).gather(axis, places).view(x.dtype)
    return x.gather(axis, places)


def indexed(places: Tensor, dtype: torch.dtype) -> Tensor:
    """Return places in an index type."""
    return places.to(torch.int32).view(dtype) if dtype == torch.uint32 else places.to(dtype)


def sort(x: Tensor, axis: int | None = -1) -> Tensor:
    """Sort along an axis."""
    if axis is None:
        return sort(x.reshape(-1))
    return gather(x.reshape(1) if x.dim() == 0 else x, axis, order(x, axis)).reshape(x.shape)


def argsort(x: Tensor, axis: int | None = -1, *, index_dtype: torch.dtype = torch.int64) -> Tensor:
    """Return the places of the elements in order."""
    if axis is None:
        return argsort(x.reshape(-1), index_dtype=index_dtype)
    return indexed(order(x, axis), index_dtype).reshape(x.shape)


def run(
    x: Tensor, axis: int, *, descending: bool, values: bool, indices: bool, index_dtype: torch.dtype
) -> tuple[Tensor | None, Tensor | None]:
    """Compute what the other implementations do."""
    places = order(x, axis, descending=descending)
    return gather(x, axis, places) if values else None, indexed(places, index_dtype) if indices else None


def run_torch(
    x: Tensor, axis: int, *, descending: bool, values: bool, indices: bool, index_dtype: torch.dtype
) -> tuple[Tensor | None, Tensor | None]:
    """Sort with torch itself."""
    signed = SIGNED.get(x.dtype)
    # torch sorts no unsigned numbers wider than a byte: those whose upper half became the negative ones are in order.
    keys = x if signed is None else x.view(signed) ^ torch.iinfo(signed).min
    found = torch.sort(keys, dim=axis, stable=True, descending=descending)
    places = indexed(found.indices, index_dtype) if indices else None
    if not values:
        return None, places
    return found.values if signed is None else (found.values ^ torch.iinfo(signed).min).view(x.dtype), places
