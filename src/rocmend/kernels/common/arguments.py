"""Checks of public functions' arguments, worded alike."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.op import Op


def check_floating(op: str, **tensors: Tensor | None) -> None:
    """Check that tensors have a floating type.

    Raises:
        UsageError: One has not.
    """
    for name, tensor in tensors.items():
        if tensor is not None and not tensor.dtype.is_floating_point:
            raise UsageError(op, f"expected {name} of a floating type, got {tensor.dtype}.")


def check_dtype(name: str, op: Op, x: Tensor) -> None:
    """Check that x has a type that an op takes.

    Raises:
        UsageError: It has not; ``name`` opens the message.
    """
    if NAMES.get(x.dtype) not in op.dtypes:
        raise UsageError(name, f"expected x of {', '.join(op.dtypes)}, got {x.dtype}.")


def check_shape(op: str, shape: Sequence[int], **tensors: Tensor | None) -> None:
    """Check the shape of tensors that are given.

    Raises:
        UsageError: One has another.
    """
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape != tuple(shape):
            raise UsageError(op, f"expected {name} of shape {tuple(shape)}, got {tuple(tensor.shape)}.")


def check_alike(op: str, **tensors: Tensor) -> None:
    """Check that tensors have one shape and one type.

    Raises:
        UsageError: They differ.
    """
    first = next(iter(tensors.values()))
    if any(tensor.shape != first.shape or tensor.dtype != first.dtype for tensor in tensors.values()):
        got = " and ".join(f"{tuple(tensor.shape)} {tensor.dtype}" for tensor in tensors.values())
        raise UsageError(op, f"expected {' and '.join(tensors)} of one shape and type, got {got}.")


def check_mask(op: str, mask: Tensor | None, shape: Sequence[int]) -> None:
    """Check a mask that may be None.

    Raises:
        UsageError: Another shape, or not bool.
    """
    if mask is not None and (mask.shape != tuple(shape) or mask.dtype != torch.bool):
        raise UsageError(op, f"expected a bool mask of shape {tuple(shape)}, got {tuple(mask.shape)}, {mask.dtype}.")


def check_no_gradient(op: str, expected: str, *tensors: Tensor, why: str = "", next_step: str = "") -> None:
    """Check that no gradient is asked for.

    Raises:
        UsageError: One is: "expected … without a gradient".
    """
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise UsageError(op, f"expected {expected} without a gradient.", why=why, next_step=next_step)
