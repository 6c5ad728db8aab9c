"""torch's convolutions, and so cuDNN or MIOpen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from rocmend.kernels.ops.conv.conv.geometry import Geometry


def plain_as(geometry: Geometry) -> str | None:
    """Say as which of torch's convolutions a geometry can be computed: ``direct``, ``transposed`` or None."""
    axes = geometry.axes
    if not geometry.flip and all(axis.input_dilation == 1 and axis.padding >= 0 for axis in axes):
        same = all(axis.out == axis.padding_after(axis.padding).out for axis in axes)
        return "direct" if same else None
    if geometry.flip and all(axis.stride == 1 for axis in axes):
        for axis in axes:
            padding, extra = transposed(
                axis.size, axis.out, axis.taps, axis.padding, axis.dilation, axis.input_dilation
            )
            if padding < 0 or not 0 <= extra < max(axis.input_dilation, axis.dilation):
                return None
        return "transposed"
    return None


def transposed(size: int, out: int, taps: int, padding: int, dilation: int, stride: int) -> tuple[int, int]:
    """Return torch's padding and output_padding of a transposed convolution."""
    own = (taps - 1) * dilation - padding
    return own, out - ((size - 1) * stride - 2 * own + (taps - 1) * dilation + 1)


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


def run(
    direction: str, x: torch.Tensor, other: torch.Tensor, bias: torch.Tensor | None, geometry: Geometry
) -> torch.Tensor:
    """Compute what ``host.run`` computes."""
    with in_full_precision(x.dtype):
        return _run(direction, x, other, bias, geometry)


def _run(
    direction: str, x: torch.Tensor, other: torch.Tensor, bias: torch.Tensor | None, geometry: Geometry
) -> torch.Tensor:
    drop = tuple(
        index for index, axis in enumerate(geometry.axes[:2]) if axis.size == 1 and axis.taps == 1 and axis.out == 1
    )
    if drop == (1,):
        drop = ()
    axes = [axis for index, axis in enumerate(geometry.axes) if index not in drop]
    gone = tuple(index + 1 for index in drop)
    inputs = x.squeeze(gone).movedim(-1, 1)
    spread = plain_as(geometry) == "transposed"
    if spread:
        both = [transposed(a.size, a.out, a.taps, a.padding, a.dilation, a.input_dilation) for a in axes]
        stride, padding = [axis.input_dilation for axis in axes], [one for one, _ in both]
        extra = [more for _, more in both]
    else:
        stride, padding = [axis.stride for axis in axes], [axis.padding for axis in axes]
        extra = [0] * len(axes)
    dilation = [axis.dilation for axis in axes]
    if direction == "weight":
        channels = geometry.c_in // geometry.groups
        shape = (geometry.c_out, *(axis.taps for axis in axes), channels)
        weight = torch.empty(shape, dtype=x.dtype, device=x.device)
        gradient = torch.ops.aten.convolution_backward(
            other.squeeze(gone).movedim(-1, 1), inputs, _weight(weight, geometry, transposed=spread), None,
            stride, padding, dilation, spread, extra, geometry.groups, [False, True, False],
        )[1]  # fmt: skip
        return _back(gradient, geometry, transposed=spread).reshape(
            geometry.c_out, *(axis.taps for axis in geometry.axes), channels
        )
    out = torch.ops.aten.convolution(
        inputs, _weight(other.squeeze(gone), geometry, transposed=spread), bias, stride, padding, dilation,
        spread, extra, geometry.groups,
    )  # fmt: skip
    result: torch.Tensor = out.movedim(1, -1)
    return result.reshape(geometry.batch, *(axis.out for axis in geometry.axes), geometry.c_out)


def _weight(weight: torch.Tensor, geometry: Geometry, *, transposed: bool) -> torch.Tensor:
    """Return ``[O, ..., C / groups]`` as torch's ``[O, C / groups, ...]``, or transposed ``[C, O / groups, ...]``."""
    if not transposed:
        return weight.movedim(-1, 1)
    grouped: torch.Tensor = weight.unflatten(0, (geometry.groups, geometry.c_out // geometry.groups))
    return grouped.movedim(-1, 1).flatten(0, 1)


def _back(gradient: torch.Tensor, geometry: Geometry, *, transposed: bool) -> torch.Tensor:
    if not transposed:
        return gradient.movedim(1, -1)
    grouped: torch.Tensor = gradient.unflatten(0, (geometry.groups, geometry.c_in // geometry.groups))
    return grouped.movedim(1, -1).flatten(0, 1)
