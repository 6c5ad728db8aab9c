"""Eigenvalues and eigenvectors."""

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

__all__ = ["eig", "eigh", "eigvals", "eigvalsh"]


def _run_eig(_: Node, a: torch.Tensor) -> Any:
    return tuple(part.to(torch.complex64) for part in torch.linalg.eig(a))


EIG = Primitive("Eig", _run_eig, outputs=2)
EIGVALS = Primitive("Eigvals", lambda _, a: torch.linalg.eigvals(a).to(torch.complex64))
EIGH = Primitive("Eigh", lambda node, a: tuple(torch.linalg.eigh(a, UPLO=node.attrs)), outputs=2)
EIGVALSH = Primitive("Eigvalsh", lambda node, a: torch.linalg.eigvalsh(a, UPLO=node.attrs))
for _each in (EIG, EIGVALS, EIGH, EIGVALSH):
    batched(_each)


def _triangle(op: str, triangle: str) -> str:
    if triangle not in ("L", "U"):
        raise ValueError(f"[linalg::{op}] UPLO must be 'L' or 'U', got {triangle!r}.")
    return triangle


def eigvals(a: array, *, stream: Any = None) -> array:
    """Return the eigenvalues of square matrices, in no particular order.

    Args:
        a: ``[..., n, n]``, float32, float64 or complex64.
        stream: where it is computed.

    Returns:
        ``[..., n]`` complex64.

    Raises:
        ValueError: another type, fewer than two axes, or not square.
    """
    a = to_array(a)
    check_matrix("eigvals", a, COMPLEX, square=True)
    return record(EIGVALS, (a._n,), a.shape[:-1], dtypes.complex64, None, None, as_stream(stream))


def eig(a: array, *, stream: Any = None) -> tuple[array, array]:
    """Return eigenvalues and right eigenvectors of square matrices: ``a v[:, i] = w[i] v[:, i]``.

    Args:
        a: ``[..., n, n]``, float32, float64 or complex64.
        stream: where it is computed.

    Returns:
        w ``[..., n]`` and v ``[..., n, n]``, whose columns have norm 1, complex64.

    Raises:
        ValueError: another type, fewer than two axes, or not square.
    """
    a = to_array(a)
    check_matrix("eig", a, COMPLEX, square=True)
    outputs = [(a.shape[:-1], dtypes.complex64), (a.shape, dtypes.complex64)]
    values, vectors = record_many(EIG, (a._n,), outputs, None, None, as_stream(stream))
    return values, vectors


def eigvalsh(a: array, UPLO: str = "L", *, stream: Any = None) -> array:
    """Return the eigenvalues of symmetric or Hermitian matrices, upwards.

    Args:
        a: ``[..., n, n]``, float32, float64 or complex64.
        UPLO: which triangle is read: ``L``, the lower, or ``U``, the upper.
        stream: where it is computed.

    Returns:
        ``[..., n]`` of a real type.

    Raises:
        ValueError: another type, fewer than two axes, not square, or another triangle.
    """
    a = to_array(a)
    check_matrix("eigvalsh", a, COMPLEX, square=True)
    triangle = _triangle("eigvalsh", UPLO)
    return record(EIGVALSH, (a._n,), a.shape[:-1], real_of(a.dtype), triangle, None, as_stream(stream))


def eigh(a: array, UPLO: str = "L", *, stream: Any = None) -> tuple[array, array]:
    """Return eigenvalues and eigenvectors of symmetric or Hermitian matrices: ``a v[:, i] = w[i] v[:, i]``.

    Args:
        a: ``[..., n, n]``, float32, float64 or complex64.
        UPLO: which triangle is read: ``L``, the lower, or ``U``, the upper.
        stream: where it is computed.

    Returns:
        w ``[..., n]``, upwards, of a real type, and v ``[..., n, n]``, whose columns are orthonormal.

    Raises:
        ValueError: another type, fewer than two axes, not square, or another triangle.
    """
    a = to_array(a)
    check_matrix("eigh", a, COMPLEX, square=True)
    outputs = [(a.shape[:-1], real_of(a.dtype)), (a.shape, a.dtype)]
    values, vectors = record_many(EIGH, (a._n,), outputs, _triangle("eigh", UPLO), None, as_stream(stream))
    return values, vectors
