"""cuDNN's convolutions without torch's way to them: which library computes, and as what, is asked of torch once.

``torch.convolution`` decides on each call among a dozen libraries, and is itself a function of functions; what it comes
to on NVIDIA is ``torch.cudnn_convolution``, which is called here with torch's own settings. A call that is captured
executes cuDNN's plan itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from rocmend.kernels import captured
from rocmend.kernels.captured import LibraryCall
from rocmend.kernels.ops.conv.conv.geometry import Axis, Geometry

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


class Convolution(NamedTuple):
    """A convolution ``y = x * weight`` with channels last, of which one of the three is computed.

    Args:
        direction: What is computed: ``forward`` y, ``input`` x, ``weight`` weight.
        dtype: float16 or bfloat16.
        x: Sizes ``[N, C, spatial...]`` of two or three spatial axes.
        weight: Sizes ``[O, C / groups, taps...]``.
        y: Sizes ``[N, O, spatial...]``.
        stride: Of each axis.
        padding: Of each axis, before and after.
    """

    direction: str
    dtype: torch.dtype
    x: tuple[int, ...]
    weight: tuple[int, ...]
    y: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]


MOST_KEPT = 4096
LINE = 3
"""Axes of a convolution over one axis."""
_given: set[tuple[int, Convolution]] = set()
"""What torch gave to cuDNN, by device."""


def convolution(
    direction: str, x: torch.Tensor, other: torch.Tensor, axes: Sequence[Axis], geometry: Geometry
) -> Convolution | None:
    """Return cuDNN's convolution if torch passes all tensors on as they are; None if it would copy them.

    Args:
        direction: ``forward``, ``input`` or ``weight``: what is computed.
        x: Given, as is the other: contiguous with channels last.
        other: See x.
        axes: Those that torch is told of.
        geometry: Of the convolution.
    """
    if x.dtype not in (torch.float16, torch.bfloat16) or not (x.is_contiguous() and other.is_contiguous()):
        return None
    if any(axis.dilation != 1 or axis.input_dilation != 1 or axis.padding < 0 for axis in axes) or geometry.flip:
        return None
    axes = [*[Axis(1, 1, 1)] * (2 - len(axes)), *axes]  # a convolution over one axis is one over two
    sizes = (
        (geometry.batch, geometry.c_in, *[axis.size for axis in axes]),
        (geometry.c_out, geometry.c_in // geometry.groups, *[axis.taps for axis in axes]),
        (geometry.batch, geometry.c_out, *[axis.out for axis in axes]),
    )
    if min(map(math.prod, sizes)) == 0:
        return None
    stride, padding = tuple([axis.stride for axis in axes]), tuple([axis.padding for axis in axes])
    return Convolution(direction, x.dtype, *sizes, stride, padding)


def gives(
    one: Convolution | None,
    x: torch.Tensor,
    weight: torch.Tensor,
    options: tuple[list[int], list[int], list[int], list[int]],
    groups: int,
    *,
    transposed: bool = False,
) -> None:
    """Remember that torch gives a convolution to cuDNN, where it does.

    Args:
        one: See ``convolution``; None is not remembered.
        x: As ``torch.convolution`` takes it.
        weight: As ``torch.convolution`` takes it.
        options: Stride, padding, dilation and ``output_padding``, as it takes them.
        groups: Groups.
        transposed: As it takes it.
    """
    if one is None:
        return
    if x.dim() == LINE:  # torch takes it as one over two axes
        x, weight = x.unsqueeze(2), weight.unsqueeze(2)
        stride, padding, dilation, extra = options
        options = [1, *stride], [0, *padding], [1, *dilation], [0, *extra]
    if _taken(x, weight, *options, groups, transposed=transposed):
        if len(_given) >= MOST_KEPT:
            _given.clear()
        _given.add((x.get_device(), one))


def library_convolution(one: Convolution | None) -> LibraryCall | None:
    """Return cuDNN's call for a call that is captured, given x, the weight and the output, whichever is computed.

    None if no call is captured, or torch was not seen to pass such a convolution to cuDNN.
    """
    index = None if one is None else captured.capturing_device()
    if one is None or index is None or None in _TORCHS or (index, one) not in _given:
        return None
    enabled, benchmark, deterministic, always = _TORCHS[2:]
    settings = ((enabled, True), (benchmark, False), (deterministic, False), (always, False))
    if any(told() is not wanted for told, wanted in settings):
        return None
    return captured.library_call("convolution", one, settings)


def forward(
    x: torch.Tensor,
    weight: torch.Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    extra: Sequence[int],
    groups: int,
) -> Forward | None:
    """Plan a call of cuDNN with such tensors; None if torch would not call it, or not with them as they are.

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
