"""What knowledge entries say will come out of a trial, and whether it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from rocmend.core.verdict import Verdict
from rocmend.kb.entry import Entry, Expectation, Status
from rocmend.kb.versions import parse_range, parse_version
from rocmend.lab.experiment import UNSET, Experiment, FactorKind
from rocmend.lab.trial import Trial


class Prediction(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an entry says will come out of a trial.

    Attributes:
        entry: The entry's id.
        verdict: The verdict that it expects.
        phase: The phase in which it expects the run to end; empty for any.
        settings: The settings that it speaks of.
    """

    entry: str
    verdict: Verdict
    phase: str = ""
    settings: dict[str, str] = {}


def predict(experiment: Experiment, trial: Trial, entries: Iterable[Entry]) -> tuple[Prediction, ...]:
    """Return what entries say of a trial; of an entry, the expectation that names most of its settings.

    An entry speaks of a trial where its scope's targets and workloads hold those of the experiment, and all settings
    that one of its expectations names are those of the trial (``unset`` for variables that are not set).
    """
    named = settings_by_name(experiment, trial.settings)
    found = []
    for entry in entries:
        if entry.status in {Status.REFUTED, Status.SUPERSEDED} or not _in_scope(experiment, trial, entry):
            continue
        fitting = [item for item in entry.expect if _fits(item, named)]
        if fitting:
            best = max(fitting, key=lambda item: len(item.settings))
            found.append(Prediction(entry.id, Verdict(best.verdict), best.phase, dict(best.settings)))
    return tuple(found)


def settings_by_name(experiment: Experiment, settings: Mapping[str, str]) -> dict[str, str]:
    """Return a trial's settings by the names that entries use: variables and kernel parameters."""
    named = dict(experiment.experiment.env)
    for factor in experiment.factor:
        if factor.kind is FactorKind.ENV:
            named[factor.env_name] = settings[factor.name]
        elif factor.kind is FactorKind.KERNEL_PARAMETER:
            named[factor.parameter] = settings[factor.name]
    return named


def _fits(expectation: Expectation, named: Mapping[str, str]) -> bool:
    return all(named.get(name, UNSET) == value for name, value in expectation.settings.items())


def _in_scope(experiment: Experiment, trial: Trial, entry: Entry) -> bool:
    head = experiment.experiment
    if entry.scope.rocm and not (_same_software(experiment, trial) and _rocm_fits(head.rocm, entry.scope.rocm)):
        return False
    if entry.scope.gfx and head.gfx not in entry.scope.gfx:
        return False
    return not entry.scope.workload or head.workload in entry.scope.workload


def _same_software(experiment: Experiment, trial: Trial) -> bool:
    """Whether a trial runs the baseline's image and build: what ROCm another one holds is not known."""
    software = {FactorKind.IMAGE, FactorKind.BUILD}
    return all(trial.settings[item.name] == item.baseline for item in experiment.factor if item.kind in software)


def _rocm_fits(version: str, wanted: str) -> bool:
    return bool(version) and parse_version(version) in parse_range(wanted)


def came_true(prediction: Prediction, verdicts: Mapping[Verdict, int], phases: Iterable[str]) -> bool | None:
    """Say whether a prediction came true; None where nothing was run.

    Args:
        prediction: What was expected.
        verdicts: How often each verdict came out.
        phases: The phases that the runs ended in.
    """
    if not verdicts:
        return None
    if set(verdicts) != {prediction.verdict}:
        return False
    return not prediction.phase or set(phases) == {prediction.phase}
