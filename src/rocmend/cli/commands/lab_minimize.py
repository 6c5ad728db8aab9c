"""``rocmend lab minimize``."""

from __future__ import annotations

from pathlib import Path

import click

from rocmend.cli.base import rocmend_command
from rocmend.cli.experiments import experiment_argument, open_laboratory, read_experiment
from rocmend.cli.output import finish, output_options
from rocmend.cli.progress import Progress
from rocmend.cli.stored import store_option
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "minimize",
    examples=(
        (
            "rocmend lab minimize demo-lab/local-demo.toml baseline everything-off",
            "which of the changes are needed",
        ),
        (
            "rocmend lab minimize demo-lab/local-demo.toml everything-off baseline --repeats 5",
            "which changes break it, with five runs per trial",
        ),
    ),
)
@experiment_argument
@click.argument("first")
@click.argument("second")
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    default=None,
    help="Runs per trial; three times as many if it is flaky.",
)
@store_option
@output_options()
def command(
    path: Path, first: str, second: str, repeats: int | None, store_path: Path | None, output_format: str
) -> None:
    """Find the settings that change a trial's outcome.

    It finds the fewest differences between two trials that turn FIRST's outcome into SECOND's, by delta debugging.
    Earlier runs are reused. Exit code 1 means that a trial could not be run, so the result may not be minimal.
    """
    from rocmend.cli.views.lab import minimized_document
    from rocmend.lab.minimize import minimize
    from rocmend.lab.service import trial_named
    from rocmend.store.store import Store

    experiment, _ = read_experiment(path)
    trials = trial_named(experiment, first), trial_named(experiment, second)
    with Progress("rocmend lab minimize", "reading the machine") as progress, Store.open(store_path) as store:
        found = minimize(open_laboratory(experiment, store, progress), *trials, repeats=repeats)
    outcome = Outcome("lab minimize", found, FINDINGS if found.incomplete else CLEAN)
    finish(outcome, output_format, lambda: minimized_document(experiment, found))
