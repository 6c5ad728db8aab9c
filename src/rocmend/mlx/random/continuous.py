"""Draws of real numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import broadcast_shapes, shape_text, to_array
from rocmend.mlx.array import array
from rocmend.mlx.construct import constant
from rocmend.mlx.random.keys import bits, shape_of
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.dtypes import Dtype

__all__ = ["gumbel", "laplace", "multivariate_normal", "normal", "truncated_normal", "uniform"]

# The largest number below 1 of each type.
_BELOW_ONE = {dtypes.float32: 1 - 2**-24, dtypes.float16: 1 - 2**-11, dtypes.bfloat16: 1 - 2**-8}


def as_dtype(value: Any, dtype: Dtype, stream: Any = None) -> array:
    """Return an argument as an array of a type."""
    if type(value) is array:
        return value if value._n.dtype is dtype else ops.astype(value, dtype, stream=stream)
    if isinstance(value, bool | int | float):
        return constant(float(value), dtype)
    return ops.astype(to_array(value), dtype, stream=stream)  # type: ignore[no-any-return]


def uniform(
    low: Any = 0, high: Any = 1, shape: Sequence[int] = (), dtype: Dtype | None = dtypes.float32,
    key: array | None = None, stream: Any = None,
) -> array:  # fmt: skip
    """Draw numbers from ``[low, high)``, all as likely.

    Args:
        low: least number, or an array of them that broadcasts to ``shape``.
        high: the bound, likewise.
        shape: of the result.
        dtype: float32, float16 or bfloat16; None: float32.
        key: ``[2]`` uint32; None: the thread's own.
        stream: where it is computed.

    Returns:
        Numbers of ``shape``.

    Raises:
        ValueError: a type that is no real floating one, or shapes that do not fit.
    """
    dtype = dtypes.float32 if dtype is None else dtype
    if not dtype.is_float:
        raise ValueError("[uniform] Can only generate uniform numbers with real floating point type.")
    if dtype not in _BELOW_ONE:
        raise RuntimeError(f"[uniform] Unsupported type {dtype}: there are float32, float16 and bfloat16.")
    sizes = shape_of(shape)
    low, high = as_dtype(low, dtype, stream), as_dtype(high, dtype, stream)
    bounds = broadcast_shapes(low.shape, high.shape)
    if broadcast_shapes(sizes, bounds) != sizes:
        raise ValueError(
            f"[uniform] Cannot generate random values of shape {shape_text(sizes)} from broadcasted shape "
            f"{shape_text(bounds)}."
        )
    drawn = ops.astype(bits(sizes, 4, key, stream), dtypes.float32, stream=stream)
    unit = ops.multiply(drawn, constant(2.0**-32, dtypes.float32), stream=stream)  # exact, as the division is
    unit = ops.minimum(unit, constant(_BELOW_ONE[dtype], dtypes.float32), stream=stream)
    if dtype is not dtypes.float32:
        unit = ops.astype(unit, dtype, stream=stream)
    span = ops.subtract(high, low, stream=stream)
    return ops.add(ops.multiply(span, unit, stream=stream), low, stream=stream)  # type: ignore[no-any-return]


def normal(
    shape: Sequence[int] = (), dtype: Dtype | None = dtypes.float32, loc: Any = None, scale: Any = None,
    key: array | None = None, stream: Any = None,
) -> array:  # fmt: skip
    """Draw from the normal distribution.

    Args:
        shape: of the result.
        dtype: a floating type or complex64, whose parts have a variance of 1/2; None: float32.
        loc: mean, or an array of them; None: 0.
        scale: standard deviation, or an array of them; None: 1.
        key: ``[2]`` uint32; None: the thread's own.
        stream: where it is computed.

    Returns:
        Numbers of ``shape``, broadcast with ``loc`` and ``scale``.

    Raises:
        ValueError: an integer type, or shapes that do not fit.
    """
    dtype = dtypes.float32 if dtype is None else dtype
    if dtype.is_complex:
        return _complex_normal(shape_of(shape), loc, scale, key, stream)
    if not dtype.is_float:
        raise ValueError("[normal] Only floating point and complex64 types are supported.")
    made = ops.erfinv(uniform(-_BELOW_ONE[dtypes.float32], 1.0, shape, dtypes.float32, key, stream), stream=stream)
    if dtype is not dtypes.float32:
        made = ops.astype(made, dtype, stream=stream)
    factor: Any = constant(math.sqrt(2.0), dtype)
    if scale is not None:
        factor = ops.multiply(factor, as_dtype(scale, dtype, stream), stream=stream)
    made = ops.multiply(factor, made, stream=stream)
    return made if loc is None else ops.add(as_dtype(loc, dtype, stream), made, stream=stream)  # type: ignore[no-any-return]


def _complex_normal(shape: tuple[int, ...], loc: Any, scale: Any, key: array | None, stream: Any) -> array:
    parts = normal((*shape, 2), dtypes.float32, None, math.sqrt(0.5), key, stream)
    made = ops.squeeze(ops.view(parts, dtypes.complex64, stream=stream), -1, stream=stream)
    if scale is not None:
        made = ops.multiply(ops.astype(to_array(scale), dtypes.complex64, stream=stream), made, stream=stream)
    if loc is not None:
        made = ops.add(ops.astype(to_array(loc), dtypes.complex64, stream=stream), made, stream=stream)
    return made  # type: ignore[no-any-return]


def truncated_normal(
    lower: Any, upper: Any, shape: Sequence[int] | None = None, dtype: Dtype | None = dtypes.float32,
    key: array | None = None, stream: Any = None,
) -> array:  # fmt: skip
    """Draw from the standard normal distribution, cut off outside ``(lower, upper)``.

    Args:
        lower: least number, or an array of them that broadcasts to ``shape``.
        upper: largest number, likewise.
        shape: of the result; None: that in which the bounds meet.
        dtype: a real floating type; None: float32.
        key: ``[2]`` uint32; None: the thread's own.
        stream: where it is computed.

    Returns:
        Numbers of ``shape``.

    Raises:
        ValueError: another type, or shapes that do not fit.
    """
    dtype = dtypes.float32 if dtype is None else dtype
    if not dtype.is_float:
        raise ValueError("[truncated_normal] Only real floating point types are supported.")
    low, high = as_dtype(lower, dtype, stream), as_dtype(upper, dtype, stream)
    sizes = broadcast_shapes(low.shape, high.shape) if shape is None else shape_of(shape)
    root = constant(math.sqrt(2.0), dtype)
    a = ops.erf(ops.divide(low, root, stream=stream), stream=stream)
    b = ops.erf(ops.divide(high, root, stream=stream), stream=stream)
    made = ops.multiply(root, ops.erfinv(uniform(a, b, sizes, dtype, key, stream), stream=stream), stream=stream)
    return ops.maximum(ops.minimum(high, made, stream=stream), low, stream=stream)  # type: ignore[no-any-return]


def gumbel(
    shape: Sequence[int] = (), dtype: Dtype | None = dtypes.float32, key: array | None = None, stream: Any = None
) -> array:
    """Draw from the standard Gumbel distribution, ``-log(-log(u))``.

    Args:
        shape: of the result.
        dtype: a real floating type; None: float32.
        key: ``[2]`` uint32; None: the thread's own.
        stream: where it is computed.

    Returns:
        Numbers of ``shape``.

    Raises:
        ValueError: another type.
    """
    inner = ops.negative(ops.log(uniform(0, 1, shape, dtype, key, stream), stream=stream), stream=stream)
    return ops.negative(ops.log(inner, stream=stream), stream=stream)  # type: ignore[no-any-return]


def laplace(
    shape: Sequence[int] = (), dtype: Dtype | None = dtypes.float32, loc: float = 0.0, scale: float = 1.0,
    key: array | None = None, stream: Any = None,
) -> array:  # fmt: skip
    """Draw from the Laplace distribution.

    Args:
        shape: of the result.
        dtype: a real floating type; None: float32.
        loc: mean.
        scale: mean distance from it.
        key: ``[2]`` uint32; None: the thread's own.
        stream: where it is computed.

    Returns:
        Numbers of ``shape``.

    Raises:
        ValueError: another type.
    """
    dtype = dtypes.float32 if dtype is None else dtype
    if not dtype.is_float:
        raise ValueError("[laplace] Only real floating point types are supported.")
    drawn = uniform(-_BELOW_ONE[dtypes.float32], 1.0, shape, dtypes.float32, key, stream)
    size = ops.log1p(ops.negative(ops.abs(drawn, stream=stream), stream=stream), stream=stream)
    made = ops.multiply(ops.sign(drawn, stream=stream), size, stream=stream)
    if dtype is not dtypes.float32:
        made = ops.astype(made, dtype, stream=stream)
    if scale != 1.0:
        made = ops.multiply(constant(scale, dtype), made, stream=stream)
    if loc != 0.0:
        made = ops.add(constant(loc, dtype), made, stream=stream)
    return made  # type: ignore[no-any-return]


def multivariate_normal(
    mean: array, cov: array, shape: Sequence[int] = (), dtype: Dtype | None = dtypes.float32,
    key: array | None = None, stream: Any = None,
) -> array:  # fmt: skip
    """Draw vectors from a normal distribution of many dimensions.

    Args:
        mean: ``[..., n]``.
        cov: ``[..., n, n]``, symmetric, with no negative eigenvalue.
        shape: of the draws; empty: that in which the leading axes of ``mean`` and ``cov`` meet.
        dtype: float32.
        key: ``[2]`` uint32; None: the thread's own.
        stream: where it is computed.

    Returns:
        ``shape + [n]``.

    Raises:
        ValueError: shapes that do not fit, or another type.
    """
    from rocmend.mlx.linalg import svd

    op = "multivariate_normal"
    if dtype not in (None, dtypes.float32):
        raise ValueError(f"[{op}] dtype must be float32, got {dtype}.")
    if len(mean.shape) < 1:
        raise ValueError(f"[{op}] mean must have at least one dimension.")
    if len(cov.shape) < 2:
        raise ValueError(f"[{op}] cov must have at least two dimensions, got {shape_text(cov.shape)}.")
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError(
            f"[{op}] mean and cov must have compatible shapes, got {shape_text(mean.shape)} and "
            f"{shape_text(cov.shape)}."
        )
    batch = broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
    sizes = shape_of(shape) or batch
    if broadcast_shapes(sizes, batch) != sizes:
        raise ValueError(
            f"[{op}] shape {shape_text(sizes)} does not fit mean and cov, which meet in {shape_text(batch)}."
        )
    left, values, right = svd(as_dtype(cov, dtypes.float32, stream), stream=stream)
    root = ops.expand_dims(ops.sqrt(values, stream=stream), -2, stream=stream)
    scaled = ops.matmul(ops.multiply(left, root, stream=stream), right, stream=stream)
    drawn = normal((*sizes, 1, n), dtypes.float32, None, None, key, stream)
    made = ops.squeeze(ops.matmul(drawn, scaled, stream=stream), -2, stream=stream)
    return ops.add(made, ops.astype(mean, dtypes.float32, stream=stream), stream=stream)  # type: ignore[no-any-return]
