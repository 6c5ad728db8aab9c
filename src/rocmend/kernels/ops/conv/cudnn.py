"""cuDNN's convolutions without torch's way to them: which library computes, and as what, is asked of torch once.

``torch.convolution`` decides on each call among a dozen libraries, and is itself a function of functions; what it comes
to on NVIDIA is ``torch.cudnn_convolution``, which is called here with torch's own settings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Forward = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], bool]
"""Of x, weight and output: whether it computed, which it does not where cuDNN was switched off meanwhile."""
Transposed = Callable[[torch.Tensor, torch.Tensor], torch.Tensor | None]
"""Of x and weight, to an output with channels last; None where cuDNN was switched off meanwhile."""
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
_NAMES = (
    "_select_conv_backend", "_conv_determine_backend_memory_format", "_get_cudnn_enabled", "_get_cudnn_benchmark",
    "_get_cudnn_deterministic", "_get_deterministic_algorithms",
)  # fmt: skip
"""Torch's own choice, and its settings: ``torch.backends.cudnn`` reads the same, through properties."""
_TORCHS: list[Any] = [getattr(torch._C, name, None) for name in _NAMES]  # noqa: SLF001


def forward(
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    extra: Sequence[int],
    groups: int,
) -> Forward | None:
    """Return what calls cuDNN with tensors like these; None where torch would not, or not with them as they are.

    Args:
        x: ``[N, C, spatial...]`` in memory with channels last, as ``torch.convolution`` takes it.
        weight: As ``torch.convolution`` takes it, any strides.
        stride: As ``torch.convolution`` takes it; so are the others.
        padding: See stride.
        dilation: See stride.
        extra: Torch's ``output_padding``.
        groups: Groups.
    """
    if not _taken(x, weight, stride, padding, dilation, extra, groups, transposed=False):
        return None
    run: Any = torch.cudnn_convolution
    enabled, benchmark, deterministic, always = _TORCHS[2:]

    def call(x: torch.Tensor, weight: torch.Tensor, out: torch.Tensor) -> bool:
        if not enabled():
            return False
        fixed = deterministic() or always()
        run(x, weight, padding, stride, dilation, groups, benchmark(), fixed, False, out=out)  # no tf32
        return True

    return call


def transposed(
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    extra: Sequence[int],
    groups: int,
) -> Transposed | None:
    """Return the like for a transposed convolution; see ``forward``."""
    if not _taken(x, weight, stride, padding, dilation, extra, groups, transposed=True):
        return None
    run: Any = torch.cudnn_convolution_transpose
    enabled, benchmark, deterministic, always = _TORCHS[2:]

    def call(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor | None:
        if not enabled():
            return None
        fixed = deterministic() or always()
        out: torch.Tensor = run(x, weight, padding, extra, stride, dilation, groups, benchmark(), fixed, False)
        return out

    return call


def _taken(
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    extra: Sequence[int],
    groups: int,
    *,
    transposed: bool,
) -> bool:
    """Return whether torch takes cuDNN for tensors like these, with channels last as they are."""
    last = _FORMATS.get(x.dim())
    if torch.version.hip or not x.is_cuda or last is None or None in _TORCHS:
        return False
    if max(dilation) > 1 or not x.is_contiguous(memory_format=last):
        return False  # torch asks cuDNN for dilated ones only where results may differ from call to call
    select, format_of = _TORCHS[:2]
    backend = select(x, weight, None, stride, padding, dilation, transposed, extra, groups)
    expected = "CudnnTranspose" if transposed else "Cudnn"
    return bool(backend.name == expected and format_of(x, weight, backend) == last)
