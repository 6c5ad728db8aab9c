"""``rocmend lab status``."""

from __future__ import annotations

from pathlib import Path

from rocmend.cli.base import rocmend_command
from rocmend.cli.experiments import experiment_argument, read_experiment
from rocmend.cli.output import finish, output_options
from rocmend.cli.stored import existing_store, store_option
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "status",
    examples=(
        ("rocmend lab status demo-lab/local-demo.toml", "which trials ran, and their results"),
        ("rocmend lab status demo-lab/local-demo.toml --json", "the same for a script"),
    ),
)
@experiment_argument
@store_option
@output_options()
def command(path: Path, store_path: Path | None, output_format: str) -> None:
    """Show an experiment's progress.

    It lists the runs done and planned, the verdicts, and which trials wait for a reboot. Exit code 1 means that a
    trial failed, or that the host is quarantined.
    """
    from contextlib import ExitStack

    from rocmend.cli.views.lab import status_document
    from rocmend.lab.service import status_of

    experiment, predictions = read_experiment(path)
    with ExitStack() as stack:
        store = existing_store(store_path)
        if store is not None:
            stack.enter_context(store)
        status = status_of(experiment, store, predictions)
    outcome = Outcome("lab status", status, FINDINGS if status.failed or status.quarantine else CLEAN)
    finish(outcome, output_format, lambda: status_document(status, str(path)))
