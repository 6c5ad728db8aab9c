"""What choices depend on."""

from __future__ import annotations

from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.moe.gather_qmm import Problem
from rocmend.kernels.ops.moe.gather_qmm.arguments import Arguments


def problem_of(a: Arguments) -> Problem:
    """Return the problem that choices depend on."""
    m, k = a.x.shape[-2:]
    sizes = a.pairs.count, m, a.n, k, a.experts
    return Problem(NAMES[a.dtype], *a.form, a.transpose, a.up is not None, *sizes, a.pairs.lhs is not None)
