"""Which trials an experiment calls for, in which order."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rocmend.lab.experiment import BASELINE, Experiment
from rocmend.lab.predict import Prediction
from rocmend.lab.trial import Trial, make_trial


class Step(msgspec.Struct, frozen=True):
    """A trial in a plan.

    Attributes:
        trial: The trial.
        difference: Where it departs from the baseline, in words.
        changes: How many factors it changes.
        needs_boot: It needs a kernel parameter or firmware that the baseline does not have.
        predictions: What knowledge entries say will come out.
    """

    trial: Trial
    difference: str
    changes: int
    needs_boot: bool
    predictions: tuple[Prediction, ...] = ()


def make_plan(experiment: Experiment, predictions: dict[str, tuple[Prediction, ...]] | None = None) -> tuple[Step, ...]:
    """Return the trials in order.

    The baseline comes first; then strategies that change few factors, and of those the ones that knowledge expects to
    work; then, where the experiment asks for it, each other value alone; last what needs a reboot.

    Args:
        experiment: The experiment.
        predictions: What is predicted for trials, by id.
    """
    known = predictions or {}
    trials = all_trials(experiment)
    steps = [_step(experiment, trial, known.get(trial.id, ())) for trial in trials]
    strategies = {BASELINE, *(item.id for item in experiment.strategy)}

    def order(step: Step) -> tuple[bool, bool, bool, int, int]:
        first = step.trial.id != BASELINE
        return first, step.needs_boot, step.trial.id not in strategies, step.changes, _rank(step.predictions)

    return tuple(sorted(steps, key=order))


def all_trials(experiment: Experiment) -> list[Trial]:
    """Return the baseline, the strategies and, where asked for, each other value alone; each setting once."""
    settings: list[tuple[str, dict[str, str], str]] = [(BASELINE, {}, "what is to be explained")]
    settings += [(item.id, dict(item.sets), item.hypothesis) for item in experiment.strategy]
    if experiment.experiment.one_at_a_time:
        settings += [
            (f"{factor.name}-{number}", {factor.name: value}, f"to test {factor.called} alone")
            for factor in experiment.factor
            for number, value in enumerate(factor.values)
            if value != factor.baseline
        ]
    made: dict[str, Trial] = {}
    for trial_id, sets, hypothesis in settings:
        trial = make_trial(experiment, trial_id, experiment.baseline | sets, hypothesis)
        made.setdefault(trial.definition, trial)
    return list(made.values())


def _step(experiment: Experiment, trial: Trial, predictions: tuple[Prediction, ...]) -> Step:
    changed = [item for item in experiment.factor if trial.settings[item.name] != item.baseline]
    return Step(
        trial,
        experiment.difference(trial.settings),
        len(changed),
        any(item.kind.needs_boot for item in changed),
        predictions,
    )


def _rank(predictions: Sequence[Prediction]) -> int:
    """Order by what is expected: first what should work, last what should not."""
    if not predictions:
        return 1
    return 0 if any(item.verdict == "pass" for item in predictions) else 2
