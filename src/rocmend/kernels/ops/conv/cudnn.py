"""cuDNN's convolutions without torch's way to them: which library computes, and as what, is asked of torch once.

``torch.convolution`` decides on each call among a dozen libraries, and is itself a function of functions; what it comes
to on NVIDIA is ``torch.cudnn_convolution``, which is called here with torch's own settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Call = Callable[[torch.Tensor, torch.Tensor], torch.Tensor | None]
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
_NAMES = (
    "_select_conv_backend", "_conv_determine_backend_memory_format", "_get_cudnn_enabled", "_get_cudnn_benchmark",
    "_get_cudnn_deterministic", "_get_deterministic_algorithms",
)  # fmt: skip
"""Torch's own choice, and its settings: ``torch.backends.cudnn`` reads the same, through properties."""
_TORCHS: list[Any] = [getattr(torch._C, name, None) for name in _NAMES]  # noqa: SLF001


def direct(
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    extra: Sequence[int],
    groups: int,
    *,
    transposed: bool,
) -> Call | None:
    """Return what calls cuDNN with tensors like these; None where torch would not, or not with them as they are.

    The result has channels last. It returns None from a call where cuDNN was switched off meanwhile.

    Args:
        x: ``[N, C, spatial...]`` in memory with channels last, as ``torch.convolution`` takes it.
        weight: As ``torch.convolution`` takes it, any strides.
        stride: As ``torch.convolution`` takes it; so are the others.
        padding: See stride.
        dilation: See stride.
        extra: Torch's ``output_padding``.
        groups: Groups.
        transposed: Whether it is a transposed convolution.
    """
    last = _FORMATS.get(x.dim())
    if torch.version.hip or not x.is_cuda or last is None or None in _TORCHS:
        return None
    if max(dilation) > 1 or not x.is_contiguous(memory_format=last):
        return None  # torch asks cuDNN for dilated ones only where results may differ from call to call
    select, format_of, enabled, benchmark, deterministic, always = _TORCHS
    backend = select(x, weight, None, stride, padding, dilation, transposed, extra, groups)
    if backend.name != ("CudnnTranspose" if transposed else "Cudnn") or format_of(x, weight, backend) != last:
        return None
    run: Any = torch.cudnn_convolution_transpose if transposed else torch.cudnn_convolution
    numbers = (padding, extra, stride, dilation, groups) if transposed else (padding, stride, dilation, groups)

    def call(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor | None:
        if not enabled():
            return None
        out: torch.Tensor = run(x, weight, *numbers, benchmark(), deterministic() or always(), False)
        return out

    return call
