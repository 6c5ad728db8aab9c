"""How ops over the last axis see a tensor: rows, and how many of them one program takes."""

from __future__ import annotations

import torch

from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.floats import Rows
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config


def problem_of(x: torch.Tensor, *, backward: bool = False) -> Rows:
    """Return the problem of x ``[rows, n]``."""
    return Rows(NAMES[x.dtype], x.shape[0], x.shape[1], backward)


def as_rows(x: torch.Tensor) -> torch.Tensor:
    """Return ``[rows, n]`` with adjacent elements in a row; a copy only where strides do not allow a view.

    Args:
        x: ``[..., n]``, not empty.
    """
    rows = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
    return rows if rows.stride(1) == 1 else rows.contiguous()


def row_stride(x: torch.Tensor) -> int | None:
    """Return the elements from one row of ``[..., n]`` to the next; None where ``as_rows`` would copy.

    Args:
        x: Not empty.
    """
    if x.stride(-1) != 1:
        return None
    try:
        return x.view(-1, x.shape[-1]).stride(0)
    except RuntimeError:
        return None


def shares_memory(rows: torch.Tensor, x: torch.Tensor) -> bool:
    """Return whether rows are a view that begins where x does, not a copy (of tensors without data, too)."""
    return rows.untyped_storage()._cdata == x.untyped_storage()._cdata  # noqa: SLF001  the identity of a storage


def tile(n: int, config: Config) -> tuple[int, int]:
    """Return the power of two that holds a row, and how many rows fill a program's tile."""
    block = next_power_of_2(n)
    return block, max(1, config.get("tile", 1) // block)


def splits(rows: int, n: int, chunk: int, target: Target) -> int:
    """Return over how many programs a row is split, so that few rows occupy the device: a power of two up to 64."""
    wanted = cdiv(4 * target.units, max(rows, 1))
    return min(64, next_power_of_2(max(1, min(wanted, cdiv(n, chunk)))))
