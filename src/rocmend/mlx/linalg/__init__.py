"""Linear algebra: factorisations, inverses, systems of equations, eigenvalues, norms."""

from __future__ import annotations

from rocmend.mlx.linalg.eigen import eig, eigh, eigvals, eigvalsh
from rocmend.mlx.linalg.factor import cholesky, cholesky_inv, lu, lu_factor, qr, svd
from rocmend.mlx.linalg.inverse import det, inv, pinv, slogdet, solve, solve_triangular, tri_inv
from rocmend.mlx.linalg.norms import cross, norm

__all__ = [
    "cholesky",
    "cholesky_inv",
    "cross",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lu",
    "lu_factor",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "tri_inv",
]
