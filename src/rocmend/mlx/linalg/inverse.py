"""Inverses, systems of equations and determinants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import as_stream, broadcast_shapes, shape_text, to_array
from rocmend.mlx.array import array, record, record_many
from rocmend.mlx.dtypes import promote
from rocmend.mlx.linalg.checks import REAL, batched, check_matrix
from rocmend.mlx.ops.products import matmul, sum_to
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["det", "inv", "pinv", "slogdet", "solve", "solve_triangular", "tri_inv"]


def _run_inv(_: Node, a: torch.Tensor) -> torch.Tensor:
    # A GPU is not waited for: there a singular matrix gives what it gives.
    return torch.linalg.inv_ex(a)[0] if a.is_cuda else torch.linalg.inv(a)  # type: ignore[no-any-return]


def _run_tri_inv(node: Node, a: torch.Tensor) -> torch.Tensor:
    identity = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device).expand(a.shape)
    return torch.linalg.solve_triangular(a, identity, upper=node.attrs)  # type: ignore[no-any-return]


def _run_solve(node: Node, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    # Without this torch takes a matrix for a batch of vectors where the shapes allow it.
    b = b.expand(*node.shape[:-2], *b.shape[-2:])
    return torch.linalg.solve_ex(a, b)[0] if a.is_cuda else torch.linalg.solve(a, b)  # type: ignore[no-any-return]


def _run_solve_triangular(node: Node, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.linalg.solve_triangular(a, b, upper=node.attrs)  # type: ignore[no-any-return]


def _run_pinv(_: Node, a: torch.Tensor) -> torch.Tensor:
    least = 10.0 * max(a.shape[-2:]) * torch.finfo(a.dtype).eps
    return torch.linalg.pinv(a, rtol=least)  # type: ignore[no-any-return]


INV = Primitive("Inverse", _run_inv)
TRI_INV = Primitive("TriangularInverse", _run_tri_inv)
PINV = Primitive("PseudoInverse", _run_pinv)
SOLVE = Primitive("Solve", _run_solve)
SOLVE_TRIANGULAR = Primitive("SolveTriangular", _run_solve_triangular)
DET = Primitive("Determinant", lambda _, a: torch.linalg.det(a))
SLOGDET = Primitive("LogDeterminant", lambda _, a: tuple(torch.linalg.slogdet(a)), outputs=2)
for _each in (INV, TRI_INV, PINV, DET, SLOGDET):
    batched(_each)


def inv(a: array, *, stream: Any = None) -> array:
    """Invert square matrices.

    Args:
        a: ``[..., n, n]``, float32 or float64.
        stream: where it is computed.

    Returns:
        ``[..., n, n]``.

    Raises:
        ValueError: another type, fewer than two axes, or not square.
        RuntimeError: when it is computed on the CPU: a matrix has no inverse.
    """
    a = to_array(a)
    check_matrix("inv", a, square=True)
    return record(INV, (a._n,), a.shape, a.dtype, None, None, as_stream(stream))


def tri_inv(a: array, upper: bool = False, *, stream: Any = None) -> array:
    """Invert triangular matrices.

    Args:
        a: ``[..., n, n]``, float32 or float64; the other triangle is not read.
        upper: they are upper triangular.
        stream: where it is computed.

    Returns:
        ``[..., n, n]``, triangular.

    Raises:
        ValueError: another type, fewer than two axes, or not square.
    """
    a = to_array(a)
    check_matrix("tri_inv", a, square=True)
    return record(TRI_INV, (a._n,), a.shape, a.dtype, bool(upper), None, as_stream(stream))


def pinv(a: array, *, stream: Any = None) -> array:
    """Return Moore and Penrose's pseudo-inverse; singular values under ``10 · max(m, n) · ε`` of the largest are 0.

    Args:
        a: ``[..., m, n]``, float32 or float64.
        stream: where it is computed.

    Returns:
        ``[..., n, m]``.

    Raises:
        ValueError: another type, or fewer than two axes.
    """
    a = to_array(a)
    check_matrix("pinv", a)
    *batch, m, n = a.shape
    return record(PINV, (a._n,), (*batch, n, m), a.dtype, None, None, as_stream(stream))


def _system(op: str, a: array, b: array, stream: Any) -> tuple[array, array, bool]:
    """Check a system of equations; a vector becomes a column."""
    a, b = to_array(a), to_array(b)
    if len(a.shape) < 2:
        raise ValueError(
            f"[linalg::{op}] First input must have >= 2 dimensions. Received array with {len(a.shape)} dimensions."
        )
    if not b.shape:
        raise ValueError(f"[linalg::{op}] Second input must have >= 1 dimensions. Received array with 0 dimensions.")
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(
            f"[linalg::{op}] First input must be a square matrix. Received array with shape {shape_text(a.shape)}."
        )
    rows = b.shape[0] if len(b.shape) == 1 else b.shape[-2]
    if a.shape[-1] != rows:
        raise ValueError(
            f"[linalg::{op}] Last dimension of first input with shape {shape_text(a.shape)} must match second to last "
            f"dimension of second input with shape {shape_text(b.shape)}."
        )
    dtype = promote(a.dtype, b.dtype)
    if dtype not in REAL:
        raise ValueError(
            f"[linalg::{op}] Input arrays must promote to float32 or float64. Received arrays with type {a.dtype} and "
            f"{b.dtype}."
        )
    vector = len(b.shape) == 1
    if vector:
        b = ops.expand_dims(b, -1, stream=stream)
    return ops.astype(a, dtype, stream=stream), ops.astype(b, dtype, stream=stream), vector


def solve(a: array, b: array, *, stream: Any = None) -> array:
    """Solve systems of linear equations, ``a x = b``.

    Args:
        a: ``[..., n, n]``.
        b: ``[..., n, k]``, or one vector ``[n]``. Leading axes are broadcast. Both promote to float32 or float64.
        stream: where it is computed.

    Returns:
        ``[..., n, k]``, without the last axis for a vector.

    Raises:
        ValueError: shapes or types that do not fit.
        RuntimeError: when it is computed on the CPU: there is no single solution.
    """
    a, b, vector = _system("solve", a, b, stream)
    shape = (*broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])
    out = record(SOLVE, (a._n, b._n), shape, a.dtype, None, None, as_stream(stream))
    return ops.squeeze(out, -1, stream=stream) if vector else out


def solve_triangular(a: array, b: array, *, upper: bool = False, stream: Any = None) -> array:
    """Solve triangular systems of linear equations, ``a x = b``.

    Args:
        a: ``[..., n, n]``; the other triangle is not read.
        b: ``[..., n, k]``, or one vector ``[n]``. Leading axes are broadcast. Both promote to float32 or float64.
        upper: a is upper triangular.
        stream: where it is computed.

    Returns:
        ``[..., n, k]``, without the last axis for a vector.

    Raises:
        ValueError: shapes or types that do not fit.
    """
    a, b, vector = _system("solve_triangular", a, b, stream)
    shape = (*broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])
    out = record(SOLVE_TRIANGULAR, (a._n, b._n), shape, a.dtype, bool(upper), None, as_stream(stream))
    return ops.squeeze(out, -1, stream=stream) if vector else out


@SOLVE.rule("vjp")
def _solve_vjp(node: Node, primals: Any, output: array, cotangent: array) -> Any:
    s = node.stream
    a, b = primals
    of_b = solve(ops.swapaxes(a, -1, -2, stream=s), cotangent, stream=s)
    of_a = ops.negative(matmul(of_b, ops.swapaxes(output, -1, -2, stream=s), stream=s), stream=s)
    return sum_to(of_a, a.shape, s), sum_to(of_b, b.shape, s)


@INV.rule("vjp")
def _inv_vjp(node: Node, _: Any, output: array, cotangent: array) -> Any:
    s = node.stream
    turned = ops.swapaxes(output, -1, -2, stream=s)
    return (ops.negative(matmul(matmul(turned, cotangent, stream=s), turned, stream=s), stream=s),)


def _for_det(op: str, a: array, stream: Any) -> array:
    a = to_array(a)
    if a.dtype.is_complex:
        raise ValueError(f"[linalg::{op}] Complex inputs are not supported.")
    if not a.dtype.is_inexact:
        a = ops.astype(a, dtypes.float32, stream=stream)
    check_matrix(op, a, square=True)
    return a


def det(a: array, *, stream: Any = None) -> array:
    """Return the determinants of square matrices.

    Args:
        a: ``[..., n, n]``, float32 or float64; integers become float32.
        stream: where it is computed.

    Returns:
        ``[...]``.

    Raises:
        ValueError: another type, fewer than two axes, or not square.
    """
    a = _for_det("det", a, stream)
    return record(DET, (a._n,), a.shape[:-2], a.dtype, None, None, as_stream(stream))


def slogdet(a: array, *, stream: Any = None) -> tuple[array, array]:
    """Return the signs of determinants and the logarithms of their absolute values.

    Args:
        a: ``[..., n, n]``, float32 or float64; integers become float32.
        stream: where it is computed.

    Returns:
        Signs, -1, 0 or 1, and logarithms, -inf for a singular matrix: ``[...]`` each.

    Raises:
        ValueError: another type, fewer than two axes, or not square.
    """
    a = _for_det("slogdet", a, stream)
    outputs = [(a.shape[:-2], a.dtype)] * 2
    sign, logarithm = record_many(SLOGDET, (a._n,), outputs, None, None, as_stream(stream))
    return sign, logarithm
