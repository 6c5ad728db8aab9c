"""The transforms. A real one of n elements has ``n // 2 + 1`` frequencies along its last axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import AxisError, as_stream, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = [
    "fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip

_RUN = {"fft": torch.fft.fftn, "ifft": torch.fft.ifftn, "rfft": torch.fft.rfftn, "irfft": torch.fft.irfftn}
_NORMS = ("backward", "ortho", "forward")
Axes = Sequence[int] | None


def _run(node: Node, x: torch.Tensor) -> torch.Tensor:
    kind, sizes, axes, norm = node.attrs
    if 0 in node.shape:
        return torch.empty(node.shape, dtype=node.dtype.storage, device=x.device)
    run: Any = _RUN[kind]
    out: torch.Tensor = run(x, sizes, axes, norm)
    return out


FFT = Primitive("FFT", _run)


def transformed(kind: str, a: Any, s: Sequence[int] | None, axes: Axes, norm: str, stream: Any) -> array:
    """Check and record a transform.

    Raises:
        ValueError: sizes, axes or a norm that do not fit.
        IndexError: there is no such axis.
    """
    a = to_array(a)
    ndim = len(a.shape)
    if norm not in _NORMS:
        raise ValueError(f"[fft] Invalid norm {norm!r}. Expected one of {', '.join(_NORMS)}.")
    if axes is None and s is not None:
        raise ValueError("[fftn] `axes` should not be `None` if `s` is not `None`.")
    if not ndim:
        raise ValueError("[fftn] Requires array with at least one dimension.")
    given = tuple(range(ndim)) if axes is None else tuple(axes)
    for axis in given:
        if not -ndim <= axis < ndim:
            raise AxisError(f"[fftn] Invalid axis {axis} for array with {ndim} dimensions.")
    found = tuple(axis % ndim for axis in given)
    if len(set(found)) != len(found):
        raise ValueError(f"[fftn] Duplicated axis received {given}.")
    if s is not None and len(s) != len(found):
        raise ValueError(f"[fftn] Shape and axes have different sizes: {len(s)} and {len(found)}.")
    if not found:
        return a  # type: ignore[no-any-return]
    sizes = [a.shape[axis] for axis in found] if s is None else [int(size) for size in s]
    if s is None and kind == "irfft":
        sizes[-1] = 2 * (sizes[-1] - 1)
    for size in sizes:
        if size <= 0:
            raise ValueError(f"[fftn] Invalid FFT output size requested ({size}).")
    shape = list(a.shape)
    for axis, size in zip(found, sizes, strict=True):
        shape[axis] = size
    if kind == "rfft":
        shape[found[-1]] = sizes[-1] // 2 + 1
    a = ops.astype(a, dtypes.float32 if kind == "rfft" else dtypes.complex64, stream=stream)
    made = dtypes.float32 if kind == "irfft" else dtypes.complex64
    where = stream if stream is None else as_stream(stream)
    return record(FFT, (a._n,), tuple(shape), made, (kind, tuple(sizes), found, norm), None, where)


@FFT.rule("jvp")
def _jvp(node: Node, _: Any, tangents: Any, __: array) -> array:
    return record(FFT, (tangents[0]._n,), node.shape, node.dtype, node.attrs, None, node.stream)


@FFT.rule("vmap")
def _vmap(node: Node, arrays: Any, axes: Any) -> Any:
    kind, sizes, along, norm = node.attrs
    x = ops.moveaxis(arrays[0], axes[0], 0, stream=node.stream)
    attrs = (kind, sizes, tuple(axis + 1 for axis in along), norm)
    return record(FFT, (x._n,), (x.shape[0], *node.shape), node.dtype, attrs, None, node.stream), 0


def _one(kind: str, a: Any, n: int | None, axis: int, norm: str, stream: Any) -> array:
    if not -len(a.shape) <= axis < len(a.shape):
        raise AxisError(f"[{kind}] Invalid axis {axis} for array with {len(a.shape)} dimensions.")
    return transformed(kind, a, None if n is None else (n,), (axis,), norm, stream)


def fft(a: array, n: int | None = None, axis: int = -1, norm: str = "backward", stream: Any = None) -> array:
    """Transform along an axis: ``out[k] = Σ_t a[t] · exp(-2πi k t / n)``.

    Args:
        a: any shape.
        n: how many elements are transformed: more are cut off, zeros are added; None for all.
        axis: along which.
        norm: ``backward``: no factor; ``ortho``: ``1 / sqrt(n)``; ``forward``: ``1 / n``.
        stream: where it is computed.

    Returns:
        complex64, with n elements along the axis.

    Raises:
        ValueError: n is not positive, or another norm.
        IndexError: there is no such axis.
    """
    return _one("fft", to_array(a), n, axis, norm, stream)


def ifft(a: array, n: int | None = None, axis: int = -1, norm: str = "backward", stream: Any = None) -> array:
    """Transform back along an axis: ``out[t] = 1/n · Σ_k a[k] · exp(2πi k t / n)``.

    Args:
        a: any shape.
        n: as for ``fft``.
        axis: along which.
        norm: ``backward``: ``1 / n``; ``ortho``: ``1 / sqrt(n)``; ``forward``: no factor.
        stream: where it is computed.

    Returns:
        complex64, with n elements along the axis.

    Raises:
        ValueError: n is not positive, or another norm.
        IndexError: there is no such axis.
    """
    return _one("ifft", to_array(a), n, axis, norm, stream)


def rfft(a: array, n: int | None = None, axis: int = -1, norm: str = "backward", stream: Any = None) -> array:
    """Transform real numbers along an axis; of frequencies only those that are not negative are returned.

    Args:
        a: any shape, real.
        n: as for ``fft``.
        axis: along which.
        norm: as for ``fft``.
        stream: where it is computed.

    Returns:
        complex64, with ``n // 2 + 1`` elements along the axis.

    Raises:
        ValueError: n is not positive, or another norm.
        IndexError: there is no such axis.
    """
    return _one("rfft", to_array(a), n, axis, norm, stream)


def irfft(a: array, n: int | None = None, axis: int = -1, norm: str = "backward", stream: Any = None) -> array:
    """Transform back to real numbers along an axis: the inverse of ``rfft``.

    Args:
        a: any shape.
        n: elements of the result; None for ``2 (size - 1)``.
        axis: along which.
        norm: as for ``ifft``.
        stream: where it is computed.

    Returns:
        float32, with n elements along the axis.

    Raises:
        ValueError: n is not positive, or another norm.
        IndexError: there is no such axis.
    """
    return _one("irfft", to_array(a), n, axis, norm, stream)


def fftn(
    a: array, s: Sequence[int] | None = None, axes: Axes = None, norm: str = "backward", stream: Any = None
) -> array:
    """Transform along several axes.

    Args:
        a: any shape of at least one axis.
        s: how many elements are transformed along each; None for all.
        axes: along which; None for all.
        norm: as for ``fft``.
        stream: where it is computed.

    Returns:
        complex64.

    Raises:
        ValueError: sizes, axes or a norm that do not fit.
        IndexError: there is no such axis.
    """
    return transformed("fft", a, s, axes, norm, stream)


def ifftn(
    a: array, s: Sequence[int] | None = None, axes: Axes = None, norm: str = "backward", stream: Any = None
) -> array:
    """Transform back along several axes; see ``fftn``.

    Args:
        a: any shape of at least one axis.
        s: how many elements are transformed along each; None for all.
        axes: along which; None for all.
        norm: as for ``ifft``.
        stream: where it is computed.

    Returns:
        complex64.

    Raises:
        ValueError: sizes, axes or a norm that do not fit.
        IndexError: there is no such axis.
    """
    return transformed("ifft", a, s, axes, norm, stream)


def rfftn(
    a: array, s: Sequence[int] | None = None, axes: Axes = None, norm: str = "backward", stream: Any = None
) -> array:
    """Transform real numbers along several axes; the last one has ``n // 2 + 1`` frequencies.

    Args:
        a: any shape of at least one axis, real.
        s: how many elements are transformed along each; None for all.
        axes: along which; None for all.
        norm: as for ``fft``.
        stream: where it is computed.

    Returns:
        complex64.

    Raises:
        ValueError: sizes, axes or a norm that do not fit.
        IndexError: there is no such axis.
    """
    return transformed("rfft", a, s, axes, norm, stream)


def irfftn(
    a: array, s: Sequence[int] | None = None, axes: Axes = None, norm: str = "backward", stream: Any = None
) -> array:
    """Transform back to real numbers along several axes: the inverse of ``rfftn``.

    Args:
        a: any shape of at least one axis.
        s: elements of the result along each; None for all, and ``2 (size - 1)`` along the last.
        axes: along which; None for all.
        norm: as for ``ifft``.
        stream: where it is computed.

    Returns:
        float32.

    Raises:
        ValueError: sizes, axes or a norm that do not fit.
        IndexError: there is no such axis.
    """
    return transformed("irfft", a, s, axes, norm, stream)


def fft2(
    a: array, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str = "backward", stream: Any = None
) -> array:
    """Transform along two axes; see ``fftn``."""
    return transformed("fft", a, s, axes, norm, stream)


def ifft2(
    a: array, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str = "backward", stream: Any = None
) -> array:
    """Transform back along two axes; see ``ifftn``."""
    return transformed("ifft", a, s, axes, norm, stream)


def rfft2(
    a: array, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str = "backward", stream: Any = None
) -> array:
    """Transform real numbers along two axes; see ``rfftn``."""
    return transformed("rfft", a, s, axes, norm, stream)


def irfft2(
    a: array, s: Sequence[int] | None = None, axes: Axes = (-2, -1), norm: str = "backward", stream: Any = None
) -> array:
    """Transform back to real numbers along two axes; see ``irfftn``."""
    return transformed("irfft", a, s, axes, norm, stream)
