"""torch's convolutions, and so cuDNN or MIOpen, with all numbers known: a call makes its views and calls torch.

A view by shape and strides takes half the time of a permutation, and three of those half the time of a convolution.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from rocmend.kernels import allocate
from rocmend.kernels.ops.conv.conv.geometry import Axis, Geometry
from rocmend.kernels.ops.conv.conv.operands import Call, planned_input_gradient

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
    transposed: bool
    extra: list[int]
    groups: int


@contextlib.contextmanager
def in_full_precision(dtype: torch.dtype) -> Iterator[None]:
    """Compute convolutions of float32 in float32: torch lets cuDNN round the factors to 10 bits (tf32) unless told."""
    if dtype is not torch.float32:
        yield
        return
    backend = torch.backends.cudnn
    # torch from 2.9 on has a setting for convolutions alone, and refuses to read the old one where the two differ
    owner, name, value = (
        (backend.conv, "fp32_precision", "ieee") if hasattr(backend, "conv") else (backend, "allow_tf32", False)
    )
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def plan(
    direction: str,
    x: torch.Tensor,
    other: torch.Tensor,
    _bias: torch.Tensor | None,
    geometry: Geometry,
    shape: tuple[int, ...],
) -> Call:
    """Plan calls of torch; see ``function.planned``."""
    direct = geometry.torch_kind == "direct"
    if direction == "input" and not direct:
        return planned_input_gradient(plan, x, other, geometry, shape)
    axes, kept = _axes(geometry)
    if direction == "weight":
        call = _weight_gradient(x, other, geometry, shape)
    elif direction == "input":
        # Elements at the end that no output reads are torch's output_padding.
        extra = [axis.padding - axis.end_padding for axis in axes]
        options = _direct(axes, geometry.groups)._replace(transposed=True, extra=extra)
        full = (geometry.batch, *[axis.size for axis in geometry.axes], geometry.c_in)
        call = _convolution(x, _first(other, kept), options, _Back(full, shape, kept))
    else:
        weight: View | Callable[[torch.Tensor], torch.Tensor] = _first(other, kept, swapped=not direct)
        if not direct and geometry.groups > 1:
            weight = _regrouped(other, kept, geometry)
        options = _direct(axes, geometry.groups) if direct else _transposed(axes, geometry.groups)
        call = _convolution(x, weight, options, _Back(geometry.output_shape, shape, kept))
    if x.dtype is not torch.float32:
        return call

    def precisely(*tensors: torch.Tensor | None) -> torch.Tensor:
        with in_full_precision(torch.float32):
            return call(*tensors)

    return precisely


def _convolution(
    x: torch.Tensor, weight: View | Callable[[torch.Tensor], torch.Tensor], options: _Options, back: _Back
) -> Call:
    """Plan calls of ``(x, weight, bias)``: torch's convolution of x, channels first, and a weight as torch has it."""
    seen = _first(x, back.kept)

    def call(x: torch.Tensor, other: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        filters = other.as_strided(*weight) if isinstance(weight, View) else weight(other)
        return back(torch.convolution(x.as_strided(*seen), filters, bias, *options))

    return call


def _weight_gradient(x: torch.Tensor, gradient: torch.Tensor, geometry: Geometry, shape: tuple[int, ...]) -> Call:
    """Plan calls of ``(x, gradient)``, the output's: the gradient with respect to the weight."""
    axes, kept = _axes(geometry)
    seen, seen_gradient = _first(x, kept), _first(gradient, kept)
    direct, groups, inputs = geometry.torch_kind == "direct", geometry.groups, geometry.c_in // geometry.groups
    options = _direct(axes, groups) if direct else _transposed(axes, groups)
    back = _Back(geometry.weight_shape, shape, kept)
    # Torch wants a weight for its shape and strides, and does not read it.
    if direct:
        like = allocate.Output(back.first.shape, x.dtype, x.device, back.first.strides)
    else:
        taps = [axis.taps for axis in axes]
        like = allocate.Output((geometry.c_in, geometry.c_out // groups, *taps), x.dtype, x.device)
    backward: Any = torch.ops.aten.convolution_backward.default
    if _boxed is not None:  # as that calls it, without looking for those who want to see its arguments
        backward = functools.partial(_boxed, backward._handle)  # noqa: SLF001
    mask = [False, True, False]

    def call(x: torch.Tensor, gradient: torch.Tensor, _bias: torch.Tensor | None = None) -> torch.Tensor:
        found: torch.Tensor = backward(
            gradient.as_strided(*seen_gradient), x.as_strided(*seen), like(), None, *options, mask
        )[1]
        if direct:
            return back(found)
        by_group: torch.Tensor = found.unflatten(0, (groups, inputs))
        return by_group.movedim(1, -1).reshape(shape).contiguous()

    return call


def _regrouped(weight: torch.Tensor, kept: Sequence[int], geometry: Geometry) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function that makes torch's ``[C, O / groups, taps...]`` of ``[O, taps..., C / groups]``."""
    seen = _view(weight, (0, *kept, 4))
    groups = geometry.groups, geometry.c_out // geometry.groups
    return lambda weight: weight.as_strided(*seen).unflatten(0, groups).movedim(-1, 1).flatten(0, 1)


class _Back:
    """Brings what torch returns, channels first, into a shape with channels last, contiguous.

    Args:
        full: The shape with three spatial axes.
        shape: The same with as many as are asked for.
        kept: Which of the three torch knows of.
    """

    def __init__(self, full: tuple[int, ...], shape: tuple[int, ...], kept: Sequence[int]) -> None:
        self.kept = kept
        self.last = View(shape, torch.empty(shape, device="meta").stride())
        self.first = _first(torch.empty(full, device="meta"), kept)

    def __call__(self, out: torch.Tensor) -> torch.Tensor:
        if out.stride() == self.first.strides:
            return out.as_strided(*self.last)
        return out.movedim(1, -1).reshape(self.last.shape).contiguous()


def _axes(geometry: Geometry) -> tuple[list[Axis], list[int]]:
    """Return the axes that torch is told of, and where they stand in a tensor: from the first one that has work.

    Torch has no convolution over three axes that is as fast as over two, nor over two as over one.
    """
    busy = [index for index, axis in enumerate(geometry.axes) if not (axis.size == axis.taps == axis.out == 1)]
    first = min(busy, default=2)
    return list(geometry.axes[first:]), list(range(first + 1, 4))


def _direct(axes: Sequence[Axis], groups: int) -> _Options:
    return _Options(
        [axis.stride for axis in axes], [axis.padding for axis in axes], [axis.dilation for axis in axes],
        False, [0] * len(axes), groups,
    )  # fmt: skip


def _transposed(axes: Sequence[Axis], groups: int) -> _Options:
    pairs = [axis.transposed_padding for axis in axes]
    return _Options(
        [axis.input_dilation for axis in axes], [padding for padding, _ in pairs], [axis.dilation for axis in axes],
        True, [extra for _, extra in pairs], groups,
    )  # fmt: skip


def _first(tensor: torch.Tensor, kept: Sequence[int], *, swapped: bool = False) -> View:
    """Return a tensor with channels last as one with channels first; ``swapped``: with those in front of all others."""
    return _view(tensor, (*((4, 0) if swapped else (0, 4)), *kept))


def _view(tensor: torch.Tensor, order: Sequence[int]) -> View:
    return View(tuple([tensor.shape[axis] for axis in order]), tuple([tensor.stride(axis) for axis in order]))
