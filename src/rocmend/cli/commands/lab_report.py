"""``rocmend lab report``."""

from __future__ import annotations

from pathlib import Path

from rocmend.cli.base import rocmend_command
from rocmend.cli.experiments import experiment_argument, read_experiment
from rocmend.cli.output import finish, output_options
from rocmend.cli.stored import existing_store, store_option
from rocmend.report.envelope import Outcome


@rocmend_command(
    "report",
    examples=(
        ("rocmend lab report demo-lab/local-demo.toml", "the conclusions, in the terminal"),
        ("rocmend lab report demo-lab/local-demo.toml -o report.html", "as one page to share"),
    ),
)
@experiment_argument
@store_option
@output_options()
def command(path: Path, store_path: Path | None, output_format: str) -> None:
    """Report what an experiment has shown.

    It has the conclusion in words, a table of strategies, the phases of each trial, and what to try next. It is based
    only on the records in the store. Trials whose definition has changed since do not count.
    """
    from contextlib import ExitStack

    from rocmend.cli.views.lab import report_document
    from rocmend.lab.service import report_of

    experiment, predictions = read_experiment(path)
    with ExitStack() as stack:
        store = existing_store(store_path)
        if store is not None:
            stack.enter_context(store)
        report = report_of(experiment, store, predictions, file=str(path))

    outcome = Outcome("lab report", report)
    finish(outcome, output_format, lambda: report_document(report))
