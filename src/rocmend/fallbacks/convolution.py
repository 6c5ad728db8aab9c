"""``aten::convolution`` and ``aten::convolution_backward`` through matrix products, argument for argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rocmend.kernels.ops.conv.conv import columns
from rocmend.kernels.ops.conv.conv.geometry import Geometry, geometry_of, transposed_geometry_of
from rocmend.kernels.ops.conv.conv.operands import five

FLOATING = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
"""The dtypes that the matrix path takes; others stay on the native path."""


def convolution(  # noqa: PLR0913,PLR0917  the operator's own signature
    source: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    *,
    limit_bytes: int | None = None,
) -> Tensor:
    """Return the convolution of ``source`` with ``weight`` plus ``bias``, as ``torch.convolution`` defines it.

    Args:
        source: ``(N, C, *size)``, one to three spatial axes.
        weight: ``(O, C / groups, *kernel)``; ``(C, O / groups, *kernel)`` where transposed.
        bias: ``(O,)`` or None.
        stride: Step between windows; one number, or one for each axis.
        padding: Zeros on both sides, likewise.
        dilation: Step between taps, likewise.
        transposed: Compute the adjoint.
        output_padding: Rows added at the end of a transposed convolution's output.
        groups: Number of groups of channels.
        limit_bytes: Bytes of columns at a time; None for a share of what is free.

    Returns:
        ``(N, O, *output)`` in the memory format that the native operator would choose.

    Raises:
        RuntimeError: The arguments do not make a convolution; PyTorch's own check and words.
        UsageError: The output would have a negative size.
    """
    numbers = stride, padding, dilation, output_padding
    geometry, layout = _geometry(source, weight, bias, None, numbers, transposed=transposed, groups=groups)
    apply = columns.adjoint if transposed else columns.correlate
    options: dict[str, Any] = {"channels_last": layout is not torch.contiguous_format, "limit_bytes": limit_bytes}
    result = _like(apply(_last(source), _last(weight), geometry, **options), source.ndim)
    if bias is not None:
        result = result.add_(bias.reshape(1, -1, *[1] * (source.ndim - 2)))
    return result.contiguous(memory_format=layout)


def convolution_backward(  # noqa: PLR0913,PLR0917  the operator's own signature
    gradient: Tensor,
    source: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
    *,
    limit_bytes: int | None = None,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients of ``convolution`` with respect to its input, weight and bias.

    Args:
        gradient: ``(N, O, *output)``.
        source: As given to ``convolution``.
        weight: As given to ``convolution``.
        bias_sizes: Shape of the bias, or None.
        stride: As given to ``convolution``.
        padding: As given to ``convolution``.
        dilation: As given to ``convolution``.
        transposed: As given to ``convolution``.
        output_padding: As given to ``convolution``.
        groups: As given to ``convolution``.
        output_mask: Which of the three are wanted.
        limit_bytes: Bytes of columns at a time; None for a share of what is free.

    Returns:
        The three gradients, None for those that are not wanted.
    """
    numbers = stride, padding, dilation, output_padding
    geometry, layout = _geometry(source, weight, None, bias_sizes, numbers, transposed=transposed, groups=groups)
    options: dict[str, Any] = {"channels_last": layout is not torch.contiguous_format, "limit_bytes": limit_bytes}
    last, above = _last(source), _last(gradient)
    for_source = for_weight = for_bias = None
    if output_mask[0]:
        apply = columns.correlate if transposed else columns.adjoint
        found = apply(above, _last(weight), geometry, **options)
        for_source = _like(found, source.ndim).contiguous(memory_format=layout)
    if output_mask[1]:
        pair = (above, last) if transposed else (last, above)
        found = columns.weight_gradient(*pair, geometry, **options)
        for_weight = _like(found, weight.ndim).contiguous(memory_format=layout)
    if output_mask[2]:
        for_bias = gradient.sum([0, *range(2, gradient.ndim)])
    return for_source, for_weight, for_bias


def _last(tensor: Tensor) -> Tensor:
    """Return a tensor with channels first as one with channels last and three spatial axes."""
    return five(tensor.movedim(1, -1))


def _like(tensor: Tensor, axes: int) -> Tensor:
    """Return a tensor with channels last and three spatial axes as one with so many axes, channels first."""
    for _ in range(5 - axes):
        tensor = tensor.select(1, 0)
    return tensor.movedim(-1, 1)


def _geometry(  # noqa: PLR0913  what torch checks together
    source: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    bias_sizes: Sequence[int] | None,
    numbers: Sequence[Sequence[int]],
    *,
    transposed: bool,
    groups: int,
) -> tuple[Geometry, torch.memory_format]:
    """Return the geometry, and the memory format of the native operator's result, which compiled graphs rely on.

    Args:
        source: As in ``convolution``; so are the others.
        weight: See source.
        bias: See source.
        bias_sizes: Shape of the bias, or None.
        numbers: Stride, padding, dilation and output padding.
        transposed: See source.
        groups: See source.

    Raises:
        RuntimeError: The arguments do not make a convolution; PyTorch's own check and words.
    """
    rank = source.ndim - 2
    stride, padding, dilation, extra = ([*each] * rank if len(each) == 1 else [*each] for each in numbers)
    backend = torch._C._select_conv_backend(  # noqa: SLF001  what PyTorch's own fake kernels ask
        source, weight, bias, stride, padding, dilation, transposed, extra, groups, bias_sizes
    )
    found = torch._C._conv_determine_backend_memory_format(source, weight, backend)  # noqa: SLF001  same
    shapes = [(one.shape[0], *one.shape[2:], one.shape[1]) for one in (source, weight)]
    steps = tuple(stride), tuple(padding), tuple(dilation)
    if transposed:
        geometry = transposed_geometry_of(shapes[0], shapes[1], *steps, tuple(extra), groups)
    else:
        geometry = geometry_of("convolution", shapes[0], shapes[1], *steps, 1, groups, False)
    return geometry, found if source.ndim > 3 else torch.contiguous_format
