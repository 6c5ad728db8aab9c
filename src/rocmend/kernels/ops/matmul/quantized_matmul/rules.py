"""Which kernel computes a product: what each takes, and where another kernel is faster. Imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocmend.kernels import backends
from rocmend.kernels.common.floats import BYTES, rejects_dtype
from rocmend.kernels.op import first_reason
from rocmend.kernels.target import Target

if TYPE_CHECKING:
    from rocmend.kernels.ops.matmul.quantized_matmul import Problem

FEWEST = 4
"""Rows of x for which a product without matrix instructions takes them one by one."""
FEW = 16
"""Rows of x that a group's product is padded to."""
TILE = 16
"""Rows of weights of a program of kernels that keep operands in lanes."""
MOST_DEPTH = 1 << 15
"""Elements of x that lanes of ``gemv`` hold at most, without spills."""
WORKSPACE_BYTES = 1 << 30
"""Most memory that dequantized weights may take for the time of a product."""
CROSSOVER = 160
"""Rows of x from which dequantizing all weights first is faster: on an H200, 4 bits, 14336 by 4096, 128 rows take 62 µs
fused, 75 apart; 192 take 115 and 77."""
SLOW_CROSSOVER = 33
"""The same where tiles gather or convert code by code: there 32 rows of 3 bits take 200 µs in tiles, of mxfp4 95."""
_WAVE64 = 64
_FEWEST_BITS = 2
_WHOLE_BITS = (2, 4, 8)
"""Bits of codes that do not straddle words."""


def _has_matrix_unit(target: Target) -> tuple[bool, str]:
    return bool(target.matrix_dtypes), f"{target.name} has no matrix instructions: padding rows to {FEW} costs more"


def rejects_dequantized(problem: Problem, target: Target) -> str | None:
    """Say why the weights are not dequantized for the vendor's matrix product."""
    size = problem.batch * problem.columns * problem.depth * BYTES.get(problem.dtype, 8)
    return rejects_dtype(problem, target) or first_reason(
        (target.vendor != "cpu", "the weights are dequantized by a Triton kernel"),
        (size <= WORKSPACE_BYTES, f"dequantized weights take {size >> 20} MiB, more than {WORKSPACE_BYTES >> 20}"),
        (
            _many_rows(problem, target),
            f"with few rows of x ({problem.rows}), unpacking the weights inside the product is faster",
        ),
    )


def _many_rows(problem: Problem, target: Target) -> bool:
    """Return whether the weights are worth dequantizing once: that is little work against the product."""
    if problem.dtype == "float32":
        return problem.rows >= 32
    beaten = backends.beats_vendor("quantized_matmul", problem, target)
    if beaten is not None:
        return not beaten
    slow = target.vendor == "nvidia" and (problem.mode != "affine" or 32 % problem.bits != 0)
    return problem.rows >= (SLOW_CROSSOVER if slow else CROSSOVER)


def rejects_transposed(problem: Problem, target: Target) -> str | None:
    """Say why a kernel for transposed weights does not take a problem."""
    return rejects_dtype(problem, target) or first_reason((problem.transpose, "the weights are not transposed"))


def rejects_columns(problem: Problem, target: Target) -> str | None:
    """Say why ``columns`` does not take a problem."""
    return rejects_dtype(problem, target) or first_reason((not problem.transpose, "the weights are transposed"))


def rejects_lanes(problem: Problem, target: Target) -> str | None:
    """Say why ``lanes`` does not take a problem."""
    return rejects_transposed(problem, target) or first_reason(
        (problem.dtype != "float32", "the matrix unit takes float16 and bfloat16, not float32")
    )


def avoid_lanes(problem: Problem, target: Target) -> str | None:
    """Say why another kernel than ``lanes`` is faster."""
    # With codes that straddle words or stand for floats, tiles (which gather or convert code by code) take over later.
    most = FEW if problem.mode == "affine" and 32 % problem.bits == 0 else 2 * FEW
    return first_reason(
        (backends.MEASURED, "only Triton 3.6 lays weights out in lanes as it needs them"),
        _has_matrix_unit(target),
        (problem.rows <= most, f"with {problem.rows} rows of x, more than {most}, tiles are faster"),
        # H200, 4096 against 14336 rows: 4 bits 14.6 µs for 14.5, 8 bits 18.6 for 21.0; 2 bits 14.8 for 13.7. With
        # groups of 32 lanes spend more on scales than on codes: 4 bits 15.1 for 19.9, 8 bits 20.0 for 32.1.
        (
            problem.bits == _FEWEST_BITS or rejects_gemv(problem, target) is not None,
            "gemv computes one row of x in less time",
        ),
    )


def rejects_gemv(problem: Problem, target: Target) -> str | None:
    """Say why ``gemv`` does not take a problem."""
    return rejects_transposed(problem, target) or rejects_row(problem.mode, problem.bits, problem.rows, problem.depth)


def rejects_row(mode: str, bits: int, rows: int, depth: int) -> str | None:
    """Say why ``gemv`` does not take products of a row with weights of a format."""
    return first_reason(
        (rows == 1, f"it takes one row of x, not {rows}"),
        (mode == "affine" and bits in _WHOLE_BITS, f"it takes affine codes of 2, 4 or 8 bits, not {mode} {bits}"),
        (0 < depth <= MOST_DEPTH, f"it takes up to {MOST_DEPTH} elements of x, not {depth}"),
    )


def rejects_groups(problem: Problem, target: Target) -> str | None:
    """Say why ``groups`` does not take a problem."""
    return rejects_lanes(problem, target) or first_reason(
        (
            problem.mode == "affine" and problem.bits in _WHOLE_BITS,
            f"it takes affine codes of 2, 4 or 8 bits, not {problem.mode} {problem.bits}",
        ),
    )


def rejects_kept(problem: Problem, target: Target) -> str | None:
    """Say why ``kept`` does not take a problem."""
    return rejects_groups(problem, target) or first_reason(
        (
            target.vendor != "amd" or target.wave_size == _WAVE64,
            "it needs wavefronts of 64 lanes: with 32, Triton 3.6 stops with an assertion",
        ),
    )


def avoid_groups(problem: Problem, target: Target) -> str | None:
    """Say why tiles, or rows one by one, are faster than ``groups`` or ``kept``."""
    return first_reason(
        _has_matrix_unit(target),
        (problem.rows <= FEW, f"with {problem.rows} rows of x, more than {FEW}, tiles are faster"),
    )


def avoid_rows(problem: Problem, target: Target) -> str | None:
    """Say why tiles are faster than rows one by one."""
    matrix = problem.dtype != "float32" and bool(target.matrix_dtypes)
    return first_reason(
        (problem.rows <= FEWEST, f"with {problem.rows} rows of x, more than {FEWEST}, tiles are faster"),
        (not matrix or 32 % problem.bits != 0, "tiles for the matrix unit are faster"),
    )
