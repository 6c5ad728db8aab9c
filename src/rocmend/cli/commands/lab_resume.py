"""``rocmend lab resume``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.experiments import experiment_argument, finish_run, open_laboratory, read_experiment
from rocmend.cli.output import output_options
from rocmend.cli.progress import Progress
from rocmend.cli.stored import store_option
from rocmend.core.errors import UsageError


@rocmend_command(
    "resume",
    examples=(
        ("rocmend lab resume demo-lab/local-demo.toml", "continue after an interruption"),
        ("rocmend lab resume strix-halo-load-hang.toml", "continue after a reboot: the kernel parameters are checked"),
    ),
)
@experiment_argument
@click.option("--repeats", type=click.IntRange(1, 1000), default=None, help="Runs per trial, including earlier runs.")
@click.option("--release", is_flag=True, help="Lift the quarantine after a GPU reset or an unkillable process.")
@store_option
@output_options()
def command(path: Path, repeats: int | None, release: bool, store_path: Path | None, output_format: str) -> None:
    """Continue an interrupted experiment.

    The interruption may have been a reboot. Finished runs are recorded, unfinished ones are repeated. After a reboot
    a kernel-parameter trial runs only if /proc/cmdline has the parameter; otherwise it is recorded with the verdict
    infra. Exit code 1 means that a trial failed.
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
                "lab resume", f"{experiment.id} was never run.", next_step=f"`rocmend lab run {path}` starts it."
            )
        report = lab.run(trials, repeats=repeats, release=release)
        status = status_of(experiment, store, predictions)
    finish_run(report, status, "lab resume", path, output_format)
