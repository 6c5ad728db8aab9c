"""The smallest difference of settings that flips the outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from rocmend.core.documents import read_json
from rocmend.core.errors import DataError, UsageError
from rocmend.core.evidence import Evidence
from rocmend.core.files import write_atomic
from rocmend.core.units import listed
from rocmend.lab.ddmin import ddmin
from rocmend.lab.experiment import Experiment
from rocmend.lab.laboratory import Laboratory
from rocmend.lab.outcome import Signature, count, signature_text
from rocmend.lab.state import Bench
from rocmend.lab.trial import Trial, make_trial

FILE_NAME = "minimized.json"

FLAKY_FACTOR = 3
"""A trial whose runs differ is run so many times as often."""


class Tested(msgspec.Struct, frozen=True):
    """A trial that was looked at on the way.

    Attributes:
        trial: Its id.
        changes: The factors that it takes from the second trial.
        text: How its runs ended.
        like_second: It comes out as the second trial does.
    """

    trial: str
    changes: tuple[str, ...]
    text: str
    like_second: bool


class Minimized(msgspec.Struct, frozen=True, omit_defaults=True):
    """The smallest difference between two trials that flips the outcome.

    Attributes:
        first: The trial that one starts from.
        second: The trial whose outcome is wanted.
        first_text: How the first comes out.
        second_text: How the second comes out.
        minimal: The settings to change in the first so that it comes out as the second; none can be left out.
        no_difference: Factors that differ between the two and make no difference beside those.
        tested: What was looked at.
        runs: Runs that were made for it, those made before not counted.
        incomplete: Why it may not be minimal: a trial could not be run.
        definitions: Of the two trials; a result counts only while they are defined so.
    """

    first: str
    second: str
    first_text: str
    second_text: str
    minimal: dict[str, str]
    no_difference: tuple[str, ...]
    tested: tuple[Tested, ...]
    runs: int
    incomplete: str = ""
    definitions: tuple[str, str] = ("", "")


class _CannotRunError(Exception):
    """A trial could not be run, and no further one can."""


class _Search:
    """Runs the trials that delta debugging asks for."""

    def __init__(self, lab: Laboratory, first: Trial, second: Trial, repeats: int) -> None:
        self.lab = lab
        self.first = first
        self.second = second
        self.repeats = repeats
        self.tested: list[Tested] = []
        self.runs = 0
        self.incomplete = ""
        self.ends = self.count(first), self.count(second)

    def count(self, trial: Trial) -> Counter[Signature]:
        """Run a trial as often as needed; return how its runs ended."""
        records = self._run(trial, self.repeats)
        if len(count(records)) > 1:
            records = self._run(trial, self.repeats * FLAKY_FACTOR)
        return count(records)

    def _run(self, trial: Trial, repeats: int) -> list[Evidence]:
        report = self.lab.run([trial], repeats=repeats)
        self.runs += sum(report.ran.values())
        reason = (
            report.quarantine
            or report.void.get(trial.id, "")
            or ("it was stopped" if report.stopped else "")
            or report.waiting.get(trial.id, "")
        )
        if reason:
            raise _CannotRunError(f"{trial.id}: {reason}")
        return self.lab.records(trial)

    def like_second(self, part: tuple[str, ...]) -> bool:
        """Whether the first trial with these factors of the second comes out as the second does."""
        experiment = self.lab.experiment
        settings = {**self.first.settings, **{name: self.second.settings[name] for name in part}}
        trial = make_trial(experiment, "", settings, "which part of a difference matters")
        if not trial.id:
            trial = msgspec.structs.replace(trial, id=f"part-{trial.definition[:8]}")
        ends = self.count(trial)
        first, second = self.ends
        like = distance(ends, second) < distance(ends, first)
        self.tested.append(Tested(trial.id, part, ends_text(ends), like))
        return like


def distance(one: Counter[Signature], other: Counter[Signature]) -> float:
    """Return how different two sets of runs ended: 0 alike, 1 with nothing in common (total variation)."""
    runs, others = one.total(), other.total()
    return sum(abs(one[key] / runs - other[key] / others) for key in {*one, *other}) / 2


def ends_text(ends: Counter[Signature]) -> str:
    """Return how runs ended, in words."""
    if len(ends) == 1:
        return signature_text(next(iter(ends)))
    return ", ".join(f"{number} x {signature_text(key)}" for key, number in ends.most_common())


def minimize(lab: Laboratory, first: Trial, second: Trial, *, repeats: int | None = None) -> Minimized:
    """Find the smallest part of the difference between two trials that flips the outcome.

    Args:
        lab: Runs the trials; runs made before are used.
        first: The trial to start from.
        second: The trial whose outcome is wanted.
        repeats: Runs of each trial; one whose runs differ is run three times as often.

    Raises:
        UsageError: The two come out alike, or one of them could not be run.
    """
    experiment = lab.experiment
    wanted = repeats or experiment.experiment.repeats
    names = tuple(item.name for item in experiment.factor if first.settings[item.name] != second.settings[item.name])
    try:
        search = _Search(lab, first, second, wanted)
    except _CannotRunError as error:
        raise UsageError("lab minimize", f"{error}.", next_step="Both trials must be run first.") from None
    one, other = search.ends
    if distance(one, other) < 0.5:
        raise UsageError(
            "lab minimize",
            f"{first.id} and {second.id} have too similar outcomes: {ends_text(one)}; {ends_text(other)}.",
            next_step="Take two trials with different outcomes; `rocmend lab report` lists them.",
        )
    minimal = names
    try:
        minimal = ddmin(names, search.like_second)
    except _CannotRunError as error:
        search.incomplete = f"{error}"
        seen = [set(item.changes) for item in search.tested if item.like_second]
        minimal = tuple(name for name in names if not seen or name in min(seen, key=len))
    found = Minimized(
        first.id,
        second.id,
        ends_text(one),
        ends_text(other),
        {name: second.settings[name] for name in minimal},
        tuple(name for name in names if name not in minimal),
        tuple(search.tested),
        search.runs,
        search.incomplete,
        (first.definition, second.definition),
    )
    _remember(lab.bench, found)
    return found


def _remember(bench: Bench, found: Minimized) -> None:
    """Keep a result for the report, in place of an earlier one between the same trials."""
    others = [item for item in _read(bench) if item.definitions != found.definitions]
    write_atomic(bench.folder / FILE_NAME, msgspec.json.encode([*others, found]), private=True)


def _read(bench: Bench) -> list[Minimized]:
    path = bench.folder / FILE_NAME
    try:
        return read_json(path, list[Minimized], max_bytes=16 << 20, what="list of results")
    except FileNotFoundError:
        return []
    except DataError as error:
        raise DataError(str(path), f"is damaged: it {error.message}", next_step="Remove it.") from error


def remembered(bench: Bench, trials: Iterable[Trial]) -> tuple[Minimized, ...]:
    """Return earlier results between trials as they are defined now.

    Raises:
        DataError: The file that keeps them is damaged.
    """
    known = {trial.definition for trial in trials}
    return tuple(item for item in _read(bench) if known.issuperset(item.definitions))


def minimized_text(experiment: Experiment, found: Minimized) -> str:
    """Return the result in a sentence or two."""
    settings = [experiment.factor_named(name).setting(value) for name, value in found.minimal.items()]
    changes = listed(settings)
    alone = "alone turns" if len(settings) == 1 else "together turn"
    text = f"{changes} {alone} the {found.first_text} of {found.first} into the {found.second_text} of {found.second}"
    if len(settings) > 1 and not found.incomplete:
        text += "; all of them are needed"
    if found.no_difference:
        names = listed([experiment.factor_named(name).called for name in found.no_difference])
        verb = "makes" if len(found.no_difference) == 1 else "make"
        text += f". {names[0].upper()}{names[1:]} {verb} no difference"
    if found.incomplete:
        text += f". It may not be minimal: {found.incomplete}"
    return text + "."
