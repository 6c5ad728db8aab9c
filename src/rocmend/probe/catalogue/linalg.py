"""Linear algebra."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("linalg", tags=("rocsolver", "hipsolver", "magma"), allowance="library")

DTYPES = ("float32", "float64")


def positive(ctx: Context, size: int) -> torch.Tensor:
    """Return a batch of well-conditioned symmetric positive definite matrices."""
    half = ctx.randn(3, size, size)
    return half @ half.transpose(1, 2) / size + torch.eye(size, dtype=ctx.dtype)


@family.probe("cholesky", "Cholesky factors", DTYPES)
def cholesky(ctx: Context) -> Case:
    return Case(torch.linalg.cholesky, (positive(ctx, 33),))


@family.probe("solve", "linear systems, the inverse and the determinant", DTYPES)
def solve(ctx: Context) -> Case:
    return Case(
        lambda a, b: [torch.linalg.solve(a, b), torch.linalg.inv(a), torch.linalg.slogdet(a).logabsdet],
        (positive(ctx, 33), ctx.randn(3, 33, 5)),
        loosen=5,
    )


@family.probe("solve-triangular", "triangular systems", DTYPES)
def solve_triangular(ctx: Context) -> Case:
    lower = ctx.randn(33, 33).tril() / 33 + torch.eye(33, dtype=ctx.dtype)
    return Case(lambda a, b: torch.linalg.solve_triangular(a, b, upper=False), (lower, ctx.randn(33, 5)))


@family.probe("svd", "singular values, and the matrix put together again", DTYPES)
def svd(ctx: Context) -> Case:
    def decompose(x: torch.Tensor) -> list[torch.Tensor]:
        u, s, vh = torch.linalg.svd(x, full_matrices=False)
        return [s, u @ torch.diag_embed(s) @ vh]

    return Case(decompose, (ctx.randn(2, 33, 17),), reference=lambda x: [torch.linalg.svdvals(x), x], loosen=5)


@family.probe("qr", "an orthogonal factor, and the matrix put together again", DTYPES)
def qr(ctx: Context) -> Case:
    def decompose(x: torch.Tensor) -> list[torch.Tensor]:
        q, r = torch.linalg.qr(x)
        return [q.transpose(-1, -2) @ q, q @ r, r.tril(-1)]

    def reference(x: torch.Tensor) -> list[torch.Tensor]:
        eye = torch.eye(x.shape[-1], dtype=x.dtype).expand(x.shape[0], -1, -1)
        return [eye, x, torch.zeros_like(eye)]

    return Case(decompose, (ctx.randn(2, 33, 17),), reference=reference, loosen=5)


@family.probe("eigh", "eigenvalues of symmetric matrices, and the matrix put together again", DTYPES)
def eigh(ctx: Context) -> Case:
    def decompose(x: torch.Tensor) -> list[torch.Tensor]:
        values, vectors = torch.linalg.eigh(x)
        return [values, vectors @ torch.diag_embed(values) @ vectors.transpose(-1, -2)]

    return Case(decompose, (positive(ctx, 24),), reference=lambda x: [torch.linalg.eigvalsh(x), x], loosen=5)
