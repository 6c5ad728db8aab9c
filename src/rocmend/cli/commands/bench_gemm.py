"""``rocmend bench gemm``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.bench import bench_options, run_bench
from rocmend.core.errors import UsageError

if TYPE_CHECKING:
    from rocmend.cli.bench import BenchOptions

_SHAPE = re.compile(r"([1-9]\d{0,6})x([1-9]\d{0,6})x([1-9]\d{0,6})")
_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def _shapes(_ctx: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> list[tuple[int, int, int]]:
    found = []
    for text in texts:
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise UsageError("--shape", f"{text[:80]!r} is not MxNxK.", next_step="Write e.g. 4096x4096x4096.")
        found.append((int(match[1]), int(match[2]), int(match[3])))
    return list(dict.fromkeys(found))


@rocmend_command(
    "gemm",
    examples=(
        ("rocmend bench gemm", "square products in bf16 on the GPU, or on the CPU where there is none"),
        ("rocmend bench gemm --shape 8192x8192x8192 --dtype fp16", "one shape in another dtype"),
        ("rocmend bench gemm --list", "list the cases and settings"),
    ),
)
@click.option(
    "--shape",
    "shapes",
    metavar="MxNxK",
    multiple=True,
    default=("1024x1024x1024", "4096x4096x4096"),
    show_default=True,
    callback=_shapes,
    help="Shape of a product: [M, K] times [K, N]. Repeatable.",
)
@click.option(
    "--dtype",
    "dtypes",
    type=OneOf(_DTYPES),
    multiple=True,
    default=("bf16",),
    show_default=True,
    help="Dtype of the operands. Repeatable.",
)
@bench_options
def command(shapes: list[tuple[int, int, int]], dtypes: tuple[str, ...], common: BenchOptions) -> None:
    """Measure matrix products.

    Each setting runs in a process of its own; their blocks of runs are taken in turn. A product whose result is wrong
    gets no figure. Results are kept in the store. Exit code 1 means that something has no figure.
    """
    from rocmend.bench.case import DEFAULT
    from rocmend.bench.suites.gemm import Gemm, product

    cases = [product(shape, _DTYPES[dtype]) for dtype in dict.fromkeys(dtypes) for shape in shapes]
    run_bench("bench gemm", common, lambda bench: Gemm(bench.torch, cases, [DEFAULT]))
