"""The public functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.conv.conv import OP, problem_of
from rocmend.kernels.ops.conv.conv.geometry import Geometry, geometry_of
from rocmend.kernels.ops.conv.conv.operands import Call, five
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
    return convolve(x, weight, bias, options_of(stride, padding, kernel_dilation, input_dilation, groups, flip))


def convolve(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, options: Options) -> torch.Tensor:
    """Convolve; see ``options_of``."""
    if torch.is_grad_enabled() and (
        x.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)
    ):
        wired: torch.Tensor = _Convolution.apply(x, weight, bias, _geometry(x, weight, bias, options))  # type: ignore[no-untyped-call]
        return wired
    out: torch.Tensor = _convolved((x, weight, bias), options)
    return out


def _geometry(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, options: Options) -> Geometry:
    """Check arguments and return the geometry."""
    geometry = geometry_of("conv_general", x.shape, weight.shape, *options)
    _check_types("conv_general", x, weight, bias, geometry.c_out)
    return geometry


def _shape(x: torch.Tensor, geometry: Geometry) -> tuple[int, ...]:
    return (x.shape[0], *(axis.out for axis in geometry.axes[5 - x.dim() :]), geometry.c_out)


def planned(
    direction: str,
    x: torch.Tensor,
    other: torch.Tensor,
    bias: torch.Tensor | None,
    geometry: Geometry,
    shape: tuple[int, ...],
) -> Call:
    """Plan calls of ``(x, other, bias)`` with tensors like these: all that is decided once.

    Args:
        direction: What is computed: ``forward`` the output of x and the weight, ``input`` the input's gradient of the
            output's and the weight, ``weight`` the weight's gradient of x and the output's.
        x: The first tensor, channels last; an implementation gets it with three spatial axes, as it does the other one.
        other: The second one.
        bias: Of the forward direction, or None.
        geometry: Of the convolution.
        shape: Of the result.
    """
    problem = (
        problem_of("forward", NAMES[x.dtype], geometry.transposed)
        if direction == "input"
        else problem_of(direction, NAMES[x.dtype], geometry)
    )
    call: Call = implementation(OP, x.device, problem)(direction, five(x), five(other), bias, geometry, shape)
    return call


@cached_plan
def _convolved(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, options: Options) -> Call:
    """Check the arguments and plan calls like this one."""
    geometry = _geometry(x, weight, bias, options)
    return planned("forward", x, weight, bias, geometry, _shape(x, geometry))


@cached_plan
def _run(
    x: torch.Tensor,
    other: torch.Tensor,
    bias: torch.Tensor | None,
    direction: str,
    geometry: Geometry,
    shape: tuple[int, ...],
) -> Call:
    return planned(direction, x, other, bias, geometry, shape)


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
    options = options_of(stride, padding, kernel_dilation, input_dilation, groups, flip)
    found: torch.Tensor = _weights((x, gradient), tuple(kernel_size), options)
    return found


@cached_plan
def _weights(
    x: torch.Tensor,
    gradient: torch.Tensor,
    kernel_size: tuple[int, ...],
    options: Options,
) -> Call:
    """Check the arguments and plan the weight's gradient."""
    weight_shape = (gradient.shape[-1], *kernel_size, x.shape[-1] // max(options[4], 1))
    geometry = geometry_of("conv_weight_gradient", x.shape, weight_shape, *options)
    expected = (x.shape[0], *(axis.out for axis in geometry.axes[3 - len(kernel_size) :]), geometry.c_out)
    if tuple(gradient.shape) != expected:
        raise UsageError(
            "conv_weight_gradient", f"expected a gradient of shape {expected}, got {tuple(gradient.shape)}."
        )
    return planned("weight", x, gradient, None, geometry, weight_shape)


def options_of(
    stride: Any, padding: Any, kernel_dilation: Any, input_dilation: Any, groups: int, flip: bool
) -> Options:
    """Return the options of ``conv_general``, hashable, one after another."""
    if stride.__class__ is padding.__class__ is kernel_dilation.__class__ is input_dilation.__class__ is int:
        return stride, padding, kernel_dilation, input_dilation, groups, flip
    return (*map(_hashable, (stride, padding, kernel_dilation, input_dilation)), groups, flip)


def _hashable(value: Any) -> Any:
    """Return a number as it is, and numbers in a row, and pairs of such, as tuples."""
    return value if isinstance(value, int) else tuple(map(_hashable, value))


def _check_types(name: str, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, outputs: int) -> None:
    if x.dtype != weight.dtype or (bias is not None and bias.dtype != x.dtype):
        types = ", ".join(str(t.dtype) for t in (x, weight, bias) if t is not None)
        raise UsageError(name, f"expected x, weight and bias of one type, got {types}.")
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise UsageError(name, f"expected bias of shape ({outputs},), got {tuple(bias.shape)}.")


def input_gradient(gradient: torch.Tensor, weight: torch.Tensor, geometry: Geometry) -> torch.Tensor:
    """Return the gradient with respect to the input, as autograd asks for it.

    Args:
        gradient: Of the output, ``[N, spatial..., O]``.
        weight: ``[O, taps..., C / groups]``, of as many axes.
        geometry: Of the convolution.
    """
    axes = geometry.axes[5 - gradient.dim() :]
    shape = (geometry.batch, *(axis.size for axis in axes), geometry.c_in)
    found: torch.Tensor = _run((gradient, weight, None), "input", geometry, shape)
    return found


class _Convolution(torch.autograd.Function):
    """Forward and the gradients; a gradient of a gradient is not provided."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, geometry: Geometry
    ) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        ctx.geometry = geometry
        out: torch.Tensor = _run((x, weight, bias), "forward", geometry, _shape(x, geometry))
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        x, weight = ctx.saved_tensors
        (gradient,) = gradients
        needs = ctx.needs_input_grad
        return (
            input_gradient(gradient, weight, ctx.geometry) if needs[0] else None,
            _run((x, gradient, None), "weight", ctx.geometry, tuple(weight.shape)) if needs[1] else None,
            gradient.sum(tuple(range(gradient.dim() - 1))) if needs[2] else None,
            None,
        )
