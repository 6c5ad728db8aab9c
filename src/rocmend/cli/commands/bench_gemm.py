"""``rocmend bench gemm``."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from rocmend.bench.measure import STANDARD
from rocmend.bench.suites.gemm_cases import DTYPES, LAYOUTS, PRESETS, TRANSPOSED_ALONE, preset_cases
from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.bench import bench_options, run_bench
from rocmend.core.errors import UsageError
from rocmend.core.units import time_text

if TYPE_CHECKING:
    from rocmend.bench.suite import Suite
    from rocmend.cli.bench import Bench, BenchOptions

_NUMBERS = re.compile(r"[1-9]\d*x[1-9]\d*x[1-9]\d*")
_SHAPE = re.compile(r"([1-9]\d{0,6})x([1-9]\d{0,6})x([1-9]\d{0,6})")


def _shapes(_ctx: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> list[tuple[int, int, int]]:
    found = []
    for text in texts:
        match = _SHAPE.fullmatch(text)
        if match is None:
            large = _NUMBERS.fullmatch(text) is not None
            wrong = "is too large: a side has 9,999,999 at most" if large else "is not MxNxK"
            raise UsageError("--shape", f"{text[:80]!r} {wrong}.", next_step="Write e.g. 4096x4096x4096.")
        found.append((int(match[1]), int(match[2]), int(match[3])))
    return list(dict.fromkeys(found))


def _presets() -> str:
    """Return what the presets hold, with how many products each has and how long they are timed at least."""
    holds = {
        "quick": "squares, prompts and decoding in bf16; the default with --quick",
        "standard": "the default: those, skinny, batched, transposed and strided ones, and a few in each other dtype",
        "square": "256 to 8192 rows",
        "llm": "projections of Llama-3.1-8B, Qwen3-0.6B and Qwen3-30B-A3B",
        "full": "all of them in all dtypes",
    }
    each_s = STANDARD.least_blocks * STANDARD.block_s
    counts = {name: len(preset_cases(name, [])) for name in PRESETS}
    told = [
        f"{name} ({counts[name]} products, timed {time_text(counts[name] * each_s * 1e3)} or more; {holds[name]})"
        for name in PRESETS
    ]
    return f"Which shapes; the times are for each setting. {'. '.join(told)}. --list says more."


@rocmend_command(
    "gemm",
    examples=(
        ("rocmend bench gemm", "products of each kind, with hipBLASLt and without it"),
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
    help=_presets(),
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
    help="Dtype of the operands, in place of those of the preset; with --shape bf16 where none is given. Repeatable.",
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
        from rocmend.bench.device import Device, describe
        from rocmend.bench.suites.gemm import Gemm
        from rocmend.bench.suites.gemm_cases import Shape, case_of

        on_cpu = common.device == "cpu"
        if common.list_only:
            device = Device("cpu", "cpu", "the processor") if on_cpu else None
        else:
            device = describe(bench.torch)
            on_cpu = device.kind == "cpu"
        if shapes:
            # fp8 and int8 are multiplied in the layout of a model's weights
            cases = [
                case_of(Shape(*shape, layout, batch), dtype, cpu=on_cpu)
                for dtype in names or ["bfloat16"]
                for shape in shapes
                for layout in layouts or (("nt",) if dtype in TRANSPOSED_ALONE else ("nn",))
            ]
        else:
            cases = preset_cases(preset or ("quick" if common.quick else "standard"), names, cpu=on_cpu)
        asked = any(fnmatchcase("tunableop", glob) for glob in common.settings)
        return Gemm(bench.torch, cases, device, tune=tune or asked)

    run_bench("bench gemm", common, make)
