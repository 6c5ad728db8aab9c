"""What came out of each trial, counted over its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from rocmend.core.evidence import Evidence, PhaseSpan
from rocmend.core.verdict import Verdict
from rocmend.lab.experiment import Experiment
from rocmend.lab.laboratory import KIND, VOID
from rocmend.lab.plan import Step, make_plan
from rocmend.lab.predict import Prediction, came_true
from rocmend.lab.state import Bench
from rocmend.lab.stats import rate_text, wilson
from rocmend.lab.trial import Trial, definition_of, make_trial
from rocmend.store.store import Store

FLAKY = "flaky"
NOT_RUN = "not run"

Signature = tuple[Verdict, str]
"""A verdict, and where it ended badly the phase in which."""

_PLACED = frozenset({Verdict.HANG, Verdict.CRASH, Verdict.GPU_RESET, Verdict.OOM})


class Told(msgspec.Struct, frozen=True):
    """A prediction, and whether it came true; None where nothing was run."""

    prediction: Prediction
    came_true: bool | None


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came out of a trial.

    Attributes:
        trial: The trial.
        difference: Where it departs from the baseline.
        verdict: The verdict of all its runs, ``flaky`` where they differ, ``not run`` where there is none.
        verdicts: How often each came out.
        endings: How often each verdict came out in each phase: (verdict, phase, runs).
        passes: How many runs passed.
        pass_rate: 95 % interval of the share that passes.
        reason: The newest run's.
        last_phase: The newest run's last phase.
        timeline: The newest run's phases.
        time_ms: Median wall time.
        figures: The newest run's figures.
        told: What was predicted.
        waiting: What the boot lacks for it.
        void: Why its last attempt does not count, where none does.
        images: How many different images its name stood for.
    """

    trial: Trial
    difference: str
    verdict: str = NOT_RUN
    verdicts: dict[Verdict, int] = {}
    endings: tuple[tuple[Verdict, str, int], ...] = ()
    passes: int = 0
    pass_rate: tuple[float, float] = (0.0, 1.0)
    reason: str = ""
    last_phase: str = ""
    timeline: tuple[PhaseSpan, ...] = ()
    time_ms: float = 0.0
    figures: dict[str, float] = {}
    told: tuple[Told, ...] = ()
    waiting: str = ""
    void: str = ""
    images: int = 0

    @property
    def runs(self) -> int:
        """How many runs count."""
        return sum(self.verdicts.values())

    @property
    def steady(self) -> Signature | None:
        """How every run ended, where all ended alike."""
        return self.endings[0][:2] if len(self.endings) == 1 else None

    @property
    def text(self) -> str:
        """The outcome in words: ``hang after graph-reserve``, ``flaky: 3 of 10 pass …``."""
        if not self.runs:
            return NOT_RUN
        if self.steady is not None:
            return signature_text(self.steady)
        ends = ", ".join(f"{count} x {signature_text((verdict, phase))}" for verdict, phase, count in self.endings)
        return f"flaky: {rate_text(self.passes, self.runs)} passed ({ends})"


def signature_of(evidence: Evidence) -> Signature:
    """Return how a run ended."""
    return evidence.verdict, evidence.last_phase if evidence.verdict in _PLACED else ""


def signature_text(signature: Signature) -> str:
    """Return how a run ended, in words."""
    verdict, phase = signature
    return f"{verdict.value} after {phase}" if phase else verdict.value


def count(runs: Iterable[Evidence]) -> Counter[Signature]:
    """Return how often runs ended in each way."""
    return Counter(signature_of(item) for item in runs)


class Outcomes(msgspec.Struct, frozen=True):
    """What came out of an experiment so far.

    Attributes:
        outcomes: Of the plan's trials in its order, then of those that were made up on the way.
        stale: Records of trials that were defined differently: they do not count.
    """

    outcomes: tuple[Outcome, ...]
    stale: int = 0


def collect(
    experiment: Experiment, store: Store | None, predictions: dict[str, tuple[Prediction, ...]] | None = None
) -> Outcomes:
    """Return what came out of every trial.

    Args:
        experiment: The experiment as its file is now: records of other definitions do not count.
        store: Where the evidence is; None for nowhere yet.
        predictions: What is predicted, by trial.
    """
    plan = make_plan(experiment, predictions)
    runs: dict[str, list[Evidence]] = {}
    if store is not None:
        for item in store.query(kind=KIND, group=experiment.id):
            runs.setdefault(str(item.evidence.detail.get("definition")), []).append(item.evidence)
    waiting = {}
    if store is not None:
        state = Bench(store.path.parent / "lab" / experiment.id).state()
        waiting = {item.definition: item.reason for item in state.waiting}
    made = []
    for step in plan:
        mine = runs.pop(step.trial.definition, [])
        made.append(_outcome(step, mine[::-1], waiting.get(step.trial.definition, "")))
    stale = 0
    for definition, mine in sorted(runs.items(), key=lambda item: item[1][-1].started_at):
        trial = _trial_of(experiment, mine[0])
        if trial is None or trial.definition != definition:
            stale += len(mine)
            continue
        step = Step(trial, experiment.difference(trial.settings), 0, needs_boot=False)
        made.append(_outcome(step, mine[::-1], ""))
    return Outcomes(tuple(made), stale)


def _trial_of(experiment: Experiment, evidence: Evidence) -> Trial | None:
    """Return the trial that a record's settings stand for now; None where its factors are no longer those."""
    settings = {str(name): str(value) for name, value in evidence.settings.items()}
    if set(settings) != set(experiment.baseline):
        return None
    try:
        definition_of(experiment, settings)
    except ValueError:
        return None
    return make_trial(experiment, evidence.subject, settings)


def _outcome(step: Step, records: Sequence[Evidence], waiting: str) -> Outcome:
    runs = [item for item in records if item.verdict not in VOID]
    if not runs:
        void = records[-1].reason if records else ""
        told = tuple(Told(item, None) for item in step.predictions)
        return Outcome(step.trial, step.difference, told=told, waiting=waiting, void=void)
    signatures = count(runs)
    verdicts = dict(Counter(item.verdict for item in runs).most_common())
    passes = verdicts.get(Verdict.PASS, 0)
    newest = runs[-1]
    ended_in = {item.last_phase for item in runs}
    return Outcome(
        step.trial,
        step.difference,
        next(iter(verdicts)).value if len(verdicts) == 1 else FLAKY,
        verdicts,
        tuple((verdict, phase, number) for (verdict, phase), number in signatures.most_common()),
        passes,
        wilson(passes, len(runs)),
        newest.reason,
        newest.last_phase,
        newest.timeline,
        median(item.time_ms for item in runs),
        dict(newest.detail.get("figures", {})),
        tuple(Told(item, came_true(item, verdicts, ended_in)) for item in step.predictions),
        waiting,
        images=len({item.identity for item in runs}),
    )
