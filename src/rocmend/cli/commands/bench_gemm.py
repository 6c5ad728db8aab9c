"""``rocmend bench gemm``."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from rocmend.bench.suites.gemm_cases import DTYPES, LAYOUTS, PRESETS, TRANSPOSED_ALONE
from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.bench import bench_options, run_bench
from rocmend.core.errors import UsageError

if TYPE_CHECKING:
    from rocmend.bench.suite import Suite
    from rocmend.cli.bench import Bench, BenchOptions

_SHAPE = re.compile(r"([1-9]\d{0,6})x([1-9]\d{0,6})x([1-9]\d{0,6})")


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
        ("rocmend bench gemm", "a few products in bf16, with hipBLASLt and without it"),
        ("rocmend bench gemm --preset llm --dtype fp16", "the projections of language models"),
        ("rocmend bench gemm --shape 8192x8192x8192 --dtype fp16 --dtype fp8", "one shape in two dtypes"),
        ("rocmend bench gemm --tune --setting default --setting tunableop", "what TunableOp gains"),
        ("rocmend bench gemm --preset full --list", "list the cases and settings"),
    ),
)
@click.option(
    "--preset",
    type=OneOf(PRESETS),
    default=None,
    help="Which shapes: quick (the default), square, llm (projections of Llama-3.1-8B, Qwen3-0.6B, Qwen3-30B-A3B), "
    "or full: those, skinny, batched, transposed and strided ones in all dtypes.",
)
@click.option(
    "--shape",
    "shapes",
    metavar="MxNxK",
    multiple=True,
    callback=_shapes,
    help="A shape in place of a preset: [M, K] times [K, N]. Repeatable.",
)
@click.option(
    "--dtype",
    "dtypes",
    type=OneOf(DTYPES),
    multiple=True,
    help="Dtype of the operands: bf16 where none is given. Repeatable.",
)
@click.option(
    "--layout",
    "layouts",
    type=OneOf(LAYOUTS),
    multiple=True,
    help="With --shape: which operand is stored transposed (t) or not (n); nt is a linear layer's. Repeatable.",
)
@click.option("--batch", type=click.IntRange(1, 65536), default=1, help="With --shape: products at once.")
@click.option("--tune", is_flag=True, help="Also tune each product with TunableOp, which can take minutes for each.")
@bench_options
def command(
    preset: str | None,
    shapes: list[tuple[int, int, int]],
    dtypes: tuple[str, ...],
    layouts: tuple[str, ...],
    batch: int,
    tune: bool,
    common: BenchOptions,
) -> None:
    """Measure matrix products with rocBLAS, hipBLASLt and TunableOp.

    Each setting runs in a process of its own; their blocks of runs are taken in turn. Each product is compared with
    float64 first, and a wrong one gets no figure. Settings that mean nothing on the device are left out. Results are
    kept in the store. Exit code 1 means that something has no figure.
    """
    if shapes and preset:
        raise UsageError("--shape", "it cannot be given together with --preset.")
    if not shapes and (layouts or batch > 1):
        raise UsageError("--layout" if layouts else "--batch", "it needs --shape.")
    names = [DTYPES[dtype] for dtype in dict.fromkeys(dtypes)]

    def make(bench: Bench) -> Suite:
        from rocmend.bench.device import describe
        from rocmend.bench.suites.gemm import Gemm
        from rocmend.bench.suites.gemm_cases import Shape, case_of, preset_cases

        device = None if common.list_only else describe(bench.torch)
        on_cpu = device.kind == "cpu" if device is not None else common.device == "cpu"
        if shapes:
            # fp8 and int8 are multiplied in the layout of a model's weights
            cases = [
                case_of(Shape(*shape, layout, batch), dtype, cpu=on_cpu)
                for dtype in names or ["bfloat16"]
                for shape in shapes
                for layout in layouts or (("nt",) if dtype in TRANSPOSED_ALONE else ("nn",))
            ]
        else:
            cases = preset_cases(preset or "quick", names, cpu=on_cpu)
        asked = any(fnmatchcase("tunableop", glob) for glob in common.settings)
        return Gemm(bench.torch, cases, device, tune=tune or asked)

    run_bench("bench gemm", common, make)
