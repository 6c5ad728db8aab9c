"""``rocmend lab run``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.experiments import experiment_argument, finish_run, open_laboratory, read_experiment
from rocmend.cli.output import output_options
from rocmend.cli.progress import Progress
from rocmend.cli.stored import store_option


@rocmend_command(
    "run",
    examples=(
        ("rocmend lab run demo-lab/local-demo.toml", "run the remaining trials"),
        ("rocmend lab run demo-lab/local-demo.toml --only baseline --repeats 5", "one trial, five times"),
    ),
)
@experiment_argument
@click.option("--only", multiple=True, metavar="TRIAL", help="Run this trial only; repeatable.")
@click.option("--repeats", type=click.IntRange(1, 1000), default=None, help="Runs per trial, including earlier runs.")
@click.option("--release", is_flag=True, help="Lift the quarantine after a GPU reset or an unkillable process.")
@store_option
@output_options()
def command(
    path: Path, only: tuple[str, ...], repeats: int | None, release: bool, store_path: Path | None, output_format: str
) -> None:
    """Run an experiment's trials under supervision.

    The baseline runs first. Results are kept in the store. Finished runs are not repeated, and are not lost if the
    command is killed. Trials that need another boot are skipped and listed. It stops after a GPU reset or if a
    process cannot be killed. Exit code 1 means that a trial failed.
    """
    from rocmend.lab.plan import make_plan
    from rocmend.lab.service import status_of, trial_named
    from rocmend.store.store import Store

    experiment, predictions = read_experiment(path)
    planned = [step.trial for step in make_plan(experiment, predictions)]
    trials = [trial_named(experiment, name) for name in only] or planned
    with Progress("rocmend lab run", "reading the machine") as progress, Store.open(store_path) as store:
        lab = open_laboratory(experiment, store, progress)
        report = lab.run(trials, repeats=repeats, release=release)
        status = status_of(experiment, store, predictions)
    finish_run(report, status, "lab run", path, output_format)
