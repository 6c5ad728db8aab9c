"""torch's convolutions with all numbers known: a call makes its views and calls torch, and nothing else.

A view by shape and strides takes half the time of a permutation, and three of those half the time of a convolution.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from rocmend.kernels import allocate
from rocmend.kernels.ops.conv.conv.geometry import Axis, Geometry
from rocmend.kernels.ops.conv.conv.vendor import in_full_precision, plain_as, transposed

Call = Callable[..., torch.Tensor]
_boxed: Any = getattr(torch._C, "_dispatch_call_boxed", None)  # noqa: SLF001  there is no other way


class View(NamedTuple):
    """What ``as_strided`` takes."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Options(NamedTuple):
    """What torch takes, an entry for each axis."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    extra: list[int]


def plan_forward(x: torch.Tensor, weight: torch.Tensor, geometry: Geometry) -> Call | None:
    """Plan calls of ``(x, weight, bias)`` with tensors like these; None for no plain convolution.

    Args:
        x: ``[N, spatial..., C]``; only its shape and strides matter, as of all tensors here.
        weight: ``[O, taps..., C / groups]``, of as many axes.
        geometry: Of the convolution.
    """
    kind, groups = plain_as(geometry), geometry.groups
    spread = kind == "transposed"
    if kind is None or (spread and groups > 1):  # the weight is then no view of ours
        return None
    axes, kept = _axes(geometry, x.dim())
    options = _spreading(axes) if spread else _options(axes)
    seen, seen_weight = _first(x, kept), _first(weight, kept, swapped=spread)
    out_shape = (geometry.batch, *[axis.out for axis in geometry.axes[5 - x.dim() :]], geometry.c_out)
    back = _Back(out_shape, kept)

    @_precise(x.dtype)
    def call(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        out = torch.convolution(
            x.as_strided(*seen), weight.as_strided(*seen_weight), bias,
            options.stride, options.padding, options.dilation, spread, options.extra, groups,
        )  # fmt: skip
        return back(out)

    return call


def plan_input_gradient(gradient: torch.Tensor, weight: torch.Tensor, geometry: Geometry) -> Call | None:
    """Plan calls of ``(gradient, weight)``: the gradient with respect to the input; None for no plain convolution.

    Args:
        gradient: Of the output, ``[N, D, H, W, O]``.
        weight: ``[O, taps..., C / groups]``, of as many axes.
        geometry: Of the convolution.
    """
    if plain_as(geometry) != "direct":
        return None
    axes, kept = _axes(geometry, gradient.dim())
    options, groups = _options(axes), geometry.groups
    seen, seen_weight = _first(gradient, kept), _first(weight, kept)
    # Elements at the end that no output reads.
    extra = [
        axis.size - ((axis.out - 1) * axis.stride - 2 * axis.padding + axis.dilation * (axis.taps - 1) + 1)
        for axis in axes
    ]
    shape = (geometry.batch, *[axis.size for axis in geometry.axes[5 - gradient.dim() :]], geometry.c_in)
    back = _Back(shape, kept)

    @_precise(gradient.dtype)
    def call(gradient: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        out = torch.convolution(
            gradient.as_strided(*seen), weight.as_strided(*seen_weight), None,
            options.stride, options.padding, options.dilation, True, extra, groups,
        )  # fmt: skip
        return back(out)

    return call


def plan_weight_gradient(x: torch.Tensor, gradient: torch.Tensor, geometry: Geometry) -> Call | None:
    """Plan calls of ``(x, gradient)``: the gradient with respect to the weight; None for no plain convolution.

    Args:
        x: ``[N, spatial..., C]``.
        gradient: Of the output, ``[N, spatial..., O]``.
        geometry: Of the convolution.
    """
    if plain_as(geometry) != "direct":
        return None
    axes, kept = _axes(geometry, x.dim())
    options, groups = _options(axes), geometry.groups
    seen, seen_gradient = _first(x, kept), _first(gradient, kept)
    shape = (geometry.c_out, *[axis.taps for axis in geometry.axes[5 - x.dim() :]], geometry.c_in // groups)
    back = _Back(shape, kept)
    # Torch wants a weight for its shape and strides, and does not read it: any memory will do.
    like, seen_like = allocate.Output(back.first.shape, x.dtype, x.device, back.first.strides), back.first
    enough = x.is_contiguous() and math.prod(shape) <= x.numel()
    backward: Any = torch.ops.aten.convolution_backward.default
    mask = [False, True, False]
    if _boxed is not None:  # as that calls it, without looking for those who want to see its arguments
        backward = functools.partial(_boxed, backward._handle)  # noqa: SLF001

    @_precise(x.dtype)
    def call(x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        found = backward(
            gradient.as_strided(*seen_gradient), x.as_strided(*seen), x.as_strided(*seen_like) if enough else like(),
            None, options.stride, options.padding, options.dilation, False, options.extra, groups, mask,
        )  # fmt: skip
        return back(found[1])

    return call


class _Back:
    """Brings what torch returns, channels first, into a shape with channels last, contiguous.

    Args:
        shape: The shape.
        kept: Which of its spatial axes torch knows of.
    """

    def __init__(self, shape: tuple[int, ...], kept: Sequence[int]) -> None:
        empty = torch.empty(shape, device="meta")
        self.last = View(shape, empty.stride())
        self.first = _first(empty, kept)

    def __call__(self, out: torch.Tensor) -> torch.Tensor:
        if out.stride() == self.first.strides:
            return out.as_strided(*self.last)
        return out.movedim(1, -1).reshape(self.last.shape).contiguous()


def _axes(geometry: Geometry, dims: int) -> tuple[list[Axis], list[int]]:
    """Return the axes that torch is told of, and where they stand in a tensor of so many axes: one has all the work.

    Torch has no convolution over three axes that is as fast as over two, nor over two as over one.
    """
    axes = geometry.axes[5 - dims :]
    kept = [index for index, axis in enumerate(axes) if not (axis.size == axis.taps == axis.out == 1)]
    kept = list(range(min(kept, default=len(axes) - 1), len(axes)))
    return [axes[index] for index in kept], [index + 1 for index in kept]


def _options(axes: Sequence[Axis]) -> _Options:
    return _Options(
        [axis.stride for axis in axes], [axis.padding for axis in axes], [axis.dilation for axis in axes],
        [0] * len(axes),
    )  # fmt: skip


def _spreading(axes: Sequence[Axis]) -> _Options:
    """Return the options of a transposed convolution."""
    both = [
        transposed(axis.size, axis.out, axis.taps, axis.padding, axis.dilation, axis.input_dilation) for axis in axes
    ]
    return _Options(
        [axis.input_dilation for axis in axes], [padding for padding, _ in both], [axis.dilation for axis in axes],
        [extra for _, extra in both],
    )  # fmt: skip


def _first(tensor: torch.Tensor, kept: Sequence[int], *, swapped: bool = False) -> View:
    """Return a tensor with channels last as one with channels first; ``swapped``: with those in front of all others."""
    front = (tensor.dim() - 1, 0) if swapped else (0, tensor.dim() - 1)
    order = (*front, *kept)
    return View(tuple([tensor.shape[axis] for axis in order]), tuple([tensor.stride(axis) for axis in order]))


def _precise(dtype: torch.dtype) -> Callable[[Call], Call]:
    """Return a decorator that has calls computed in full precision."""

    def wrapped(call: Call) -> Call:
        if dtype is not torch.float32:
            return call

        @functools.wraps(call)
        def precisely(*args: Any) -> torch.Tensor:
            with in_full_precision(torch.float32):
                return call(*args)

        return precisely

    return wrapped
