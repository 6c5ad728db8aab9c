"""The methods of ``array`` that are functions of ``ops`` by their name."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.array import array
    from rocmend.mlx.dtypes import Dtype

__all__ = ["ArrayFunctions"]


class ArrayFunctions:
    """Methods of the names and arguments of the functions they call."""

    __slots__ = ()

    def abs(self, *, stream: Any = None) -> array:
        """See :func:`abs`."""
        return ops.abs(self, stream=stream)

    def square(self, *, stream: Any = None) -> array:
        """See :func:`square`."""
        return ops.square(self, stream=stream)

    def sqrt(self, *, stream: Any = None) -> array:
        """See :func:`sqrt`."""
        return ops.sqrt(self, stream=stream)

    def rsqrt(self, *, stream: Any = None) -> array:
        """See :func:`rsqrt`."""
        return ops.rsqrt(self, stream=stream)

    def reciprocal(self, *, stream: Any = None) -> array:
        """See :func:`reciprocal`."""
        return ops.reciprocal(self, stream=stream)

    def exp(self, *, stream: Any = None) -> array:
        """See :func:`exp`."""
        return ops.exp(self, stream=stream)

    def log(self, *, stream: Any = None) -> array:
        """See :func:`log`."""
        return ops.log(self, stream=stream)

    def log2(self, *, stream: Any = None) -> array:
        """See :func:`log2`."""
        return ops.log2(self, stream=stream)

    def log10(self, *, stream: Any = None) -> array:
        """See :func:`log10`."""
        return ops.log10(self, stream=stream)

    def sin(self, *, stream: Any = None) -> array:
        """See :func:`sin`."""
        return ops.sin(self, stream=stream)

    def cos(self, *, stream: Any = None) -> array:
        """See :func:`cos`."""
        return ops.cos(self, stream=stream)

    def log1p(self, *, stream: Any = None) -> array:
        """See :func:`log1p`."""
        return ops.log1p(self, stream=stream)

    def conj(self, *, stream: Any = None) -> array:
        """See :func:`conj`."""
        return ops.conj(self, stream=stream)

    def all(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, *, stream: Any = None) -> array:
        """See :func:`all`."""
        return ops.all(self, axis, keepdims, stream=stream)

    def any(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, *, stream: Any = None) -> array:
        """See :func:`any`."""
        return ops.any(self, axis, keepdims, stream=stream)

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, *, stream: Any = None) -> array:
        """See :func:`sum`."""
        return ops.sum(self, axis, keepdims, stream=stream)

    def prod(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, *, stream: Any = None) -> array:
        """See :func:`prod`."""
        return ops.prod(self, axis, keepdims, stream=stream)

    def min(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, *, stream: Any = None) -> array:
        """See :func:`min`."""
        return ops.min(self, axis, keepdims, stream=stream)

    def max(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, *, stream: Any = None) -> array:
        """See :func:`max`."""
        return ops.max(self, axis, keepdims, stream=stream)

    def logsumexp(
        self, axis: int | Sequence[int] | None = None, keepdims: bool = False, *, stream: Any = None
    ) -> array:
        """See :func:`logsumexp`."""
        return ops.logsumexp(self, axis, keepdims, stream=stream)

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, *, stream: Any = None) -> array:
        """See :func:`mean`."""
        return ops.mean(self, axis, keepdims, stream=stream)

    def std(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        ddof: int = 0,
        *,
        correction: int | None = None,
        stream: Any = None,
    ) -> array:
        """See :func:`std`; ``correction`` is another name of ``ddof``."""
        return ops.std(self, axis, keepdims, ddof if correction is None else correction, stream=stream)

    def var(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        ddof: int = 0,
        *,
        correction: int | None = None,
        stream: Any = None,
    ) -> array:
        """See :func:`var`; ``correction`` is another name of ``ddof``."""
        return ops.var(self, axis, keepdims, ddof if correction is None else correction, stream=stream)

    def argmin(self, axis: int | None = None, keepdims: bool = False, *, stream: Any = None) -> array:
        """See :func:`argmin`."""
        return ops.argmin(self, axis, keepdims, stream=stream)

    def argmax(self, axis: int | None = None, keepdims: bool = False, *, stream: Any = None) -> array:
        """See :func:`argmax`."""
        return ops.argmax(self, axis, keepdims, stream=stream)

    def cumsum(
        self, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True, stream: Any = None
    ) -> array:
        """See :func:`cumsum`."""
        return ops.cumsum(self, axis, reverse=reverse, inclusive=inclusive, stream=stream)

    def cumprod(
        self, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True, stream: Any = None
    ) -> array:
        """See :func:`cumprod`."""
        return ops.cumprod(self, axis, reverse=reverse, inclusive=inclusive, stream=stream)

    def cummax(
        self, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True, stream: Any = None
    ) -> array:
        """See :func:`cummax`."""
        return ops.cummax(self, axis, reverse=reverse, inclusive=inclusive, stream=stream)

    def cummin(
        self, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True, stream: Any = None
    ) -> array:
        """See :func:`cummin`."""
        return ops.cummin(self, axis, reverse=reverse, inclusive=inclusive, stream=stream)

    def logcumsumexp(
        self, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True, stream: Any = None
    ) -> array:
        """See :func:`logcumsumexp`."""
        return ops.logcumsumexp(self, axis, reverse=reverse, inclusive=inclusive, stream=stream)

    def flatten(self, start_axis: int = 0, end_axis: int = -1, *, stream: Any = None) -> array:
        """See :func:`flatten`."""
        return ops.flatten(self, start_axis, end_axis, stream=stream)

    def reshape(self, *shape: Any, stream: Any = None) -> array:
        """See :func:`reshape`; the sizes may also be given one by one."""
        return ops.reshape(
            self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape, stream=stream
        )

    def transpose(self, *axes: Any, stream: Any = None) -> array:
        """See :func:`transpose`; the axes may also be given one by one."""
        return ops.transpose(
            self, (axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes) or None, stream=stream
        )

    def squeeze(self, axis: int | Sequence[int] | None = None, *, stream: Any = None) -> array:
        """See :func:`squeeze`."""
        return ops.squeeze(self, axis, stream=stream)

    def moveaxis(self, source: int, destination: int, *, stream: Any = None) -> array:
        """See :func:`moveaxis`."""
        return ops.moveaxis(self, source, destination, stream=stream)

    def swapaxes(self, axis1: int, axis2: int, *, stream: Any = None) -> array:
        """See :func:`swapaxes`."""
        return ops.swapaxes(self, axis1, axis2, stream=stream)

    def split(self, indices_or_sections: int | tuple[int, ...], axis: int = 0, *, stream: Any = None) -> list[array]:
        """See :func:`split`."""
        return ops.split(self, indices_or_sections, axis, stream=stream)

    def round(self, decimals: int = 0, *, stream: Any = None) -> array:
        """See :func:`round`."""
        return ops.round(self, decimals, stream)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1, stream: Any = None) -> array:
        """See :func:`diagonal`."""
        return ops.diagonal(self, offset, axis1, axis2, stream)

    def diag(self, k: int = 0, *, stream: Any = None) -> array:
        """See :func:`diag`."""
        return ops.diag(self, k, stream=stream)

    def view(self, dtype: Dtype, *, stream: Any = None) -> array:
        """See :func:`view`."""
        return ops.view(self, dtype, stream)

    def astype(self, dtype: Dtype, stream: Any = None) -> array:
        """See :func:`astype`."""
        return ops.astype(self, dtype, stream=stream)

    @property
    def T(self) -> array:
        """The array with its axes in reverse order."""
        return ops.transpose(self)

    @property
    def mT(self) -> array:
        """The array with its last two axes exchanged."""
        return ops.matrix_transpose(self)

    @property
    def real(self) -> array:
        """The real part."""
        return ops.real(self)

    @property
    def imag(self) -> array:
        """The imaginary part."""
        return ops.imag(self)
