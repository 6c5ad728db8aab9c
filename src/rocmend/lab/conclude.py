"""Conclusions in words that follow from the evidence: which factor makes which difference."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

import msgspec

from rocmend.core.units import listed
from rocmend.core.verdict import Verdict
from rocmend.lab.experiment import BASELINE, Experiment, Factor
from rocmend.lab.outcome import FLAKY, Outcome, signature_text
from rocmend.lab.stats import rate_text
from rocmend.runner.phases import load_phases

SAME, DIFFERENT, UNCLEAR = "same", "different", "unclear"


class Comparison(msgspec.Struct, frozen=True):
    """Two trials that differ in one factor.

    Attributes:
        factor: The factor.
        before: Its value in the first, the baseline's where one of the two has that.
        after: Its value in the second.
        first: The first trial's id.
        second: The second trial's id.
        effect: ``same``, ``different``, or ``unclear`` where runs differ among themselves and are too few to tell.
        text: What the factor does, in words; empty where it does nothing.
        context: What else departs from the baseline in both; empty for nothing.
    """

    factor: str
    before: str
    after: str
    first: str
    second: str
    effect: str
    text: str = ""
    context: str = ""


class Conclusion(msgspec.Struct, frozen=True):
    """What an experiment says so far.

    Attributes:
        sentence: Which factors make which difference.
        status: ``works``, ``sometimes works``, ``blocked`` or ``nothing run``.
        status_text: The status in a sentence.
        comparisons: What the sentence rests on.
        no_difference: Factors that were shown to make none.
        unclear: Factors of which too few runs were made.
        untried: Factors of which no two trials tell anything.
        next: What to try next, best first.
    """

    sentence: str
    status: str
    status_text: str
    comparisons: tuple[Comparison, ...] = ()
    no_difference: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    next: tuple[str, ...] = ()


def conclude(
    experiment: Experiment,
    outcomes: Sequence[Outcome],
    *,
    file: str = "EXPERIMENT.toml",
    minimized: Collection[str] = (),
) -> Conclusion:
    """Return what follows from outcomes.

    Args:
        experiment: The experiment.
        outcomes: What came out of its trials.
        file: Its file, for the commands that are proposed.
        minimized: Trials from which the smallest difference to another outcome is known.
    """
    comparisons = compare(experiment, outcomes)
    by_factor = {item.name: [one for one in comparisons if one.factor == item.name] for item in experiment.factor}
    alike = [name for name, found in by_factor.items() if found and all(one.effect == SAME for one in found)]
    unclear = [
        name
        for name, found in by_factor.items()
        if any(one.effect == UNCLEAR for one in found) and not any(one.effect == DIFFERENT for one in found)
    ]
    untried = [name for name, found in by_factor.items() if not found]
    status, status_text = _status(experiment, outcomes)
    return Conclusion(
        _sentence(experiment, by_factor, alike, unclear),
        status,
        status_text,
        comparisons,
        tuple(alike),
        tuple(unclear),
        tuple(untried),
        tuple(_next(outcomes, untried, unclear, file, minimized)),
    )


def compare(experiment: Experiment, outcomes: Sequence[Outcome]) -> tuple[Comparison, ...]:
    """Return every pair of trials that ran and differ in one factor."""
    found = []
    for one, other in itertools.combinations([item for item in outcomes if item.runs], 2):
        changed = [
            item for item in experiment.factor if one.trial.settings[item.name] != other.trial.settings[item.name]
        ]
        if len(changed) != 1:
            continue
        factor = changed[0]
        first, second = sorted((one, other), key=lambda item: _order(factor, item))
        effect, text = _effect(factor, first, second)
        before, after = first.trial.settings[factor.name], second.trial.settings[factor.name]
        shared = {**first.trial.settings, factor.name: factor.baseline}
        context = "" if shared == experiment.baseline else experiment.difference(shared)
        found.append(Comparison(factor.name, before, after, first.trial.id, second.trial.id, effect, text, context))
    return tuple(found)


def _order(factor: Factor, outcome: Outcome) -> tuple[bool, int]:
    value = outcome.trial.settings[factor.name]
    return value != factor.baseline, factor.values.index(value)


def _effect(  # noqa: PLR0911  one return a kind of effect
    factor: Factor, first: Outcome, second: Outcome
) -> tuple[str, str]:
    """Say what the second value does against the first."""
    setting = factor.setting(second.trial.settings[factor.name])
    one, other = first.steady, second.steady
    if one is None or other is None:
        apart = first.pass_rate[1] < second.pass_rate[0] or second.pass_rate[1] < first.pass_rate[0]
        if not apart:
            return UNCLEAR, ""
        rates = f"{rate_text(first.passes, first.runs)} to {rate_text(second.passes, second.runs)}"
        return DIFFERENT, f"{setting} changes how often it passes from {rates}"
    if one == other:
        return SAME, ""
    if one[0] is other[0] and one[1] and other[1]:
        return DIFFERENT, f"{setting} shifts the {one[0].value} from {one[1]} to {other[1]}"
    if other[0] is Verdict.PASS:
        return DIFFERENT, f"{setting} fixes the {signature_text(one)}: it passes"
    if one[0] is Verdict.PASS:
        return DIFFERENT, f"{setting} breaks it: {signature_text(other)} instead of a pass"
    return DIFFERENT, f"{setting} turns the {signature_text(one)} into {signature_text(other)}"


def _sentence(
    experiment: Experiment, by_factor: dict[str, list[Comparison]], alike: list[str], unclear: list[str]
) -> str:
    """Return the differences that were found, then what makes none."""
    parts: list[str] = []
    for name, found in by_factor.items():
        mixed = any(one.effect == SAME for one in found)
        texts: dict[str, list[Comparison]] = {}
        for one in found:
            if one.effect == DIFFERENT:
                texts.setdefault(one.text, []).append(one)
        for text, ones in texts.items():
            several = mixed or len(texts) > 1
            parts.append(f"{text} ({_context(ones[0])})" if several else text)
        if mixed and texts:
            same = next(one for one in found if one.effect == SAME)
            called = experiment.factor_named(name).called
            parts.append(f"{called} makes no difference {_context(same)}")
    if alike:
        verb = "makes" if len(alike) == 1 else "make"
        parts.append(f"{_names(experiment, alike)} {verb} no difference")
    if unclear:
        verb = "makes" if len(unclear) == 1 else "make"
        parts.append(f"too few runs to tell whether {_names(experiment, unclear)} {verb} a difference")
    return "; ".join(parts) + "." if parts else ""


def _context(comparison: Comparison) -> str:
    return f"beside {comparison.context}" if comparison.context else "by itself"


def _names(experiment: Experiment, names: Sequence[str]) -> str:
    return listed([experiment.factor_named(name).called for name in names])


def _status(experiment: Experiment, outcomes: Sequence[Outcome]) -> tuple[str, str]:
    ran = [item for item in outcomes if item.runs]
    if not ran:
        return "nothing run", "No trial has been run yet."
    good = [item for item in ran if item.verdict == Verdict.PASS]
    if good:
        named = "; ".join(
            f"{item.trial.id} ({item.difference}; {item.passes} of {item.runs} runs)" for item in good[:3]
        )
        more = f"; and {len(good) - 3} more" if len(good) > 3 else ""
        return "works", f"It works with {named}{more}."
    sometimes = [item for item in ran if item.passes]
    if sometimes:
        best = max(sometimes, key=lambda item: item.passes / item.runs)
        return (
            "sometimes works",
            f"No trial passed every time; {best.trial.id} passed most often: {rate_text(best.passes, best.runs)}.",
        )
    text = f"None of the {len(ran)} trials that ran passed." if len(ran) > 1 else "The one trial that ran did not pass."
    furthest = _furthest(experiment, ran)
    return "blocked", text + furthest


def _furthest(experiment: Experiment, ran: Sequence[Outcome]) -> str:
    """Say which phase the trials came to at most."""
    name = experiment.experiment.phases
    if not name:
        return ""
    beside = experiment.path(name)
    order = [phase.name for phase in load_phases(str(beside) if beside.is_file() else name).phases]
    reached = [(max((order.index(s.name) for s in item.timeline if s.name in order), default=-1), item) for item in ran]
    top = max(place for place, _ in reached)
    if top < 0:
        return ""
    who = ", ".join(item.trial.id for place, item in reached if place == top)
    return f" The furthest came to {order[top]} ({who})."


def _next(
    outcomes: Sequence[Outcome], untried: list[str], unclear: list[str], file: str, minimized: Collection[str]
) -> list[str]:
    """Say what to try next, best first."""
    steps = []
    ready = [item.trial.id for item in outcomes if not item.runs and not item.waiting and not item.void]
    if ready:
        steps.append(f"Run the remaining trials ({', '.join(ready)}): `rocmend lab run {file}`.")
    steps += [
        f"{item.trial.id} could not be run: {item.void}"
        for item in outcomes
        if item.void and not item.runs and not item.waiting
    ]
    waiting = [item.trial.id for item in outcomes if item.waiting and not item.runs]
    if waiting:
        steps.append(
            f"Reboot for {', '.join(waiting)}: `rocmend lab plan {file}` shows how; then `rocmend lab resume {file}`."
        )
    if BASELINE not in minimized:
        steps += _minimize_step(outcomes, file)
    flaky = [item for item in outcomes if item.verdict == FLAKY]
    if flaky or unclear:
        most = max((item.runs for item in flaky), default=1)
        steps.append(
            f"Repeat, because outcomes differ between runs: `rocmend lab run {file} --repeats {max(10, 2 * most)}`."
        )
    for item in outcomes:
        for told in item.told:
            if told.came_true is False:
                expected = signature_text((told.prediction.verdict, told.prediction.phase))
                steps.append(
                    f"The entry {told.prediction.entry} predicted {expected} for {item.trial.id}, "
                    f"and it was {item.text}: check its scope and report it."
                )
    if untried and not ready and not waiting:
        steps.append(
            f"No two trials isolate the effect of {', '.join(untried)}: add strategies that change only one of them."
        )
    return steps


def _minimize_step(outcomes: Sequence[Outcome], file: str) -> list[str]:
    """Propose to minimize between a trial that passed and one that did not, where several factors differ."""
    bad = next((item for item in outcomes if item.trial.id == BASELINE and item.runs and not item.passes), None)
    good = [item for item in outcomes if item.verdict == Verdict.PASS]
    if bad is None or not good:
        return []

    def distance(item: Outcome) -> int:
        return sum(item.trial.settings[name] != value for name, value in bad.trial.settings.items())

    nearest = min(good, key=distance)
    if distance(nearest) < 2:
        return []
    return [f"Find which of its changes matter: `rocmend lab minimize {file} {bad.trial.id} {nearest.trial.id}`."]
