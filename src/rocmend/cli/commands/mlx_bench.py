"""``rocmend mlx bench``."""

from __future__ import annotations

import datetime as dt
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.mlx import check_device, check_environment, check_model, device_option
from rocmend.cli.output import finish, output_options, tell
from rocmend.cli.progress import Progress
from rocmend.cli.quantities import Duration
from rocmend.cli.stored import store_option
from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.optional import need
from rocmend.core.verdict import Verdict
from rocmend.mlx.programs.bench import SHAPES
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.mlx.programs.bench import BenchRun


def _depths(_ctx: click.Context, _parameter: click.Parameter, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise UsageError("--depth", f"{text!r} is not a list of token counts.", next_step="Write 0, or 0,2048,8192.")
    return tuple(dict.fromkeys(int(part) for part in parts))


@rocmend_command(
    "bench",
    examples=(
        ("rocmend mlx bench --shape qwen3-0.6b", "a built-in shape with random 4-bit weights; nothing is downloaded"),
        ("rocmend mlx bench --model ./Qwen3-0.6B-4bit --depth 0,8192", "a model in a folder, also with a long context"),
        ("rocmend mlx bench --shape tiny --device cpu --reps 1", "a tiny model, to try the command"),
    ),
)
@click.option("--model", default="", metavar="FOLDER|NAME", help="A local folder, or a model name on the hub.")
@click.option("--shape", type=OneOf(SHAPES), default=None, help="A built-in shape, with random 4-bit weights.")
@device_option
@click.option(
    "--depth",
    "depths",
    metavar="TOKENS",
    default="0",
    show_default=True,
    callback=_depths,
    help="Tokens in the cache before the prompt; comma-separated.",
)
@click.option("--prompt", type=click.IntRange(1), default=512, show_default=True, help="Tokens of the prompt.")
@click.option("--generate", type=click.IntRange(2), default=128, show_default=True, help="Tokens generated.")
@click.option(
    "--reps",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Repetitions; if several, the first is dropped.",
)
@click.option(
    "--steps", type=click.IntRange(1), default=200, show_default=True, help="Decode steps timed on the CPU only."
)
@click.option(
    "--layers", type=click.IntRange(1), default=None, help="Number of layers, for a smaller model of this shape."
)
@click.option(
    "--time-limit",
    type=Duration(1),
    default="30min",
    show_default=True,
    metavar="TIME",
    help="For all of it.",
)
@store_option
@click.option("--no-store", is_flag=True, help="Do not keep the results.")
@output_options()
def command(
    model: str,
    shape: str | None,
    device: str,
    depths: tuple[int, ...],
    prompt: int,
    generate: int,
    reps: int,
    steps: int,
    layers: int | None,
    time_limit: float,
    store_path: Path | None,
    no_store: bool,
    output_format: str,
) -> None:
    """Measure the speed of a language model.

    It prints tokens per second for prompt and generation, and the lower bound from reading the weights. The
    model runs through mlx_lm's generate_step in a child process: one that hangs or crashes keeps what it measured until
    then. It also shows how steps were computed (plans, captured graphs, recording in C), or why not. The
    result is kept as evidence. Exit code 1 means that a measurement is missing.
    """
    from rocmend.cli.views.mlx_bench import bench_document
    from rocmend.mlx.programs.bench import Request, bench

    if bool(model) == bool(shape):
        raise UsageError("mlx bench", "use either --model or --shape.")
    if model and layers:
        raise UsageError("--layers", "it needs --shape; a model's layers are fixed.")
    if no_store and store_path:
        raise UsageError("--no-store", "it cannot be combined with --store.")
    check_environment()
    need("mlx bench")
    check_device(device)
    if model:
        check_model(model, device)
    request = Request(model, shape or "", device, depths, prompt, generate, reps, steps, layers or 0)
    with Progress("rocmend mlx bench", str(model or shape)):
        run = bench(request, time_limit_s=time_limit)
    kept = "" if no_store else _keep(run, store_path)
    outcome = Outcome("mlx bench", {"group": kept, "run": run}, CLEAN if run.verdict is Verdict.PASS else FINDINGS)
    finish(outcome, output_format, lambda: bench_document(run, kept))


def _keep(run: BenchRun, path: Path | None) -> str:
    """Keep a run as evidence; one that cannot be kept is still shown. Returns the id it is kept under."""
    from rocmend.mlx.programs.bench import evidence_of
    from rocmend.store.store import Store

    group = f"mlx-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    try:
        with Store.open(path) as store:
            store.add(evidence_of(run, group))
    except RocmendError as error:
        tell(f"rocmend: the run is not kept: {error}")
        return ""
    return group
