"""``rocmend bench memory``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.bench import bench_options, run_bench
from rocmend.cli.quantities import SIZE
from rocmend.core.errors import UsageError
from rocmend.core.units import size_text

if TYPE_CHECKING:
    from rocmend.bench.suite import Suite
    from rocmend.cli.bench import Bench, BenchOptions

_STEP, _MOST = 4, 1 << 36


def _sizes(_ctx: click.Context, _parameter: click.Parameter, sizes: tuple[int, ...]) -> tuple[int, ...]:
    for size in sizes:
        if size > _MOST:
            raise UsageError(
                "--size", f"{size_text(size)} is too large: {size_text(_MOST)} at most.", next_step="Write e.g. 64MiB."
            )
        if size % _STEP:
            raise UsageError(
                "--size", f"{size:,} bytes is no multiple of {_STEP}: an array holds float32.",
                next_step="Write e.g. 64MiB.",
            )  # fmt: skip
    return tuple(dict.fromkeys(sizes))


@rocmend_command(
    "memory",
    examples=(
        ("rocmend bench memory", "the GPU's memory, the way to it, other GPUs, and the host's memory"),
        ("rocmend bench memory --select 'link/*' --size 256MiB", "copies between host and device of one size"),
        ("rocmend bench memory --device cpu --quick", "the host's memory, with fewer sizes"),
        ("rocmend bench memory -o memory.html", "with bandwidth drawn over size"),
    ),
)
@click.option(
    "--size", "sizes", type=SIZE, multiple=True, callback=_sizes, metavar="SIZE",
    help="Size of an array, e.g. 256MiB; otherwise 4 KiB to 1 GiB, as far as memory is free. Repeatable.",
)  # fmt: skip
@bench_options
def command(sizes: tuple[int, ...], common: BenchOptions) -> None:
    """Measure memory bandwidth.

    Copy, scale, add and triad within the memory of the device and of the host; copies between them, from pageable and
    pinned memory; kernels of the device that use the host's memory where it is; and copies between GPUs. All results
    are compared bit by bit first. Within a memory, bytes read and bytes written both count, as in STREAM; between two,
    each byte counts once.
    """

    def make(bench: Bench) -> Suite:
        from rocmend.bench.device import describe
        from rocmend.bench.suites.memory import QUICK_SIZES, SIZES, Memory, cases_of
        from rocmend.core.host_memory import available_bytes

        device = None if common.list_only else describe(bench.torch)
        if device is not None and device.kind == "cpu":
            why = "--device cpu was given" if common.device == "cpu" else "there is no GPU here that torch can use"
            _refuse_gpu_cases(common.select, why)
        wanted = sizes or (QUICK_SIZES if common.quick else SIZES)
        cases = cases_of(device, wanted, available_bytes())
        fitting = {int(case.parameters["bytes"]) for case in cases}
        if not cases:
            raise UsageError("--size", "there is too little free memory for it.", next_step="Name a smaller one.")
        return Memory(bench.torch, cases, device, [size for size in wanted if size not in fitting])

    run_bench("bench memory", common, make, all_gpus=True)


def _refuse_gpu_cases(select: tuple[str, ...], why: str) -> None:
    """Refuse what asks for a GPU's memory where none is used."""
    for glob in select:
        where = glob.removeprefix("memory/").partition("/")[0]
        if where in {"device", "link", "peer"}:
            raise UsageError(
                "--select",
                f"{glob[:80]!r} needs a GPU, and {why}.",
                next_step="--select 'host/*' measures the host's memory; `rocmend check` looks at the GPU.",
            )
