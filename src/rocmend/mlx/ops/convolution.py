"""The convolution that all others are: its computation, shape, and rules of differentiation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn import functional

from rocmend import kernels
from rocmend.mlx import kernel_use
from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.dtypes import promote
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops
from rocmend.mlx.transforms import fallback

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__: list[str] = []

Sizes = tuple[int, ...]


class Options(NamedTuple):
    """How a convolution walks; a number for each spatial axis.

    Attributes:
        stride: step of the output over the dilated input.
        low: zeros before it; negative ones crop.
        high: zeros behind it.
        kernel: step between taps.
        input: step between elements of the input.
        groups: groups of channels that do not mix.
        flip: taps run backwards.
    """

    stride: Sizes
    low: Sizes
    high: Sizes
    kernel: Sizes
    input: Sizes
    groups: int
    flip: bool


_CONVS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}


def _stretched(x: torch.Tensor, steps: Sizes) -> torch.Tensor:
    """Put zeros between the elements of ``[N, spatial..., C]``."""
    if all(step == 1 for step in steps):
        return x
    sizes = [(size - 1) * step + 1 for size, step in zip(x.shape[1:-1], steps, strict=True)]
    out = x.new_zeros((x.shape[0], *sizes, x.shape[-1]))
    out[(slice(None), *(slice(None, None, step) for step in steps))] = x
    return out


def _plain(x: torch.Tensor, weight: torch.Tensor, options: Options) -> torch.Tensor:
    """Convolve with torch's function; half types in float32 on the CPU."""
    dtype = x.dtype
    if dtype in (torch.float16, torch.bfloat16) and x.device.type == "cpu":
        x, weight = x.float(), weight.float()
    x = _stretched(x, options.input)
    if options.flip:
        weight = weight.flip(tuple(range(1, weight.dim() - 1)))
    padding: Any = options.low
    if options.low != options.high or min(options.low) < 0:
        pads = [side for pair in zip(reversed(options.low), reversed(options.high), strict=True) for side in pair]
        x, padding = functional.pad(x, (0, 0, *pads)), 0
    run: Any = _CONVS[x.dim() - 2]
    out = run(x.movedim(-1, 1), weight.movedim(-1, 1), None, options.stride, padding, options.kernel, options.groups)
    made: torch.Tensor = out.movedim(1, -1).to(dtype)
    return made


def _run(node: Node, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    options: Options = node.attrs
    if 0 in node.shape or 0 in x.shape or 0 in weight.shape:
        return x.new_zeros(node.shape)
    if kernel_use.fits(x):
        out: torch.Tensor = kernels.conv_general(
            x, weight, stride=options.stride, padding=(options.low, options.high), kernel_dilation=options.kernel,
            input_dilation=options.input, groups=options.groups, flip=options.flip,
        )  # fmt: skip
        return out
    return _plain(x, weight, options)


def _run_weight(node: Node, x: torch.Tensor, cotangent: torch.Tensor) -> torch.Tensor:
    options: Options = node.attrs
    shape = node.shape
    if 0 in shape or 0 in x.shape or 0 in cotangent.shape:
        return x.new_zeros(shape)
    if kernel_use.fits(x) and not torch.is_grad_enabled():
        out: torch.Tensor = kernels.conv_weight_gradient(
            x, cotangent, shape[1:-1], stride=options.stride, padding=(options.low, options.high),
            kernel_dilation=options.kernel, input_dilation=options.input, groups=options.groups, flip=options.flip,
        )  # fmt: skip
        return out
    # Images and channels change places: the output's gradient is what slides over the input.
    groups = options.groups
    channels = x.shape[-1] // groups
    turned = x.unflatten(-1, (groups, channels)).movedim((-1, -2, 0), (0, -2, -1)).flatten(-2)
    spans = [(size - 1) * step + 1 for size, step in zip(x.shape[1:-1], options.input, strict=True)]
    reach = [(size - 1) * step + 1 for size, step in zip(cotangent.shape[1:-1], options.stride, strict=True)]
    high = tuple(
        (taps - 1) * dilation + over - span - low
        for taps, dilation, over, span, low in zip(shape[1:-1], options.kernel, reach, spans, options.low, strict=True)
    )
    walked = Options(options.kernel, options.low, high, options.stride, options.input, groups, False)
    found = _plain(turned, cotangent.movedim(0, -1).movedim(-2, 0), walked).movedim(-1, 0).movedim(1, -1)
    return found.flip(tuple(range(1, found.dim() - 1))) if options.flip else found


CONV = Primitive("Convolution", _run)
CONV_WEIGHT = Primitive("ConvolutionWeightVJP", _run_weight)


def _out_shape(x: Sizes, weight: Sizes, options: Options) -> Sizes:
    """Return the shape of the result.

    Raises:
        ValueError: shapes that do not fit.
    """
    if not 3 <= len(x) <= 5 or len(weight) != len(x):
        raise ValueError(
            "[conv] Only works for inputs [N, ..., C_in] and weights [C_out, ..., C_in] with 1 to 3 spatial "
            f"dimensions, got {shape_text(x)} and {shape_text(weight)}."
        )
    if x[-1] != weight[-1] * options.groups:
        raise ValueError(
            "[conv] Expect the input channels in the input and weight array to match but got shapes - input: "
            f"{shape_text(x)} and weight: {shape_text(weight)} with {options.groups} groups."
        )
    if weight[0] % options.groups:
        raise ValueError(
            f"[conv] The output channels must be divisible by the number of groups. Got {weight[0]} output channels "
            f"and {options.groups} groups."
        )
    out = [x[0]]
    for axis, (size, taps) in enumerate(zip(x[1:-1], weight[1:-1], strict=True)):
        span = (size - 1) * options.input[axis] + 1 if size else 0
        room = span + options.low[axis] + options.high[axis] - (taps - 1) * options.kernel[axis] - 1
        if room < 0:
            raise ValueError(
                "[conv] Spatial dimensions of input after padding cannot be smaller than weight spatial dimensions. "
                f"Got error at axis {axis + 1} for input with shape {shape_text(x)}, padding low "
                f"{shape_text(options.low)}, padding high {shape_text(options.high)}, and weight of shape "
                f"{shape_text(weight)}."
            )
        out.append(room // options.stride[axis] + 1)
    return (*out, weight[0])


def convolved(x: Any, weight: Any, options: Options, stream: Any) -> array:
    """Check and record a convolution."""
    x, weight = to_array(x), to_array(weight)
    for name, one in (("input", x), ("weight", weight)):
        if not one.dtype.is_float:
            raise ValueError(
                f"[conv] Invalid {name} array with type {one.dtype}. Convolution only supports floating point types."
            )
    shape = _out_shape(x.shape, weight.shape, options)
    dtype = promote(x.dtype, weight.dtype)
    nodes = tuple(one._n if one.dtype is dtype else ops.astype(one, dtype, stream=stream)._n for one in (x, weight))
    return record(CONV, nodes, shape, dtype, options, None, stream if stream is None else as_stream(stream))


def _input_gradient(x: Sizes, weight: array, cotangent: array, options: Options, stream: Any) -> array:
    """Return the gradient of the input: a convolution of the output's gradient, with input and output exchanged."""
    groups = options.groups
    split = ops.unflatten(weight, 0, (groups, weight.shape[0] // groups), stream=stream)
    turned = ops.flatten(ops.swapaxes(split, 1, -1, stream=stream), 0, 1, stream=stream)
    low, high = [], []
    for axis, (size, taps) in enumerate(zip(x[1:-1], weight.shape[1:-1], strict=True)):
        reach = (taps - 1) * options.kernel[axis]
        span = (cotangent.shape[axis + 1] - 1) * options.stride[axis] + 1
        low.append(reach - options.low[axis])
        high.append((size - 1) * options.input[axis] + reach + 1 - span - low[-1])
    walked = Options(options.input, tuple(low), tuple(high), options.kernel, options.stride, groups, not options.flip)
    return convolved(cotangent, turned, walked, stream)


@CONV.rule("vjp")
def _vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    x, weight = primals
    s = node.stream
    of_weight = record(CONV_WEIGHT, (x._n, cotangent._n), weight.shape, weight.dtype, node.attrs, None, s)
    return _input_gradient(x.shape, weight, cotangent, node.attrs, s), of_weight


@CONV_WEIGHT.rule("vjp")
def _weight_vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    x, upper = primals
    s = node.stream
    return (
        _input_gradient(x.shape, cotangent, upper, node.attrs, s),
        convolved(x, cotangent, node.attrs, s),
    )


@CONV.rule("vmap")
def _vmap(node: Node, arrays: Any, axes: Any) -> Any:
    if axes[0] is None or axes[1] is not None:
        size = next(x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None)
        return fallback.vmap(node, list(arrays), list(axes), size)
    s = node.stream
    x = ops.moveaxis(arrays[0], axes[0], 0, stream=s)
    out = convolved(ops.flatten(x, 0, 1, stream=s), arrays[1], node.attrs, s)
    return ops.unflatten(out, 0, x.shape[:2], stream=s), 0


@CONV.rule("jvp")
def _jvp(node: Node, primals: Any, tangents: Any, _: array) -> array:
    x, weight = primals
    s = node.stream
    parts = []
    if tangents[0] is not None:
        parts.append(convolved(tangents[0], weight, node.attrs, s))
    if tangents[1] is not None:
        parts.append(convolved(x, tangents[1], node.attrs, s))
    return parts[0] if len(parts) == 1 else ops.add(*parts, stream=s)
