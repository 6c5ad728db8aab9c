"""What the commands of the group ``lab`` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rocmend.core.units import time_text

if TYPE_CHECKING:
    from rocmend.cli.progress import Progress
    from rocmend.lab.experiment import Experiment
    from rocmend.lab.laboratory import Laboratory, RunReport
    from rocmend.lab.laboratory import Progress as Happened
    from rocmend.lab.predict import Prediction
    from rocmend.lab.service import LabStatus
    from rocmend.store.store import Store

F = TypeVar("F", bound=Callable[..., Any])


def experiment_argument(function: F) -> F:
    """Add the argument ``EXPERIMENT.toml``; passes ``path``."""
    return click.argument("path", metavar="EXPERIMENT.toml", type=click.Path(path_type=Path))(function)


def read_experiment(path: Path) -> tuple[Experiment, dict[str, tuple[Prediction, ...]]]:
    """Return an experiment and what knowledge says of its trials.

    Raises:
        UsageError: The file is not there.
        DataError: It is not an experiment.
    """
    from rocmend.kb.load import load_entries
    from rocmend.lab.load import load_experiment
    from rocmend.lab.service import predictions_of

    experiment = load_experiment(path)
    return experiment, predictions_of(experiment, load_entries())


def open_laboratory(experiment: Experiment, store: Store, show: Progress) -> Laboratory:
    """Return what runs an experiment's trials, telling what happens."""
    from rocmend.cli.source import take_snapshot
    from rocmend.lab.laboratory import Laboratory

    here = experiment.where.get("kind") in {"local", "container"}
    return Laboratory(
        experiment,
        store,
        machine=take_snapshot(None) if here else None,
        tell=lambda happened: tell(happened, show),
    )


def tell(happened: Happened, show: Progress) -> None:
    """Print how a run ended, and show which phase one is in."""
    from rocmend.core.visible import one_line

    name = f"{happened.trial}, run {happened.number}"
    if happened.evidence is not None:
        ended = happened.evidence
        show.say(one_line(f"{name}: {ended.verdict.value} after {time_text(ended.time_ms)}: {ended.reason}"))
    elif happened.event is not None and happened.event.kind == "phase":
        show(f"{name}: {happened.event.phase}")


def finish_run(report: RunReport, status: LabStatus, command: str, file: Path, output_format: str) -> None:
    """Print what a run did and how far the experiment is, and leave: 1 where a trial failed or could not be run."""
    from rocmend.cli.output import finish
    from rocmend.cli.views.lab import run_document
    from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

    bad = status.failed or bool(report.void or report.quarantine or report.waiting or report.stopped)
    outcome = Outcome(command, {"run": report, "status": status}, FINDINGS if bad else CLEAN)
    finish(outcome, output_format, lambda: run_document(report, status, str(file)))
