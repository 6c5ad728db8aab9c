"""What the commands ask of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from rocmend.core.suggest import unknown
from rocmend.core.verdict import Verdict
from rocmend.kb.load import Knowledge
from rocmend.lab.boot import Boot, RebootPlan, problems, read_boot, reboot_plan
from rocmend.lab.conclude import Conclusion, conclude
from rocmend.lab.experiment import Experiment
from rocmend.lab.minimize import Minimized, minimized_text, remembered
from rocmend.lab.outcome import Outcome, collect
from rocmend.lab.plan import Step, all_trials, make_plan
from rocmend.lab.predict import Prediction, predict
from rocmend.lab.state import Bench
from rocmend.lab.trial import Trial, spec_of
from rocmend.runner.remote.confine import Rule, rules_of
from rocmend.runner.spec import Local
from rocmend.store.store import Store


class LabPlan(msgspec.Struct, frozen=True):
    """What is to be run, in order.

    Attributes:
        experiment: The experiment's id.
        title: Its title.
        question: What it asks.
        repeats: Runs of each trial.
        steps: Trials in order.
        reboots: What to do for trials that this boot does not serve.
        rules: What each run is denied and given, of its place: what it is on this machine, where that counts.
    """

    experiment: str
    title: str
    question: str
    repeats: int
    steps: tuple[Step, ...]
    reboots: tuple[RebootPlan, ...]
    rules: tuple[Rule, ...] = ()


class LabStatus(msgspec.Struct, frozen=True):
    """How far an experiment is.

    Attributes:
        experiment: The experiment's id.
        title: Its title.
        repeats: Runs wanted of each trial.
        outcomes: What came out so far.
        quarantine: Why nothing may run; empty where it may.
        unrecorded: Attempts that were begun and are not in the store.
        stale: Records of trials that were defined differently.
    """

    experiment: str
    title: str
    repeats: int
    outcomes: tuple[Outcome, ...]
    quarantine: str = ""
    unrecorded: int = 0
    stale: int = 0

    @property
    def failed(self) -> bool:
        """A trial that ran did not pass every time."""
        return any(item.runs and item.verdict != Verdict.PASS for item in self.outcomes)


class Found(msgspec.Struct, frozen=True):
    """A smallest difference, with its sentence."""

    text: str
    result: Minimized


class LabReport(msgspec.Struct, frozen=True):
    """The whole of what an experiment says so far.

    Attributes:
        experiment: The experiment.
        status: How far it is.
        conclusion: What follows.
        minimized: Smallest differences that were found.
        reboots: What to do for trials that wait for a boot.
    """

    experiment: Experiment
    status: LabStatus
    conclusion: Conclusion
    minimized: tuple[Found, ...]
    reboots: tuple[RebootPlan, ...]


Predictions = Mapping[str, tuple[Prediction, ...]]


def predictions_of(experiment: Experiment, knowledge: Knowledge) -> dict[str, tuple[Prediction, ...]]:
    """Return what knowledge entries say of every trial, by its id."""
    entries = [entry for entry in knowledge.entries.values() if entry.expect]
    return {trial.id: predict(experiment, trial, entries) for trial in all_trials(experiment)}


def plan_of(experiment: Experiment, predictions: Predictions, *, root: Path = Path("/")) -> LabPlan:
    """Return the plan. Nothing is run: for trials elsewhere, reboot plans are written as if for a plain boot."""
    steps = make_plan(experiment, dict(predictions))
    reboots = reboots_of(experiment, [step.trial for step in steps], root=root)
    head = experiment.experiment
    spec = spec_of(experiment, experiment.baseline, name="plan", here=experiment.folder, out=experiment.folder)
    return LabPlan(head.id, head.title, head.question, head.repeats, steps, reboots, rules_of(spec.kept().where))


def reboots_of(experiment: Experiment, trials: list[Trial], *, root: Path = Path("/")) -> tuple[RebootPlan, ...]:
    """Return a plan for each boot that trials need and that is not the running one."""
    if not any(factor.kind.needs_boot for factor in experiment.factor):
        return ()
    here = experiment.where.get("kind") in {"local", "container"}  # a container shares the kernel
    boot = read_boot(experiment, Local(), proc=root) if here else Boot()
    plans: dict[tuple[str, ...], RebootPlan] = {}
    for trial in trials:
        if problems(experiment, trial, boot):
            plan = reboot_plan(experiment, trial, boot)
            before = plans.get(plan.wants)
            trials_of = (*before.trials, trial.id) if before else plan.trials
            plans[plan.wants] = msgspec.structs.replace(plan, trials=trials_of)
    return tuple(plans.values())


def status_of(experiment: Experiment, store: Store | None, predictions: Predictions) -> LabStatus:
    """Return how far an experiment is."""
    found = collect(experiment, store, dict(predictions))
    head = experiment.experiment
    if store is None:
        return LabStatus(head.id, head.title, head.repeats, found.outcomes)
    bench = Bench(store.path.parent / "lab" / experiment.id)
    quarantine = bench.state().quarantine
    return LabStatus(
        head.id,
        head.title,
        head.repeats,
        found.outcomes,
        quarantine.reason if quarantine else "",
        sum(1 for _ in bench.begun()),
        found.stale,
    )


def report_of(
    experiment: Experiment, store: Store | None, predictions: Predictions, *, file: str, root: Path = Path("/")
) -> LabReport:
    """Return the report.

    Args:
        experiment: The experiment.
        store: Where the evidence is.
        predictions: What was predicted.
        file: Its file as the reader would name it.
        root: Root of this machine's files.
    """
    status = status_of(experiment, store, predictions)
    found: tuple[Found, ...] = ()
    if store is not None:
        bench = Bench(store.path.parent / "lab" / experiment.id)
        results = remembered(bench, [item.trial for item in status.outcomes])
        found = tuple(Found(minimized_text(experiment, item), item) for item in results)
    known = {item.result.first for item in found if not item.result.incomplete}
    conclusion = conclude(experiment, status.outcomes, file=file, minimized=known)
    waiting = [item.trial for item in status.outcomes if item.waiting and not item.runs]
    return LabReport(experiment.kept(), status, conclusion, found, reboots_of(experiment, waiting, root=root))


def trial_named(experiment: Experiment, name: str) -> Trial:
    """Return a trial of the plan.

    Raises:
        UsageError: There is none of this name.
    """
    trials = {trial.id: trial for trial in all_trials(experiment)}
    if name not in trials:
        raise unknown("lab", "trial of this experiment", name, trials)
    return trials[name]
