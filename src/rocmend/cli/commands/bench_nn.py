"""``rocmend bench nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from rocmend.bench.networks import CATALOGUE, INFERENCE, TRAINING
from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.bench import bench_options, run_bench
from rocmend.core.errors import UsageError

if TYPE_CHECKING:
    from rocmend.bench.case import Case
    from rocmend.bench.suites.nn import Networks
    from rocmend.cli.bench import Bench, BenchOptions

_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_PRESETS = ("quick", "seed", "full", "tiny")


@rocmend_command(
    "nn",
    examples=(
        ("rocmend bench nn", "ResNet-50 and BERT-base, a quick look"),
        ("rocmend bench nn --preset seed", "five networks, batch 32 in fp16: what most tables of GPUs have"),
        (
            "rocmend bench nn --model vit-b-16 --task training --dtype bf16 --setting eager --setting compile",
            "what torch.compile does for a training step",
        ),
    ),
)
@click.option(
    "--model",
    "models",
    metavar="NAME",
    type=OneOf(CATALOGUE),
    multiple=True,
    help=f"Only this network: {', '.join(CATALOGUE)}. Repeatable.",
)
@click.option(
    "--preset",
    type=OneOf(_PRESETS),
    default=None,
    help="quick (the default): two networks, on a CPU in fp32 and one sample at a time; seed: five, batch 32 in fp16; "
    "full: all; tiny: tiny ones, to try it.",
)
@click.option(
    "--task", "tasks", type=OneOf((INFERENCE, TRAINING)), multiple=True, help="Instead of the preset's. Repeatable."
)
@click.option("--batch", type=click.IntRange(1, 65536), default=None, help="Samples of a run.")
@click.option(
    "--dtype", "dtypes", type=OneOf(_DTYPES), multiple=True, help="Dtype; of autocast in training. Repeatable."
)
@click.option(
    "--own", is_flag=True, help="Use rocmend's definitions, even where torchvision, timm or transformers is installed."
)
@bench_options
def command(
    models: tuple[str, ...],
    preset: str | None,
    tasks: tuple[str, ...],
    batch: int | None,
    dtypes: tuple[str, ...],
    own: bool,
    common: BenchOptions,
) -> None:
    """Measure neural networks.

    Inference, and training steps (forward, backward, optimizer) of ResNet, ViT, BERT, a UNet block and a small language
    model, with random weights: nothing is downloaded. Settings are eager, compile and channels-last. Outputs, losses
    and gradients are first compared with the same network on the CPU; what is wrong gets no figure. A batch that does
    not fit into memory is reported with one that does. The first run, which may compile or search for minutes, is
    reported apart. Exit code 1 means that something has no figure.
    """
    from rocmend.bench.suites.nn import PRESETS, network_cases

    chosen = PRESETS[preset or ("seed" if models else "quick")]
    quick = chosen is PRESETS["quick"]

    def cases(*, on_cpu: bool) -> list[Case]:
        taken = PRESETS["quick-cpu"] if quick and on_cpu else chosen
        return network_cases(
            tuple(dict.fromkeys(models)) or taken.networks,
            tuple(dict.fromkeys(tasks)) or taken.tasks,
            tuple(_DTYPES[name] for name in dict.fromkeys(dtypes)) or taken.dtypes,
            batch or taken.batch,
            own_batch=batch is None,
            tiny=taken.tiny,
            definition="own" if own else "auto",
        )

    if not cases(on_cpu=False):
        raise UsageError("--task", f"{', '.join(models)} has no training step.", next_step="Use --task inference.")
    if quick:
        common = msgspec.structs.replace(common, quick=True)
    run_bench("bench nn", common, lambda bench: _suite(bench, cases(on_cpu=_on_cpu(bench)), chosen.settings))


def _on_cpu(bench: Bench) -> bool:
    """Return whether there is no GPU to measure, as far as the machine's facts go."""
    asked, machine = bench.common.device, bench.machine
    return asked == "cpu" or (asked == "auto" and not machine.indices("gpu") and not machine.value("pci.nvidia_gpus"))


def _suite(bench: Bench, cases: list[Case], preset: tuple[str, ...]) -> Networks:
    """Make the suite: with all settings where some are asked for by name."""
    from rocmend.bench.suites.nn import LIMITS, SETTINGS, Networks

    common = bench.common
    wanted = SETTINGS if common.settings else preset
    torch = msgspec.structs.replace(bench.torch, limits=LIMITS)
    return Networks(torch, cases, [SETTINGS[name] for name in wanted])
