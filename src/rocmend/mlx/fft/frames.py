"""Transforms of short, overlapping frames of a signal, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.fft.transform import fft, ifft, irfft, rfft
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["istft", "stft"]

_PADS = ("reflect", "constant", "edge")
_LEAST = 1e-8  # what a sum of squared windows is taken for where it is less


def _run_frames(node: Node, x: torch.Tensor) -> torch.Tensor:
    size, hop, pad, mode = node.attrs
    length = x.shape[-1]
    if pad and mode == "constant":
        x = functional.pad(x, (pad, pad))
    elif pad:
        places = torch.arange(-pad, length + pad, device=x.device)
        if mode == "edge" or length == 1:
            places = places.clamp(0, length - 1)
        else:  # there and back, as often as it takes
            places = places.remainder(2 * (length - 1))
            places = torch.minimum(places, 2 * (length - 1) - places)
        x = x.index_select(-1, places)
    return x.unfold(-1, size, hop)


def _run_overlap(node: Node, frames: torch.Tensor) -> torch.Tensor:
    size, hop = node.attrs
    count, length = frames.shape[-2], node.shape[-1]
    columns = frames.reshape(-1, count, size).transpose(1, 2)
    return functional.fold(columns, (1, length), (1, size), stride=(1, hop)).reshape(node.shape)


FRAMES = Primitive("Frames", _run_frames)
OVERLAP = Primitive("OverlapAdd", _run_overlap)


def _window(op: str, window: array | None, win_length: int | None, n_fft: int, stream: Any) -> array:
    """Return a window of ``n_fft`` elements: the given one, or ones, in the middle of zeros."""
    if window is None:
        length = n_fft if win_length is None else win_length
        if length <= 0 or length > n_fft:
            raise ValueError(f"[{op}] window length must not exceed n_fft, got {length} and {n_fft}.")
        window = ops.ones((length,), dtypes.float32, stream=stream)
    else:
        window = to_array(window)
        if len(window.shape) != 1:
            raise ValueError(f"[{op}] window must have one dimension, got shape {shape_text(window.shape)}.")
        if window.shape[0] > n_fft:
            raise ValueError(f"[{op}] window length must not exceed n_fft, got {window.shape[0]} and {n_fft}.")
    missing = n_fft - window.shape[0]
    if not missing:
        return window
    return ops.pad(window, [(missing // 2, missing - missing // 2)], stream=stream)  # type: ignore[no-any-return]


def _check_sizes(op: str, n_fft: int, hop_length: int | None) -> int:
    if n_fft <= 0:
        raise ValueError(f"[{op}] n_fft must be positive, got {n_fft}.")
    hop = n_fft // 4 if hop_length is None else hop_length
    if hop <= 0:
        raise ValueError(f"[{op}] hop_length must be positive, got {hop}.")
    return hop


def stft(
    x: array, n_fft: int = 2048, hop_length: int | None = None, win_length: int | None = None,
    window: array | None = None, center: bool = True, pad_mode: str = "reflect", norm: str = "backward",
    onesided: bool | None = None, stream: Any = None,
) -> array:  # fmt: skip
    """Cut a signal into overlapping frames, apply a window, and transform each.

    Args:
        x: ``[..., samples]``.
        n_fft: samples of a frame.
        hop_length: samples from one frame to the next; None for ``n_fft // 4``.
        win_length: length of a window of ones; None for ``n_fft``.
        window: ``[length]``, put in the middle of ``n_fft`` zeros; None for ones.
        center: frames have their samples in the middle: the signal is continued at both ends.
        pad_mode: how: ``reflect``, ``constant`` (zeros) or ``edge``.
        norm: as for ``fft``.
        onesided: only the frequencies that are not negative; None: for a real signal.
        stream: where it is computed.

    Returns:
        ``[..., frequencies, frames]`` complex64.

    Raises:
        ValueError: sizes or options that do not fit.
    """
    x = to_array(x)
    if not x.shape:
        raise ValueError("[stft] Input must have at least one dimension.")
    hop = _check_sizes("stft", n_fft, hop_length)
    one_side = not x.dtype.is_complex if onesided is None else onesided
    shape = _window("stft", window, win_length, n_fft, stream)
    if center and pad_mode not in _PADS:
        raise ValueError(f"[stft] Invalid padding mode {pad_mode!r}: there are {', '.join(_PADS)}.")
    pad = n_fft // 2 if center else 0
    length = x.shape[-1] + 2 * pad
    if length < n_fft or (pad and not x.shape[-1]):
        raise ValueError(f"[stft] Input is too short for the given n_fft: {x.shape[-1]} samples for {n_fft}.")
    if not x.dtype.is_complex:
        x = ops.astype(x, dtypes.float32, stream=stream)
    count = 1 + (length - n_fft) // hop
    where = stream if stream is None else as_stream(stream)
    frames = record(FRAMES, (x._n,), (*x.shape[:-1], count, n_fft), x.dtype, (n_fft, hop, pad, pad_mode), None, where)
    frames = ops.multiply(frames, shape, stream=stream)
    made = (rfft if one_side else fft)(frames, n_fft, -1, norm, stream)
    return ops.swapaxes(made, -1, -2, stream=stream)  # type: ignore[no-any-return]


def istft(
    stft_matrix: array, n_fft: int | None = None, hop_length: int | None = None, win_length: int | None = None,
    window: array | None = None, center: bool = True, norm: str = "backward", onesided: bool | None = None,
    length: int | None = None, stream: Any = None,
) -> array:  # fmt: skip
    """Put a signal together from transforms of overlapping frames: the inverse of ``stft``.

    Frames are transformed back, multiplied with the window and added; the sum is divided by that of squared windows.

    Args:
        stft_matrix: ``[..., frequencies, frames]``.
        n_fft: samples of a frame; None for ``2 (frequencies - 1)``, or ``frequencies`` where both sides are there.
        hop_length: samples from one frame to the next; None for ``n_fft // 4``.
        win_length: as for ``stft``.
        window: as for ``stft``.
        center: as for ``stft``: what the signal was continued by is cut off.
        norm: as for ``ifft``.
        onesided: there are only the frequencies that are not negative; None: yes.
        length: samples of the result: more are cut off, zeros are added.
        stream: where it is computed.

    Returns:
        ``[..., samples]`` float32.

    Raises:
        ValueError: sizes that do not fit.
    """
    matrix = to_array(stft_matrix)
    if len(matrix.shape) < 2:
        raise ValueError("[istft] Input must have at least two dimensions (freq, frames).")
    one_side = True if onesided is None else onesided
    frequencies, count = matrix.shape[-2:]
    if n_fft is None:
        n_fft = 2 * (frequencies - 1) if one_side else frequencies
    hop = _check_sizes("istft", n_fft, hop_length)
    shape = _window("istft", window, win_length, n_fft, stream)
    turned = ops.swapaxes(matrix, -1, -2, stream=stream)
    if one_side:
        frames = irfft(turned, n_fft, -1, norm, stream)
    else:
        frames = ops.real(ifft(turned, n_fft, -1, norm, stream), stream=stream)
    total = n_fft + hop * (count - 1)
    where = stream if stream is None else as_stream(stream)
    frames = ops.multiply(frames, shape, stream=stream)
    out = record(OVERLAP, (frames._n,), (*frames.shape[:-2], total), dtypes.float32, (n_fft, hop), None, where)
    squares = ops.broadcast_to(ops.square(shape, stream=stream), (count, n_fft), stream=stream)
    envelope = record(OVERLAP, (squares._n,), (total,), dtypes.float32, (n_fft, hop), None, where)
    out = ops.divide(out, ops.maximum(envelope, _LEAST, stream=stream), stream=stream)
    first, last = (n_fft // 2, total - n_fft // 2) if center else (0, total)
    if length is not None:
        last = min(total, first + length)
    out = out[..., first : max(first, last)]
    if length is not None and out.shape[-1] < length:
        pads = [(0, 0)] * (len(out.shape) - 1) + [(0, length - out.shape[-1])]
        out = ops.pad(out, pads, stream=stream)
    return out  # type: ignore[no-any-return]
