"""``aten::convolution`` and ``aten::convolution_backward`` through matrix products, argument for argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rocmend.torch import gemm
from rocmend.torch.geometry import ConvolutionError, Geometry, make_geometry

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
        RuntimeError: The shapes do not make a convolution; PyTorch's own check and words.
        ConvolutionError: A parameter has the wrong count or range, or the output would have a negative size.
    """
    geometry = make_geometry(
        source.ndim - 2, stride, padding, dilation, output_padding, transposed=transposed, groups=groups
    )
    layout = _memory_format(source, weight, bias, geometry, None)
    last = layout is not torch.contiguous_format
    output = geometry.output_size(source.shape[2:], weight.shape[2:])
    if any(size < 0 for size in output):
        raise ConvolutionError(
            "convolution",
            f"expected an output of no negative size, got {output}.",
            why=f"Input size {tuple(source.shape[2:])}, kernel {tuple(weight.shape[2:])}, padding {geometry.padding}.",
            next_step="Give a larger input or less padding.",
        )
    apply = gemm.input_gradient if transposed else gemm.correlate
    result = apply(source, weight, geometry, output, channels_last=last, limit_bytes=limit_bytes)
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
    geometry = make_geometry(
        source.ndim - 2, stride, padding, dilation, output_padding, transposed=transposed, groups=groups
    )
    layout = _memory_format(source, weight, None, geometry, bias_sizes)
    options: dict[str, Any] = {"channels_last": layout is not torch.contiguous_format, "limit_bytes": limit_bytes}
    size, kernel = source.shape[2:], weight.shape[2:]
    for_source = for_weight = for_bias = None
    if output_mask[0]:
        apply = gemm.correlate if transposed else gemm.input_gradient
        for_source = apply(gradient, weight, geometry, size, **options).contiguous(memory_format=layout)
    if output_mask[1]:
        pair = (source, gradient) if transposed else (gradient, source)
        for_weight = gemm.weight_gradient(*pair, kernel, geometry, **options).contiguous(memory_format=layout)
    if output_mask[2]:
        for_bias = gradient.sum([0, *range(2, gradient.ndim)])
    return for_source, for_weight, for_bias


def _memory_format(
    source: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry, bias_sizes: Sequence[int] | None
) -> torch.memory_format:
    """Return the memory format of the native operator's result, which compiled graphs rely on; checks shapes too."""
    backend = torch._C._select_conv_backend(  # noqa: SLF001  what PyTorch's own fake kernels ask
        source,
        weight,
        bias,
        list(geometry.stride),
        list(geometry.padding),
        list(geometry.dilation),
        geometry.transposed,
        list(geometry.output_padding),
        geometry.groups,
        bias_sizes,
    )
    found = torch._C._conv_determine_backend_memory_format(source, weight, backend)  # noqa: SLF001  same
    return found if source.ndim > 3 else torch.contiguous_format
