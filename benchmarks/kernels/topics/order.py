"""Sort, top-k, scans, arg reductions, copies, gather and scatter; torch beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from benchmarks.kernels.bench import Bench, compiled

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
    **more: Any,
) -> Bench:
    peers = more.pop("peers", {"torch": peer})
    return Bench(op, name, make, dtype, size, function=function, peers=peers, **more)


ROWS = ((4096, 128), (4096, 2048), (64, 151_936), (1, 16_000_000))
TOP = ((4096, 128, 8), (1, 151_936, 50), (64, 151_936, 50))


def _rows(*, tiny: bool) -> Iterator[Bench]:
    for dtype, width in WIDTH.items():
        for rows, n in ((4, 40), (2, 300)) if tiny else ROWS:

            def make(m: Maker, rows: int = rows, n: int = n, dtype: str = dtype) -> Call:
                return Call((m.normal(rows, n, dtype=dtype), -1))

            label = f"{dtype}-{rows}x{n}"
            sizes = rows * n * width
            rank: dict[str, Any] = {"rank": 2}
            twin = {"rows": rows, "columns": n, "dtype": dtype}
            yield _bench(
                "sort",
                f"sort-{label}",
                make,
                dtype,
                2.0 * sizes,
                lambda x, axis: torch.sort(x, stable=True, dim=axis).values,
                mlx=("benchmarks.kernels.topics.order_mlx:sort", twin),
                **rank,
            )
            yield _bench("scan", f"cumsum-{label}", make, dtype, 2.0 * sizes, torch.cumsum, **rank)
            yield _bench("arg_reduce", f"argmax-{label}", make, "int64", 1.0 * sizes + 8 * rows, torch.argmax, **rank)
        for rows, n, k in ((3, 40, 5),) if tiny else TOP:

            def top(m: Maker, rows: int = rows, n: int = n, k: int = k, dtype: str = dtype) -> Call:
                return Call((m.normal(rows, n, dtype=dtype), k))

            yield _bench("topk", f"{dtype}-{rows}x{n}-{k}", top, dtype, 1.0 * rows * n * width, torch.topk, rank=2)


def _plain(x: torch.Tensor) -> torch.Tensor:
    return x.clone(memory_format=torch.contiguous_format)


def _copies(*, tiny: bool) -> Iterator[Bench]:
    side, rows, columns = (40, 30, 24) if tiny else (8192, 16384, 4096)
    goals = (("of_floor", 0.8), ("of_peer:torch.compile", 1.0))
    for dtype, width in WIDTH.items():

        def turned(m: Maker, dtype: str = dtype) -> Call:
            return Call((m.normal(side, side, dtype=dtype).t(),))

        def heads(m: Maker, dtype: str = dtype) -> Call:
            x = m.normal(2 if tiny else 4, 6 if tiny else 4096, 3 if tiny else 32, 128, dtype=dtype)
            return Call((x.transpose(1, 2),))

        def halves(m: Maker, dtype: str = dtype) -> Call:
            return Call((m.normal(rows, 2 * columns, dtype=dtype)[:, columns:],))

        shapes = (
            (f"{dtype}-turned-{side}x{side}", turned, float(side**2)),
            (f"{dtype}-heads", heads, float((2 * 6 * 3 if tiny else 4 * 4096 * 32) * 128)),
            (f"{dtype}-half-{rows}x{columns}", halves, float(rows * columns)),
        )
        for name, make, elements in shapes:
            plain: dict[str, Callable[..., Any]] = {"torch": _plain, "torch.compile": compiled(_plain)}
            yield _bench("copy", name, make, dtype, 2 * elements * width, _plain, peers=plain, goals=goals)

        def chosen(m: Maker, dtype: str = dtype) -> Call:
            return Call((m.normal(4 * rows, columns, dtype=dtype), m.integers(0, 4 * rows, rows, dtype="int64"), 0))

        def select(x: torch.Tensor, index: torch.Tensor, axis: int) -> torch.Tensor:
            return x.index_select(axis, index)

        peers: dict[str, Callable[..., Any]] = {"torch": select, "torch.compile": compiled(select)}
        yield _bench(
            "take", f"{dtype}-{rows}x{columns}", chosen, dtype, 2.0 * rows * columns * width, select, peers=peers,
            goals=goals,
        )  # fmt: skip


def benches(*, tiny: bool = False) -> Iterator[Bench]:
    """Yield what is measured."""
    yield from _copies(tiny=tiny)
    yield from _rows(tiny=tiny)
