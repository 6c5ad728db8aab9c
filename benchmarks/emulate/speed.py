"""How many instructions of waves the emulator executes a second on one core: a matrix product in Triton.

    python -m benchmarks.emulate.speed [--target gfx1100] [--size 1024]

The size decides how many waves there are: tiles of 64 x 64 by four waves. Triton compiles first; only the run is timed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

import numpy as np
import triton
import triton.language as tl

from rocmend.emulate import emulate
from rocmend.emulate.device import ALL_CHECKS

TILE, STEP = 64, 32


@triton.jit  # type: ignore[untyped-decorator]
def gemm_kernel(  # type: ignore[no-untyped-def]  # noqa: D103
    a,
    b,
    c,
    size,
    TILE: tl.constexpr,
    STEP: tl.constexpr,
):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    depth = tl.arange(0, STEP)
    total = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, size, STEP):
        x = tl.load(a + rows[:, None] * size + (k + depth)[None, :])
        y = tl.load(b + (k + depth)[:, None] * size + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * size + columns[None, :], total.to(tl.float16))


def measured(target: str, size: int, checks: int, times: int) -> tuple[float, int]:
    """Return the median of millions of wave instructions a second, and the number of waves.

    Raises:
        SystemExit: The product is wrong: then there is no speed.
    """
    rng = np.random.default_rng()
    a, b = (rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    c = np.zeros((size, size), np.float16)
    kernel = emulate(gemm_kernel, target, checks=checks)
    grid = (size // TILE, size // TILE)
    run: Any = kernel[grid](a, b, c, size, TILE=TILE, STEP=STEP, num_warps=4)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    if not np.allclose(c, wanted, rtol=2e-3, atol=2e-2):
        sys.exit(f"{target}: the product is wrong")
    rates = []
    for _ in range(times):
        run = kernel[grid](a, b, c, size, TILE=TILE, STEP=STEP, num_warps=4)
        rates.append(run.wave_instructions / run.time_s / 1e6)
    return statistics.median(rates), 4 * grid[0] * grid[1]


def main() -> None:
    """Print a row for each target, size and set of checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="gfx1100,gfx942")
    parser.add_argument("--size", default="256,1024")
    parser.add_argument("--times", type=int, default=5)
    asked = parser.parse_args()
    print("target    waves  checks  M wave instructions/s")
    for target in asked.target.split(","):
        for size in map(int, asked.size.split(",")):
            for checks in (ALL_CHECKS, 0):
                rate, waves = measured(target, size, checks, asked.times)
                print(f"{target:<8}{waves:>7}  {'all' if checks else 'none':<6}{rate:>9.2f}", flush=True)


if __name__ == "__main__":
    main()
