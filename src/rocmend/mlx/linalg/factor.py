"""Factorisations of matrices: LU, QR, Cholesky, singular values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.array import array, record, record_many
from rocmend.mlx.linalg.checks import COMPLEX, batched, check_matrix, real_of
from rocmend.mlx.primitive import Primitive

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["cholesky", "cholesky_inv", "lu", "lu_factor", "qr", "svd"]


def _run_svd(node: Node, a: torch.Tensor) -> Any:
    if not node.attrs:
        return torch.linalg.svdvals(a)
    return tuple(torch.linalg.svd(a, full_matrices=True))


def _run_cholesky(node: Node, a: torch.Tensor) -> torch.Tensor:
    # Without a check: that would wait for the device. What is not positive definite has no defined result.
    return torch.linalg.cholesky_ex(a, upper=node.attrs)[0]  # type: ignore[no-any-return]


def _run_lu(_: Node, a: torch.Tensor) -> Any:
    packed, pivots, _ = torch.linalg.lu_factor_ex(a)
    order, lower, upper = torch.lu_unpack(packed, pivots)
    # a = P L U: row i of a is row `order[i]` of L U.
    return order.argmax(-1).to(torch.int32), lower, upper


def _run_lu_factor(_: Node, a: torch.Tensor) -> Any:
    packed, pivots, _ = torch.linalg.lu_factor_ex(a)
    return packed, pivots - 1


SVD = Primitive("SVD", _run_svd, outputs=3)
SINGULAR = Primitive("SingularValues", _run_svd)
QR = Primitive("QRF", lambda _, a: tuple(torch.linalg.qr(a)), outputs=2)
CHOLESKY = Primitive("Cholesky", _run_cholesky)
CHOLESKY_INV = Primitive("CholeskyInverse", lambda node, a: torch.cholesky_inverse(a, upper=node.attrs))
LU = Primitive("LU", _run_lu, outputs=3)
LU_FACTOR = Primitive("LUF", _run_lu_factor, outputs=2)
for _each in (SVD, SINGULAR, QR, CHOLESKY, CHOLESKY_INV, LU, LU_FACTOR):
    batched(_each)


def qr(a: array, *, stream: Any = None) -> tuple[array, array]:
    """Factorise matrices into one with orthonormal columns and an upper triangular one: ``a = Q R``.

    Args:
        a: ``[..., m, n]``, float32 or float64.
        stream: where it is computed.

    Returns:
        Q ``[..., m, k]`` and R ``[..., k, n]``, k the smaller of m and n.

    Raises:
        ValueError: another type, or fewer than two axes.
    """
    a = to_array(a)
    check_matrix("qr", a)
    *batch, m, n = a.shape
    k = min(m, n)
    outputs = [((*batch, m, k), a.dtype), ((*batch, k, n), a.dtype)]
    q, r = record_many(QR, (a._n,), outputs, None, None, as_stream(stream))
    return q, r


def svd(a: array, compute_uv: bool = True, *, stream: Any = None) -> Any:
    """Decompose matrices into singular vectors and values: ``a = U diag(S) Vt``.

    Args:
        a: ``[..., m, n]``, float32, float64 or complex64.
        compute_uv: whether the vectors are wanted.
        stream: where it is computed.

    Returns:
        U ``[..., m, m]``, S ``[..., k]`` downwards, k the smaller of m and n, and Vt ``[..., n, n]``; or S alone.

    Raises:
        ValueError: another type, or fewer than two axes.
    """
    a = to_array(a)
    check_matrix("svd", a, COMPLEX)
    *batch, m, n = a.shape
    values = ((*batch, min(m, n)), real_of(a.dtype))
    if not compute_uv:
        return record(SINGULAR, (a._n,), *values, False, None, as_stream(stream))
    outputs = [((*batch, m, m), a.dtype), values, ((*batch, n, n), a.dtype)]
    return record_many(SVD, (a._n,), outputs, True, None, as_stream(stream))


def cholesky(a: array, upper: bool = False, *, stream: Any = None) -> array:
    """Return the Cholesky factor of symmetric positive definite matrices: ``a = L Lᵀ``.

    Args:
        a: ``[..., n, n]``, float32 or float64.
        upper: return ``Lᵀ``.
        stream: where it is computed.

    Returns:
        ``[..., n, n]``, triangular.

    Raises:
        ValueError: another type, fewer than two axes, or not square.
    """
    a = to_array(a)
    check_matrix("cholesky", a, square=True)
    return record(CHOLESKY, (a._n,), a.shape, a.dtype, bool(upper), None, as_stream(stream))


def cholesky_inv(a: array, upper: bool = False, *, stream: Any = None) -> array:
    """Return the inverse of the matrices that Cholesky factors belong to: ``(L Lᵀ)⁻¹``.

    Args:
        a: ``[..., n, n]``, the factors, float32 or float64.
        upper: the factors are upper triangular.
        stream: where it is computed.

    Returns:
        ``[..., n, n]``.

    Raises:
        ValueError: another type, fewer than two axes, or not square.
    """
    a = to_array(a)
    check_matrix("cholesky_inv", a, square=True)
    return record(CHOLESKY_INV, (a._n,), a.shape, a.dtype, bool(upper), None, as_stream(stream))


def lu(a: array, *, stream: Any = None) -> tuple[array, array, array]:
    """Factorise matrices by elimination with pivots: ``a = L[P, :] U``.

    Args:
        a: ``[..., m, n]``, float32 or float64.
        stream: where it is computed.

    Returns:
        P ``[..., m]`` uint32, L ``[..., m, k]`` lower triangular with ones on the diagonal, U ``[..., k, n]`` upper
        triangular, k the smaller of m and n.

    Raises:
        ValueError: another type, or fewer than two axes.
    """
    a = to_array(a)
    check_matrix("lu", a)
    *batch, m, n = a.shape
    k = min(m, n)
    outputs = [((*batch, m), dtypes.uint32), ((*batch, m, k), a.dtype), ((*batch, k, n), a.dtype)]
    p, lower, upper = record_many(LU, (a._n,), outputs, None, None, as_stream(stream))
    return p, lower, upper


def lu_factor(a: array, *, stream: Any = None) -> tuple[array, array]:
    """Factorise matrices by elimination with pivots, both factors in one matrix.

    Args:
        a: ``[..., m, n]``, float32 or float64.
        stream: where it is computed.

    Returns:
        ``[..., m, n]``: U, and L below the diagonal without its ones; and ``[..., k]`` uint32: with which row each row
        was exchanged, k the smaller of m and n.

    Raises:
        ValueError: another type, or fewer than two axes.
    """
    a = to_array(a)
    check_matrix("lu_factor", a)
    *batch, m, n = a.shape
    outputs = [(a.shape, a.dtype), ((*batch, min(m, n)), dtypes.uint32)]
    packed, pivots = record_many(LU_FACTOR, (a._n,), outputs, None, None, as_stream(stream))
    return packed, pivots
