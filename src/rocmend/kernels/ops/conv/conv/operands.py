"""Tensors of a convolution as its implementations take them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.kernels.ops.conv.conv.geometry import Geometry

Call = Callable[..., torch.Tensor]
"""Of ``(x, other, bias)``: tensors in the memory that was planned for, with as many axes as one likes."""


def five(tensor: torch.Tensor) -> torch.Tensor:
    """Return ``[N, spatial..., C]`` with three spatial axes."""
    if tensor.dim() == 4:
        return tensor.unsqueeze(1)
    return tensor if tensor.dim() == 5 else tensor.unsqueeze(1).unsqueeze(1)


def swapped(weight: torch.Tensor, geometry: Geometry) -> torch.Tensor:
    """Return ``[O, taps..., C / groups]`` as ``[C, taps..., O / groups]``: a view where there is one group."""
    if geometry.groups == 1:
        return weight.transpose(0, -1)
    grouped: torch.Tensor = weight.unflatten(0, (geometry.groups, geometry.c_out // geometry.groups))
    return grouped.transpose(1, -1).flatten(0, 1)


def planned_input_gradient(
    plan: Callable[..., Call], gradient: torch.Tensor, weight: torch.Tensor, geometry: Geometry, shape: tuple[int, ...]
) -> Call:
    """Plan an input gradient as what it is: the forward convolution of the output's with the weight's channels swapped.

    Args:
        plan: Of an implementation.
        gradient: ``[N, D, H, W, O]``.
        weight: ``[O, D, H, W, C / groups]``.
        geometry: Of the convolution.
        shape: Of the result.
    """
    call = plan("forward", gradient, swapped(weight, geometry), None, geometry.transposed, shape)
    return lambda gradient, weight, _bias=None: call(gradient, swapped(weight, geometry))
