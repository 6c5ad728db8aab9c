"""The public functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.conv.conv import OP, Problem
from rocmend.kernels.ops.conv.conv.geometry import Geometry, geometry_of
from rocmend.kernels.ops.conv.conv.vendor import plain_as
from rocmend.kernels.plan_cache import cached_plan
from rocmend.kernels.select import implementation

Padding = int | tuple[int, ...] | tuple[Sequence[int], Sequence[int]]
Options = tuple[Any, Any, Any, Any, int, bool]
"""Stride, padding, dilation of the kernel and of the input, groups, flip."""


def conv_general(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: Padding = 0,
    kernel_dilation: int | tuple[int, ...] = 1,
    input_dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
    flip: bool = False,
) -> torch.Tensor:
    """Convolve over one to three axes, channels last.

    ``y[o] = Σ_k x[(o·stride - padding + k·dilation) / input_dilation] · w[k]`` over the taps k that fall on an element.

    Args:
        x: ``[N, spatial..., C]``, float32, float16 or bfloat16, any strides.
        weight: ``[O, taps..., C / groups]`` of the type of x.
        bias: ``[O]``, or None.
        stride: Step of the output, a number or one for each axis.
        padding: Zeros around the (dilated) input: a number, one for each axis, or a pair (before, after) of those.
        kernel_dilation: Step between taps.
        input_dilation: Step between input elements, zeros between them: a transposed convolution's stride.
        groups: Groups of channels that do not mix.
        flip: The taps run backwards (a convolution in the mathematical sense).

    Returns:
        ``[N, spatial..., O]``, contiguous.

    Raises:
        UsageError: Shapes or types that do not fit.

    Cost: 2 · N · output pixels · O · taps · C / groups operations.
    """
    options = (
        stride if stride.__class__ is int else hashable(stride),
        padding if padding.__class__ is int else hashable(padding),
        kernel_dilation if kernel_dilation.__class__ is int else hashable(kernel_dilation),
        input_dilation if input_dilation.__class__ is int else hashable(input_dilation), groups, flip,
    )  # fmt: skip
    return convolve(x, weight, bias, options)


def convolve(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, options: Options) -> torch.Tensor:
    """Convolve with the options of ``conv_general``, hashable, one after another."""
    if torch.is_grad_enabled() and (
        x.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
    ):
        geometry = _geometry(x, weight, bias, options)
        wired: torch.Tensor = _Convolution.apply(_five(x), _five(weight), bias, geometry)  # type: ignore[no-untyped-call]
        return wired.reshape(_shape(x, geometry))
    out: torch.Tensor = _convolved((x, weight, bias), options)
    return out


def _geometry(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, options: tuple[Any, ...]) -> Geometry:
    """Check arguments and return the geometry."""
    *some, groups, flip = options
    geometry = geometry_of("conv_general", x.shape, weight.shape, *map(hashable, some), groups, flip)
    _check_types("conv_general", x, weight, bias, geometry.c_out)
    return geometry


def _shape(x: torch.Tensor, geometry: Geometry) -> tuple[int, ...]:
    return (x.shape[0], *(axis.out for axis in geometry.axes[5 - x.dim() :]), geometry.c_out)


@cached_plan
def _convolved(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, options: tuple[Any, ...]
) -> Callable[..., torch.Tensor]:
    """Check the arguments and plan calls like this one."""
    geometry = _geometry(x, weight, bias, options)
    shape = _shape(x, geometry)
    compute = implementation(OP, x.device, _problem("forward", x.dtype, geometry))
    if compute.__module__.endswith(".host"):
        from rocmend.kernels.ops.conv.conv.host import plan_forward

        found = plan_forward(_five(x), _five(weight), bias, geometry, shape)
        if found is not None:
            return found
    if compute.__module__.endswith(".vendor") and x.numel() and weight.numel():
        from rocmend.kernels.ops.conv.conv import vendor_plans

        found = vendor_plans.plan_forward(x, weight, geometry)
        if found is not None:
            return found

    def call(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        out: torch.Tensor = compute("forward", _five(x), _five(weight), bias, geometry)
        return out.reshape(shape)

    return call


def conv_weight_gradient(
    x: torch.Tensor,
    gradient: torch.Tensor,
    kernel_size: tuple[int, ...],
    *,
    stride: int | tuple[int, ...] = 1,
    padding: Padding = 0,
    kernel_dilation: int | tuple[int, ...] = 1,
    input_dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
    flip: bool = False,
) -> torch.Tensor:
    """Return the gradient of ``conv_general`` with respect to its weight.

    Args:
        x: ``[N, spatial..., C]``.
        gradient: Of the output, ``[N, spatial..., O]``.
        kernel_size: Taps along each axis.
        stride: As in the convolution; the other options likewise.
        padding: As in the convolution.
        kernel_dilation: As in the convolution.
        input_dilation: As in the convolution.
        groups: As in the convolution.
        flip: As in the convolution.

    Returns:
        ``[O, taps..., C / groups]``.

    Raises:
        UsageError: Shapes that do not fit.
    """
    options = (
        stride if stride.__class__ is int else hashable(stride),
        padding if padding.__class__ is int else hashable(padding),
        kernel_dilation if kernel_dilation.__class__ is int else hashable(kernel_dilation),
        input_dilation if input_dilation.__class__ is int else hashable(input_dilation),
    )
    found: torch.Tensor = _weights((x, gradient), tuple(kernel_size), options, groups, flip)
    return found


@cached_plan
def _weights(
    x: torch.Tensor,
    gradient: torch.Tensor,
    kernel_size: tuple[int, ...],
    options: tuple[Any, ...],
    groups: int,
    flip: bool,
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Check the arguments and plan the weight's gradient."""
    weight_shape = (gradient.shape[-1], *kernel_size, x.shape[-1] // max(groups, 1))
    geometry = geometry_of("conv_weight_gradient", x.shape, weight_shape, *options, groups, flip)
    expected = (x.shape[0], *(axis.out for axis in geometry.axes[3 - len(kernel_size) :]), geometry.c_out)
    if tuple(gradient.shape) != expected:
        raise UsageError(
            "conv_weight_gradient", f"expected a gradient of shape {expected}, got {tuple(gradient.shape)}."
        )
    compute = implementation(OP, x.device, _problem("weight", x.dtype, geometry))
    if compute.__module__.endswith(".vendor") and x.numel() and gradient.numel():
        from rocmend.kernels.ops.conv.conv import vendor_plans

        found = vendor_plans.plan_weight_gradient(x, gradient, geometry)
        if found is not None:
            return found
    if compute.__module__.endswith(".host"):
        from rocmend.kernels.ops.conv.conv.host_weight import plan_weight_gradient

        return plan_weight_gradient(_five(x), _five(gradient), geometry, weight_shape)
    run = _planned(_five(x), _five(gradient), "weight", geometry)
    return lambda x, gradient: run(_five(x), _five(gradient), None).reshape(weight_shape)


def _five(tensor: torch.Tensor) -> torch.Tensor:
    """Return ``[N, spatial..., C]`` with three spatial axes."""
    if tensor.dim() == 4:
        return tensor.unsqueeze(1)
    return tensor if tensor.dim() == 5 else tensor.unsqueeze(1).unsqueeze(1)


def hashable(value: Any) -> Any:
    """Return a number as it is, and numbers in a row, and pairs of such, as tuples."""
    return value if isinstance(value, int) else tuple(hashable(one) for one in value)


def _check_types(name: str, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, outputs: int) -> None:
    if x.dtype != weight.dtype or (bias is not None and bias.dtype != x.dtype):
        types = ", ".join(str(t.dtype) for t in (x, weight, bias) if t is not None)
        raise UsageError(name, f"expected x, weight and bias of one type, got {types}.")
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise UsageError(name, f"expected bias of shape ({outputs},), got {tuple(bias.shape)}.")


@functools.lru_cache(maxsize=4096)
def _problem(direction: str, dtype: torch.dtype, geometry: Geometry) -> Problem:
    some = geometry.pixels_in * geometry.pixels_out * geometry.c_in > 0
    return Problem(
        NAMES[dtype], direction, geometry.pixels_in, geometry.pixels_out, geometry.c_in, geometry.c_out,
        geometry.groups, geometry.taps, some and plain_as(geometry) is not None,
    )  # fmt: skip


@cached_plan
def _run(
    x: torch.Tensor, other: torch.Tensor, _bias: torch.Tensor | None, direction: str, geometry: Geometry
) -> Callable[..., torch.Tensor]:
    return _planned(x, other, direction, geometry)


def _planned(x: torch.Tensor, other: torch.Tensor, direction: str, geometry: Geometry) -> Callable[..., torch.Tensor]:
    """Plan calls of ``(x, other, bias)`` with such tensors, of five axes."""
    compute = implementation(OP, x.device, _problem(direction, x.dtype, geometry))
    if compute.__module__.endswith(".vendor") and x.numel() and other.numel():
        from rocmend.kernels.ops.conv.conv import vendor_plans

        if direction == "forward":
            found = vendor_plans.plan_forward(x, other, geometry)
            if found is not None:
                return found
        else:
            gradient = vendor_plans.plan_weight_gradient(x, other, geometry)
            if gradient is not None:
                return lambda x, other, _bias: gradient(x, other)
    if compute.__module__.endswith(".host") and direction == "weight":
        from rocmend.kernels.ops.conv.conv.host_weight import plan_weight_gradient

        shape = (geometry.c_out, *(axis.taps for axis in geometry.axes), geometry.c_in // geometry.groups)
        weights = plan_weight_gradient(x, other, geometry, shape)
        return lambda x, other, _bias: weights(x, other)
    return lambda x, other, bias: compute(direction, x, other, bias, geometry)


def _weight_gradient(x: torch.Tensor, gradient: torch.Tensor, geometry: Geometry) -> torch.Tensor:
    found: torch.Tensor = _run((x, gradient, None), "weight", geometry)
    return found


@cached_plan
def _inputs(
    gradient: torch.Tensor, weight: torch.Tensor, geometry: Geometry
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Plan the gradient with respect to the input: the transposed convolution of the output's."""
    compute = implementation(OP, gradient.device, _problem("forward", gradient.dtype, geometry.transposed))
    if compute.__module__.endswith(".vendor") and gradient.numel() and weight.numel():
        from rocmend.kernels.ops.conv.conv import vendor_plans

        found = vendor_plans.plan_input_gradient(gradient, weight, geometry)
        if found is not None:
            return found

    if compute.__module__.endswith(".host") and geometry.groups == 1:
        from rocmend.kernels.ops.conv.conv.host import plan_forward as plan

        # Without groups the weight with its axes swapped is the same memory, which is all that calls look at.
        swapped, transposed = weight.transpose(0, -1), geometry.transposed
        planned = plan(gradient, swapped, None, transposed, transposed.output_shape)
        if planned is not None:
            return lambda gradient, weight: planned(gradient, weight, None)

    def call(gradient: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        grouped = weight.unflatten(0, (geometry.groups, geometry.c_out // geometry.groups))
        swapped = grouped.transpose(1, -1).flatten(0, 1)
        out: torch.Tensor = _run((gradient, swapped, None), "forward", geometry.transposed)
        return out

    return call


def input_gradient(gradient: torch.Tensor, weight: torch.Tensor, geometry: Geometry) -> torch.Tensor:
    """Return the gradient with respect to the input, as autograd asks for it.

    Args:
        gradient: Of the output, ``[N, D, H, W, O]``.
        weight: ``[O, taps..., C / groups]``, of as many axes.
        geometry: Of the convolution.
    """
    found: torch.Tensor = _inputs((gradient, weight), geometry)
    return found


class _Convolution(torch.autograd.Function):
    """Forward and the gradients; a gradient of a gradient is not provided."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, geometry: Geometry
    ) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        ctx.geometry = geometry
        out: torch.Tensor = _run((x, weight, bias), "forward", geometry)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        x, weight = ctx.saved_tensors
        (gradient,) = gradients
        needs = ctx.needs_input_grad
        return (
            input_gradient(gradient, weight, ctx.geometry) if needs[0] else None,
            _weight_gradient(x, gradient, ctx.geometry) if needs[1] else None,
            gradient.sum(tuple(range(gradient.dim() - 1))) if needs[2] else None,
            None,
        )
