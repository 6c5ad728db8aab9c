"""``rocmend bench llama``."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.bench import Bench, run_bench, run_options
from rocmend.cli.quantities import Duration
from rocmend.core.errors import UsageError

if TYPE_CHECKING:
    from rocmend.bench.llama.backends import Backend
    from rocmend.bench.llama.options import Chosen
    from rocmend.bench.suites.llama import Llama, Tests
    from rocmend.cli.bench import BenchOptions

_ONE_GPU = "no build finds several GPUs of one back end here."
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


def _shares(_ctx: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        if not re.fullmatch(r"\d{1,4}(\.\d{1,4})?(/\d{1,4}(\.\d{1,4})?){1,63}", text):
            raise UsageError("--tensor-split", f"{text[:80]!r} is not shares of GPUs.", next_step="Write e.g. 3/1.")
    return texts


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
        (
            "rocmend bench llama --model model.gguf --device each --device all",
            "each GPU alone, and all together",
        ),
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
    "--device",
    "devices",
    metavar="DEVICE",
    multiple=True,
    help="Which GPUs of a back end: `first` (the default), `each` by itself, `all` together, or as the build names "
    "them: ROCm1, ROCm0/ROCm1. Repeatable.",
)
@click.option(
    "--split-mode",
    "split_modes",
    metavar="MODE",
    multiple=True,
    help="How the model is spread over several GPUs, as llama-bench names it: layer, row, none. Repeatable.",
)
@click.option(
    "--tensor-split",
    "tensor_splits",
    metavar="N/N",
    multiple=True,
    callback=_shares,
    help="Shares of the GPUs, e.g. 3/1. Repeatable.",
)
@click.option("--main-gpu", type=click.IntRange(0, 63), default=None, help="The GPU that has all in split mode none.")
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
    devices: tuple[str, ...],
    split_modes: tuple[str, ...],
    tensor_splits: tuple[str, ...],
    main_gpu: int | None,
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
        Chosen(
            attention,
            how,
            batch,
            threads or 0,
            split_mode=mode,
            tensor_split=shares,
            main_gpu="" if main_gpu is None else str(main_gpu),
            calibrated=calibrate,
        )
        for attention, how, batch, mode, shares in itertools.product(
            _EITHER[flash_attention] if flash_attention else ("",),
            _LOADS[load] if load else ("",),
            (0,) if calibrate else ubatch or (0,),
            split_modes or ("",),
            tensor_splits or ("",),
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
            devices or (("all",) if _splits(chosen) else ()),
            chosen,
            check=not no_check,
            longest_s=limit or 0.0,
            sizes=sizes or SIZES,
        ),
        (QUICK, STANDARD),
    )


def _splits(chosen: list[Chosen]) -> bool:
    """Return whether the model is to be spread over several GPUs."""
    return any(one.split_mode or one.tensor_split or one.main_gpu for one in chosen)


def _refuse_more_shares(chosen: list[Chosen], backend: Backend) -> None:
    """Refuse shares for more GPUs than a back end is measured with."""
    count = len(backend.devices)
    for one in chosen if count > 1 else ():
        if one.tensor_split.count("/") >= count:
            raise UsageError(
                "--tensor-split",
                f"{one.tensor_split} is {one.tensor_split.count('/') + 1} shares, but {backend.name} has {count} GPUs.",
                why="llama.cpp reads a share for each GPU, in the order of --device.",
                next_step=f"Give {count} shares: {'/'.join(['1'] * count)}.",
            )


def _suite(
    bench: Bench,
    path: Path,
    tests: Tests,
    named: list[tuple[str, str]],
    backends: tuple[str, ...],
    devices: tuple[str, ...],
    chosen: list[Chosen],
    *,
    check: bool,
    longest_s: float,
    sizes: tuple[int, ...],
) -> Llama:
    from rocmend.bench.llama.backends import find_backends
    from rocmend.bench.llama.build import find_builds
    from rocmend.bench.llama.gguf import read_model
    from rocmend.bench.llama.options import one_device
    from rocmend.bench.suites.llama import Llama, Way
    from rocmend.cli.output import tell

    try:
        model = read_model(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError("--model", f"there is no file {path}.") from error
    icds = bench.machine.value("vulkan.icds", []) or []
    ways: dict[str, Way] = {}
    several = False
    for build in find_builds(named):
        found, notes = find_backends(build, icds, backends, devices)
        for note in notes:
            tell(f"{build.name}: {note}." if build.name else f"{note}.")
        for backend in found:
            spread = len(backend.devices) > 1
            _refuse_more_shares(chosen, backend)
            several = several or spread
            made = [Way(build, backend, options if spread else one_device(options)) for options in chosen]
            ways |= {way.id: way for way in made}
    if _splits(chosen) and not several:
        raise UsageError(
            "--split-mode",
            "--device names no two GPUs together." if "all" not in devices else _ONE_GPU,
            why="A split, its shares and the main GPU mean nothing with one GPU.",
            next_step="Give --device all, or two by name: --device ROCm0/ROCm1."
            if "all" not in devices
            else "Leave --split-mode, --tensor-split and --main-gpu out.",
        )
    return Llama(model, path, tests, list(ways.values()), check=check, longest_s=longest_s, sizes=sizes)
