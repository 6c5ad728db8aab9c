"""``rocmend lab resume``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.experiments import experiment_argument, finish_run, open_laboratory, read_experiment
from rocmend.cli.output import Progress, output_options
from rocmend.cli.stored import store_option
from rocmend.core.errors import UsageError


@rocmend_command(
    "resume",
    examples=(
        ("rocmend lab resume demo-lab/local-demo.toml", "go on after an interruption"),
        ("rocmend lab resume strix-halo-load-hang.toml", "go on after a reboot: the boot's parameters are checked"),
    ),
)
@experiment_argument
@click.option(
    "--repeats", type=click.IntRange(1, 1000), default=None, help="Runs of each trial; those made before count."
)
@click.option("--release", is_flag=True, help="Lift the quarantine after a GPU reset or an unkillable process.")
@store_option
@output_options()
def command(path: Path, repeats: int | None, release: bool, store_path: Path | None, output_format: str) -> None:
    """Go on with an interrupted experiment.

    The interruption may have been a reboot. What had finished is recorded, what had not is run again. After a reboot a
    trial of a kernel parameter runs only where /proc/cmdline carries it; otherwise that boot is recorded with the
    verdict infra. Exit code 1 means that a trial failed.
    """
    from rocmend.lab.plan import make_plan
    from rocmend.lab.service import status_of
    from rocmend.store.store import Store

    experiment, predictions = read_experiment(path)
    trials = [step.trial for step in make_plan(experiment, predictions)]
    with (
        Progress("rocmend lab resume", "reading the machine") as progress,
        Store.open(store_path, create=False) as store,
    ):
        lab = open_laboratory(experiment, store, progress)
        if not lab.bench.folder.exists():
            raise UsageError(
                "lab resume", f"{experiment.id} was never run.", next_step=f"`rocmend lab run {path}` begins it."
            )
        report = lab.run(trials, repeats=repeats, release=release)
        status = status_of(experiment, store, predictions)
    finish_run(report, status, "lab resume", path, output_format)
