"""Sort, top-k, scans, arg reductions, copies, gather and scatter; torch beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from benchmarks.kernels.bench import Bench

from rocmend.kernels.suite import Call, Maker

WIDTH = {"float32": 4, "bfloat16": 2}


def _bench(
    op: str,
    name: str,
    make: Callable[[Maker], Call],
    dtype: str,
    size: float,
    peer: Callable[..., Any],
    function: str | None = None,
    reference: str | None = None,
) -> Bench:
    where = f"rocmend.kernels.ops.{op}.reference:{reference}" if reference else None
    return Bench(op, name, make, dtype, size, function=function, peers={"torch": peer}, reference=where)


def _turned(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous()


def _rows() -> Iterator[Bench]:
    for dtype, width in WIDTH.items():
        for rows, n in ((4096, 128), (4096, 2048), (64, 151_936), (1, 16_000_000)):

            def make(m: Maker, rows: int = rows, n: int = n, dtype: str = dtype) -> Call:
                return Call((m.normal(rows, n, dtype=dtype), -1))

            label = f"{dtype}-{rows}x{n}"
            sizes = rows * n * width
            yield _bench(
                "sort",
                f"sort-{label}",
                make,
                dtype,
                2.0 * sizes,
                lambda x, axis: torch.sort(x, stable=True, dim=axis).values,
            )
            yield _bench("scan", f"cumsum-{label}", make, dtype, 2.0 * sizes, torch.cumsum)
            yield _bench("arg_reduce", f"argmax-{label}", make, "int64", 1.0 * sizes + 8 * rows, torch.argmax)
        for rows, n, k in ((4096, 128, 8), (1, 151_936, 50), (64, 151_936, 50)):

            def top(m: Maker, rows: int = rows, n: int = n, k: int = k, dtype: str = dtype) -> Call:
                return Call((m.normal(rows, n, dtype=dtype), k))

            yield _bench("topk", f"{dtype}-{rows}x{n}-{k}", top, dtype, 1.0 * rows * n * width, torch.topk)


def benches() -> Iterator[Bench]:
    """Yield what is measured."""
    yield from _rows()
    for dtype, width in WIDTH.items():

        def turned(m: Maker, dtype: str = dtype) -> Call:
            return Call((m.normal(8192, 8192, dtype=dtype).t(),))

        yield _bench("copy", f"{dtype}-turned-8192x8192", turned, dtype, 2.0 * 8192**2 * width, _turned)

        def rows(m: Maker, dtype: str = dtype) -> Call:
            return Call((m.normal(65536, 4096, dtype=dtype), m.integers(0, 65536, 16384, dtype="int64"), 0))

        def select(x: torch.Tensor, index: torch.Tensor, axis: int) -> torch.Tensor:
            return x.index_select(axis, index)

        yield _bench("take", f"{dtype}-16384x4096", rows, dtype, 2.0 * 16384 * 4096 * width, select)
