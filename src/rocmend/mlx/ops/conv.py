"""Convolutions, channels last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rocmend.mlx.arguments import shape_text, to_array
from rocmend.mlx.array import array
from rocmend.mlx.ops.convolution import Options, Sizes, convolved
from rocmend.mlx.registry import ops

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_general",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "convolve",
]

Size = int | Sequence[int]


def _sizes(name: str, given: Size, axes: int) -> Sizes:
    """Return a number for each axis.

    Raises:
        ValueError: there are as many as there are not axes.
    """
    if isinstance(given, int):
        return (given,) * axes
    found = tuple(int(one) for one in given)
    if len(found) == 1:
        return found * axes
    if len(found) != axes:
        raise ValueError(f"[conv] Invalid {name} {shape_text(found)} for {axes}D convolution.")
    return found


def _options(
    axes: int, stride: Size, low: Size, high: Size, kernel: Size, input_dilation: Size, groups: int, flip: bool
) -> Options:
    made = Options(
        _sizes("stride", stride, axes), _sizes("padding", low, axes), _sizes("padding", high, axes),
        _sizes("kernel dilation", kernel, axes), _sizes("input dilation", input_dilation, axes), int(groups),
        bool(flip),
    )  # fmt: skip
    for name, values in (("Stride", made.stride), ("Kernel dilation", made.kernel), ("Input dilation", made.input)):
        if min(values) <= 0:
            raise ValueError(f"[conv] {name} sizes must be positive, got {shape_text(values)}.")
    if groups <= 0:
        raise ValueError(f"[conv] The number of groups must be positive, got {groups}.")
    return made


def conv_general(
    input: Any, weight: Any, /, stride: Size = 1, padding: Size | tuple[Sequence[int], Sequence[int]] = 0,
    kernel_dilation: Size = 1, input_dilation: Size = 1, groups: int = 1, flip: bool = False, *, stream: Any = None,
) -> array:  # fmt: skip
    """Convolve over one to three axes.

    ``y[o] = Σ_k x[(o · stride - padding + k · kernel_dilation) / input_dilation] · w[k]`` over the taps k that fall on
    an element.

    Args:
        input: ``[N, spatial..., C]`` of a floating type.
        weight: ``[O, taps..., C / groups]``.
        stride: step of the output; a number, or one for each spatial axis.
        padding: zeros around the input, likewise, or a pair of sequences: before and behind.
        kernel_dilation: step between taps.
        input_dilation: step between elements of the input.
        groups: groups of channels that do not mix.
        flip: taps run backwards: a convolution; otherwise it is a correlation.
        stream: where it is computed.

    Returns:
        ``[N, spatial..., O]`` of the type that both promote to.

    Raises:
        ValueError: shapes, types or options that do not fit.
    """
    low: Any = padding
    high: Any = padding
    if isinstance(padding, tuple) and len(padding) == 2 and not isinstance(padding[0], int):
        low, high = padding
    axes = max(len(to_array(input).shape) - 2, 1)
    options = _options(axes, stride, low, high, kernel_dilation, input_dilation, groups, flip)
    return convolved(input, weight, options, stream)


def _plain_options(axes: int, x: array, stride: Size, padding: Size, dilation: Size, groups: int) -> Options:
    """Return the options of a convolution over ``axes`` axes; a single number holds for as many as there are."""
    axes = max(len(x.shape) - 2, 1) if axes == 1 else axes
    return _options(axes, stride, padding, padding, dilation, 1, groups, False)


def conv1d(
    input: Any, weight: Any, /, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1, *,
    stream: Any = None,
) -> array:  # fmt: skip
    """Convolve over one axis; see ``conv_general``.

    Args:
        input: ``[N, L, C]``.
        weight: ``[O, taps, C / groups]``.
        stride: step of the output.
        padding: zeros on both sides.
        dilation: step between taps.
        groups: groups of channels that do not mix.
        stream: where it is computed.

    Returns:
        ``[N, L', O]``.

    Raises:
        ValueError: shapes, types or options that do not fit.
    """
    x = to_array(input)
    return convolved(x, weight, _plain_options(1, x, stride, padding, dilation, groups), stream)


def conv2d(
    input: Any, weight: Any, /, stride: Size = 1, padding: Size = 0, dilation: Size = 1, groups: int = 1, *,
    stream: Any = None,
) -> array:  # fmt: skip
    """Convolve over two axes; see ``conv_general``.

    Args:
        input: ``[N, H, W, C]``.
        weight: ``[O, KH, KW, C / groups]``.
        stride: step of the output; a number or one for each axis.
        padding: zeros on both sides, likewise.
        dilation: step between taps, likewise.
        groups: groups of channels that do not mix.
        stream: where it is computed.

    Returns:
        ``[N, H', W', O]``.

    Raises:
        ValueError: shapes, types or options that do not fit.
    """
    x = to_array(input)
    return convolved(x, weight, _plain_options(2, x, stride, padding, dilation, groups), stream)


def conv3d(
    input: Any, weight: Any, /, stride: Size = 1, padding: Size = 0, dilation: Size = 1, groups: int = 1, *,
    stream: Any = None,
) -> array:  # fmt: skip
    """Convolve over three axes; see ``conv_general``.

    Args:
        input: ``[N, D, H, W, C]``.
        weight: ``[O, KD, KH, KW, C / groups]``.
        stride: step of the output; a number or one for each axis.
        padding: zeros on both sides, likewise.
        dilation: step between taps, likewise.
        groups: groups of channels that do not mix.
        stream: where it is computed.

    Returns:
        ``[N, D', H', W', O]``.

    Raises:
        ValueError: shapes, types or options that do not fit.
    """
    x = to_array(input)
    return convolved(x, weight, _plain_options(3, x, stride, padding, dilation, groups), stream)


def _transposed(
    name: str, axes: int, input: Any, weight: Any, stride: Size, padding: Size, dilation: Size, output_padding: Size,
    groups: int, stream: Any,
) -> array:  # fmt: skip
    """Record the convolution that turns the shape of a convolution's output into that of its input."""
    x, w = to_array(input), to_array(weight)
    axes = max(len(x.shape) - 2, 1) if axes == 1 else axes
    if len(x.shape) != axes + 2 or len(w.shape) != axes + 2:
        raise ValueError(
            f"[{name}] Expected an input and a weight with {axes + 2} dimensions, got shapes {shape_text(x.shape)} and "
            f"{shape_text(w.shape)}."
        )
    pads, steps = _sizes("padding", padding, axes), _sizes("dilation", dilation, axes)
    more = _sizes("output padding", output_padding, axes)
    low = tuple((taps - 1) * step - pad for taps, step, pad in zip(w.shape[1:-1], steps, pads, strict=True))
    high = tuple(pad + extra for pad, extra in zip(low, more, strict=True))
    return convolved(x, w, _options(axes, 1, low, high, steps, stride, groups, True), stream)


def conv_transpose1d(
    input: Any, weight: Any, /, stride: int = 1, padding: int = 0, dilation: int = 1, output_padding: int = 0,
    groups: int = 1, *, stream: Any = None,
) -> array:  # fmt: skip
    """Convolve transposed over one axis.

    Args:
        input: ``[N, L, C]``.
        weight: ``[O, taps, C / groups]``.
        stride: step between elements of the input.
        padding: what the output lacks on both sides.
        dilation: step between taps.
        output_padding: what the output has more at its end.
        groups: groups of channels that do not mix.
        stream: where it is computed.

    Returns:
        ``[N, L', O]``.

    Raises:
        ValueError: shapes, types or options that do not fit.
    """
    return _transposed("conv_transpose1d", 1, input, weight, stride, padding, dilation, output_padding, groups, stream)


def conv_transpose2d(
    input: Any, weight: Any, /, stride: Size = 1, padding: Size = 0, dilation: Size = 1, output_padding: Size = 0,
    groups: int = 1, *, stream: Any = None,
) -> array:  # fmt: skip
    """Convolve transposed over two axes; see ``conv_transpose1d``.

    Args:
        input: ``[N, H, W, C]``.
        weight: ``[O, KH, KW, C / groups]``.
        stride: step between elements of the input; a number or one for each axis.
        padding: what the output lacks on both sides, likewise.
        dilation: step between taps, likewise.
        output_padding: what the output has more at its end, likewise.
        groups: groups of channels that do not mix.
        stream: where it is computed.

    Returns:
        ``[N, H', W', O]``.

    Raises:
        ValueError: shapes, types or options that do not fit.
    """
    return _transposed("conv_transpose2d", 2, input, weight, stride, padding, dilation, output_padding, groups, stream)


def conv_transpose3d(
    input: Any, weight: Any, /, stride: Size = 1, padding: Size = 0, dilation: Size = 1, output_padding: Size = 0,
    groups: int = 1, *, stream: Any = None,
) -> array:  # fmt: skip
    """Convolve transposed over three axes; see ``conv_transpose1d``.

    Args:
        input: ``[N, D, H, W, C]``.
        weight: ``[O, KD, KH, KW, C / groups]``.
        stride: step between elements of the input; a number or one for each axis.
        padding: what the output lacks on both sides, likewise.
        dilation: step between taps, likewise.
        output_padding: what the output has more at its end, likewise.
        groups: groups of channels that do not mix.
        stream: where it is computed.

    Returns:
        ``[N, D', H', W', O]``.

    Raises:
        ValueError: shapes, types or options that do not fit.
    """
    return _transposed("conv_transpose3d", 3, input, weight, stride, padding, dilation, output_padding, groups, stream)


def convolve(a: Any, v: Any, /, mode: str = "full", *, stream: Any = None) -> array:
    """Convolve two vectors: ``out[i] = Σ_k a[k] · v[i - k]``; the longer one is the first.

    Args:
        a: ``[n]`` of a floating type.
        v: ``[m]``.
        mode: ``full``: ``n + m - 1`` elements; ``valid``: those where the vectors overlap wholly; ``same``: as many as
            the longer one has.
        stream: where it is computed.

    Returns:
        A vector of the type that both promote to.

    Raises:
        ValueError: not vectors, an empty one, or another mode.
    """
    a, v = to_array(a), to_array(v)
    if len(a.shape) != 1 or len(v.shape) != 1:
        raise ValueError(f"[convolve] Inputs must be 1D, got shapes {shape_text(a.shape)} and {shape_text(v.shape)}.")
    if not a.shape[0] or not v.shape[0]:
        raise ValueError("[convolve] Inputs cannot be empty.")
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    taps = v.shape[0]
    sides = {"full": (taps - 1, taps - 1), "valid": (0, 0), "same": (taps // 2, (taps - 1) // 2)}.get(mode)
    if sides is None:
        raise ValueError(f"[convolve] Invalid mode {mode!r}: there are 'full', 'valid' and 'same'.")
    x, weight = ops.reshape(a, (1, -1, 1), stream=stream), ops.reshape(v, (1, -1, 1), stream=stream)
    options = _options(1, 1, sides[0], sides[1], 1, 1, 1, True)
    return ops.reshape(convolved(x, weight, options, stream), (-1,), stream=stream)  # type: ignore[no-any-return]
