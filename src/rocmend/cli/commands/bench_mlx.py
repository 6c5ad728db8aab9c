"""``rocmend bench mlx``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click
import msgspec

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.bench import bench_options, run_bench
from rocmend.core.errors import UsageError
from rocmend.mlx.programs import SHAPES

if TYPE_CHECKING:
    from rocmend.bench.suites.mlx import Models, Request
    from rocmend.cli.bench import Bench, BenchOptions


def _depths(_ctx: click.Context, _parameter: click.Parameter, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 8 for part in parts):
        raise UsageError("--depth", f"{text[:80]!r} is not a list of token counts.", next_step="Write 0, or 0,2048.")
    return tuple(dict.fromkeys(int(part) for part in parts))


@rocmend_command(
    "mlx",
    examples=(
        ("rocmend bench mlx --shape qwen3-0.6b", "a built-in shape with random 4-bit weights; nothing is downloaded"),
        ("rocmend bench mlx --model ./Qwen3-0.6B-4bit --depth 0,8192", "a model in a folder, also with a long context"),
        ("rocmend bench mlx --shape tiny --device cpu --quick", "a tiny model, to try the command"),
    ),
)
@click.option("--model", default="", metavar="FOLDER|NAME", help="A local folder, or a model name on the hub.")
@click.option("--shape", type=OneOf(SHAPES), default=None, help="A built-in shape, with random 4-bit weights.")
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
    "--layers", type=click.IntRange(1), default=None, help="Number of layers, for a smaller model of this shape."
)
@bench_options
def command(
    model: str,
    shape: str | None,
    depths: tuple[int, ...],
    prompt: int,
    generate: int,
    layers: int | None,
    common: BenchOptions,
) -> None:
    """Measure a language model through rocmend.mlx.

    Tokens a second of a prompt and of the generation after it, at each depth, with mlx_lm's generate_step. A generation
    is held against its bound: how often a second weights and cache can be read at the speed of a copy. First, some
    tokens taken at once are compared with the same taken one by one; a wrong result gets no figure. The record says how
    steps were computed (plans, captured graphs, recording in C), or why not. Exit code 1 means that something has no
    figure.
    """
    from rocmend.bench.suites.mlx import Request
    from rocmend.cli.mlx import check_device, check_environment, check_model
    from rocmend.core.optional import need

    if bool(model) == bool(shape):
        raise UsageError("bench mlx", "use either --model or --shape.")
    if model and layers:
        raise UsageError("--layers", "it needs --shape; a model's layers are fixed.")
    check_environment()
    common = msgspec.structs.replace(common, device=_device(common.device))
    if not common.list_only and common.python is None:
        need("bench mlx")
        named = {"cuda": "gpu", "cpu": "cpu"}.get(common.device.partition(":")[0], "auto")
        check_device(named)
        if model:
            check_model(model, named)
    request = Request(model, shape or "", depths, prompt, generate, layers or 0)
    run_bench("bench mlx", common, lambda bench: _suite(bench, request))


def _device(asked: str) -> str:
    """Return torch's name of a device: MLX calls a GPU ``gpu``, and a variable may say which is meant."""
    from rocmend.mlx import environment

    chosen = environment.asked("ROCMEND_MLX_DEVICE") if asked == "auto" else asked
    return {"gpu": "cuda", "": "auto"}.get(chosen, chosen)


def _suite(bench: Bench, request: Request) -> Models:
    """Make the suite: with all settings where some are asked for by name."""
    from rocmend.bench.suites.mlx import SETTINGS, Models

    common, torch = bench.common, bench.torch
    if common.python is None:
        torch = msgspec.structs.replace(torch, python=sys.executable)
    where = request.model
    if where and os.path.isdir(where):  # noqa: PTH112  a name of the hub looks like a path, too
        request = msgspec.structs.replace(request, model=os.path.abspath(where))  # noqa: PTH100  links are kept
    return Models(torch, request, SETTINGS if common.settings else SETTINGS[:1])
