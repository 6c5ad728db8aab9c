"""``rocmend bench llama``."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.bench import Bench, run_bench, run_options
from rocmend.cli.quantities import Duration
from rocmend.core.errors import UsageError

if TYPE_CHECKING:
    from rocmend.bench.llama.options import Chosen
    from rocmend.bench.suites.llama import Llama, Tests
    from rocmend.cli.bench import BenchOptions

_MOST_TOKENS = 1 << 20
_EITHER = {"off": ("off",), "on": ("on",), "both": ("off", "on")}
_LOADS = {"mmap": ("mmap",), "none": ("none",), "both": ("mmap", "none")}


def _numbers(_ctx: click.Context, parameter: click.Parameter, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isdecimal() and int(part[:9]) <= _MOST_TOKENS and len(part) < 9 for part in parts):
        raise UsageError(
            f"--{parameter.name}",
            f"{text[:80]!r} is not a list of numbers from 0 to {_MOST_TOKENS:,}.",
            next_step="Write e.g. 0,2048,8192.",
        )
    return tuple(dict.fromkeys(map(int, parts)))


def _builds(_ctx: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not path or "/" in name:
            name, path = ("" if len(texts) == 1 else Path(text).absolute().parent.name), text
        if name in found:
            raise UsageError(
                "--build", f"two builds are called {name!r}.", next_step="Name each: --build nightly=PATH."
            )
        found[name] = path
    return list(found.items())


@rocmend_command(
    "llama",
    examples=(
        ("rocmend bench llama --model model.gguf", "the llama-bench on PATH, each back end that it has"),
        ("rocmend bench llama --model model.gguf --depth 0,2048,8192,32768", "how speed falls with a longer context"),
        ("rocmend bench llama --model model.gguf --calibrate", "with the batch size that reads prompts fastest"),
        (
            "rocmend bench llama --model model.gguf --build new=new/bin --build old=old/bin",
            "two builds",
        ),
    ),
)
@click.option("--model", type=click.Path(path_type=Path), metavar="FILE", required=True, help="The model, a GGUF file.")
@click.option(
    "--build",
    "builds",
    metavar="[NAME=]PATH",
    multiple=True,
    callback=_builds,
    help="A llama-bench, or the folder that it is in; otherwise the one on PATH. Repeatable.",
)
@click.option(
    "--backend",
    "backends",
    metavar="NAME",
    multiple=True,
    help="Only this back end: rocm, vulkan-radv, vulkan-amdvlk, vulkan-lavapipe, cpu. Repeatable.",
)
@click.option(
    "--prompt", metavar="N,N", default="512", show_default=True, callback=_numbers, help="Tokens of the prompts."
)
@click.option(
    "--generate", metavar="N,N", default="128", show_default=True, callback=_numbers, help="Tokens to generate."
)
@click.option(
    "--depth",
    metavar="N,N",
    default="0",
    show_default=True,
    callback=_numbers,
    help="Tokens that the context holds before.",
)
@click.option("--ubatch", metavar="N,N", default="", callback=_numbers, help="Physical batch sizes to compare.")
@click.option(
    "--calibrate",
    is_flag=True,
    help="First find the batch size (-ub, -b) that reads a prompt fastest, for each back end: of 64 to 2048, or of "
    "those that --ubatch names.",
)
@click.option("--flash-attention", type=OneOf(_EITHER), default=None, help="Without, with, or both compared.")
@click.option("--load", type=OneOf(_LOADS), default=None, help="How the model is read: mapped, or copied (none).")
@click.option("--threads", type=click.IntRange(1, 1024), default=None, help="Processor threads.")
@click.option("--no-check", is_flag=True, help="Do not compare what is generated with the CPU's output.")
@click.option(
    "--limit",
    type=Duration(1),
    default=None,
    metavar="TIME",
    help="Longest time of one start of llama-bench. Otherwise it follows from the model's size and the test.",
)
@run_options
def command(
    model: Path,
    builds: list[tuple[str, str]],
    backends: tuple[str, ...],
    prompt: tuple[int, ...],
    generate: tuple[int, ...],
    depth: tuple[int, ...],
    ubatch: tuple[int, ...],
    calibrate: bool,
    flash_attention: str | None,
    load: str | None,
    threads: int | None,
    no_check: bool,
    limit: float | None,
    common: BenchOptions,
) -> None:
    """Measure llama.cpp with llama-bench.

    Each build is run on each back end that it finds here: ROCm, Vulkan by driver (RADV, AMDVLK) and the CPU. Prompt
    processing (pp) and generation (tg) are figures of their own, at each depth of the context. Which device computed is
    read from llama.cpp's output. Where llama-completion or llama-perplexity lies beside llama-bench, its output is
    compared with the CPU's; a wrong one gets no figure. Exit code 1 means that something has no figure.
    """
    from rocmend.bench.llama.calibrate import SIZES
    from rocmend.bench.llama.options import Chosen
    from rocmend.bench.suites.llama import QUICK, STANDARD, Tests

    if not depth or not any((*prompt, *generate)):
        raise UsageError("--prompt", "nothing is left to measure.", next_step="Give --prompt 512 or --generate 128.")
    tests = Tests(tuple(filter(None, prompt)), tuple(filter(None, generate)), depth)
    sizes = tuple(filter(None, ubatch))
    if calibrate and not tests.prompts:
        raise UsageError(
            "--calibrate", "it finds what reads prompts fastest, and there are none.", next_step="Give --prompt 512."
        )
    chosen = [
        Chosen(attention, how, batch, threads or 0, calibrated=calibrate)
        for attention, how, batch in itertools.product(
            _EITHER[flash_attention] if flash_attention else ("",),
            _LOADS[load] if load else ("",),
            (0,) if calibrate else ubatch or (0,),
        )
    ]
    run_bench(
        "bench llama",
        common,
        lambda bench: _suite(
            bench,
            model,
            tests,
            builds,
            backends,
            chosen,
            check=not no_check,
            longest_s=limit or 0.0,
            sizes=sizes or SIZES,
        ),
        (QUICK, STANDARD),
    )


def _suite(
    bench: Bench,
    path: Path,
    tests: Tests,
    named: list[tuple[str, str]],
    backends: tuple[str, ...],
    chosen: list[Chosen],
    *,
    check: bool,
    longest_s: float,
    sizes: tuple[int, ...],
) -> Llama:
    from rocmend.bench.llama.backends import find_backends
    from rocmend.bench.llama.build import find_builds
    from rocmend.bench.llama.gguf import read_model
    from rocmend.bench.suites.llama import Llama, Way
    from rocmend.cli.output import tell

    try:
        model = read_model(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError("--model", f"there is no file {path}.") from error
    icds = bench.machine.value("vulkan.icds", []) or []
    ways = []
    for build in find_builds(named):
        found, notes = find_backends(build, icds, backends)
        for note in notes:
            tell(f"{build.name}: {note}." if build.name else f"{note}.")
        ways += [Way(build, backend, options) for backend in found for options in chosen]
    return Llama(model, path, tests, ways, check=check, longest_s=longest_s, sizes=sizes)
