"""Where the GEMM is taken whose left operand comes from registers: 9 rows of x or more. Imports no torch."""

from __future__ import annotations

from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.backends.hopper.quantized_matmul import costs
from rocmend.kernels.op import first_reason
from rocmend.kernels.ops.matmul.quantized_matmul import NAME, Problem, rows_class
from rocmend.kernels.ops.matmul.quantized_matmul.rules import FEW, rejects_lanes
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

LEAST_ROWS = 9
MANY = 1 << 25
"""Weights of 4 bits from which it is taken up to 16 rows: else ``lanes`` is as fast, with one launch."""
CHUNK_BITS = 512
"""Of a row, which lanes take at once."""
FOUR = 4
"""K is a multiple of so many chunks: their scales are read at once, at most."""
ROWS = 128
"""The number of rows of weights is a multiple of these."""
BITS = (4, 8)
HALF_TILE = 128
"""Rows of x that are half of a tile of many."""
MOST_SPLITS = 8
LEAST_STEPS = 2
"""Of a part of K. Triton makes a constant of a number that is 1, and its compiler fails at the loop without turns."""
UNITS = 132
"""Compute units of an H200, where a target does not say."""
FILL = 128
"""Rows of weights whose programs a compute unit holds at once: parts of K may make as many programs as that gives."""


def rejects(problem: Problem, target: Target) -> str | None:
    """Say why the kernel does not take a problem on a target."""
    if reason := gluon.rejects_target(target) or rejects_lanes(problem, target):
        return reason
    if problem.mode != "affine" or problem.bits not in BITS:
        return f"it takes affine codes of 4 or 8 bits, not {problem.mode} {problem.bits}"
    chunk = chunk_of(problem)
    least = FEW + 1 if problem.bits != BITS[0] or problem.columns * problem.depth < MANY else LEAST_ROWS
    depth = FOUR * chunk
    return first_reason(
        (problem.group_size in {chunk, chunk // 2}, f"it takes groups of {chunk} or {chunk // 2} codes"),
        (problem.batch == 1, "it takes one matrix of weights"),
        (problem.rows >= least, f"with fewer than {least} rows of x another kernel is as fast"),
        (problem.columns % ROWS == 0, f"it takes rows of weights in multiples of {ROWS}"),
        (
            problem.depth % depth == 0 and problem.depth >= LEAST_STEPS * depth,
            f"it takes K in multiples of {depth}, {LEAST_STEPS * depth} at least",
        ),
    )


def chunk_of(problem: Problem) -> int:
    """Return the codes of a chunk."""
    return CHUNK_BITS // problem.bits


def record_class(problem: Problem) -> str:
    """Name the class of tuning records: rows of x (up to 128 of their own), apart for 8 bits."""
    rows = "m128" if HALF_TILE // 2 < problem.rows <= HALF_TILE else rows_class(problem.rows)
    return rows if problem.bits == BITS[0] else f"b{problem.bits}-{rows}"


def is_faster(problem: Problem, target: Target) -> bool:
    """Return whether the kernel takes less time, by estimate, than dequantizing and the vendor's product would."""
    config = config_for(NAME, "gemm_w4a16_wgmma", record_class(problem), target)
    units = target.compute_units or UNITS
    block, splits = config["BLOCK_M"], splits_of(problem, config, units)
    unpacked = costs.unpacked_us(problem, block, _tiles(problem, config), splits, units, config["ROWS"] / FILL)
    return unpacked < costs.apart_us(problem)


def _tiles(problem: Problem, config: Config) -> int:
    return cdiv(problem.rows, config["BLOCK_M"]) * (problem.columns // config["ROWS"])


def splits_of(problem: Problem, config: Config, compute_units: int) -> int:
    """Return into how many parts K is cut, so that few tiles still give every compute unit work.

    Args:
        problem: One that the kernel takes.
        config: ``BLOCK_M`` by ``ROWS`` of a tile, ``CHUNKS`` of a step.
        compute_units: Of the target.
    """
    tiles = _tiles(problem, config)
    steps = problem.depth // (chunk_of(problem) * config["CHUNKS"])
    resident = FILL // config["ROWS"] * compute_units
    most = min(MOST_SPLITS, steps // LEAST_STEPS)
    return max((n for n in range(2, most + 1) if steps % n == 0 and n * tiles <= resident), default=1)
