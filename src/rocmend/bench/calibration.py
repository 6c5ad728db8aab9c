"""An option of a setting that is found by trying, before the first case: what was tried, and what is taken."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.bench.case import Case
from rocmend.bench.session import Stop, Subject
from rocmend.bench.stats import Comparison
from rocmend.core.errors import UsageError
from rocmend.core.evidence import Evidence, identity_of
from rocmend.core.verdict import Verdict

if TYPE_CHECKING:
    from rocmend.bench.measure import Effort
    from rocmend.store.store import Store

KIND = "calibration"
"""The kind of evidence that it leaves: never ``bench``, as what was tried is no figure of a case."""


class Tried(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value that was tried.

    Attributes:
        name: ``1024``.
        options: What it sets.
        verdict: ``pass`` where it ran; a value that runs out of memory or crashes is out.
        reason: Why it did not.
        figure: In the calibration's unit; None where there is none.
        low: Lower end of its 95 % interval; None where the value was out before there was one.
        high: Its upper end.
        rounds: How many rounds it was in.
        comparison: Against what is compared with, from blocks of the last round alone; None where it was not in that.
    """

    name: str
    options: dict[str, int]
    verdict: Verdict
    reason: str = ""
    figure: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 1
    comparison: Comparison | None = None


class Calibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was found for a setting.

    Attributes:
        setting: The setting's id.
        option: What was tried, as a table calls it: ``ubatch``.
        case: Id of the case that was measured; a setting's calibration holds for no other one.
        test: What a table calls it: ``pp2048``.
        unit: Of the figures; more is better.
        chosen: The options that are taken; empty for the program's defaults.
        compared_with: Name of the value that others must be faster than to be taken.
        text: What came out, in words.
        tried: The values, the smallest first.
        subject: Where it ran.
        started_at: ISO time (UTC).
        time_ms: Wall time.
        quarantine: Why nothing more may be started on this host.
        sizes: The values that were asked for; a calibration holds for no others.
        verdict: ``pass`` where a value is taken; otherwise why none could be; ``skipped`` where it was interrupted.
        left: Names of the values that were still in when it was interrupted.
        measured: The newest measurement of each value until then, to go on with.
    """

    setting: str
    option: str
    case: str
    test: str
    unit: str
    chosen: dict[str, int]
    compared_with: str
    text: str
    tried: tuple[Tried, ...]
    subject: Subject = Subject()
    started_at: str = ""
    time_ms: float = 0.0
    quarantine: str = ""
    sizes: tuple[int, ...] = ()
    verdict: Verdict = Verdict.PASS
    left: tuple[str, ...] = ()
    measured: dict[str, dict[str, Any]] = {}

    @property
    def final(self) -> bool:
        """Trying again would find the same: it did not fail by accident."""
        return not self.quarantine and self.verdict not in {Verdict.INFRA, Verdict.SKIPPED}


class Beginning(msgspec.Struct, frozen=True):
    """What a suite is given to find options of its settings with.

    Attributes:
        settings: Ids of the settings that are going to be measured.
        effort: How much is done for a figure.
        kept: What an earlier part of the run has found.
        keep: Keeps what is found, as soon as it is there.
        step: Told what is done now.
        stop: Asked often.
        cases: What is going to be measured.
        measured: Ids of the settings that an earlier part of the run has figures of.
    """

    settings: Sequence[str]
    effort: Effort
    kept: Sequence[Calibration]
    keep: Callable[[Calibration], None]
    step: Callable[[str], None]
    stop: Stop
    cases: Sequence[Case] = ()
    measured: Collection[str] = ()

    def begun_before(self, setting: str, case: str, sizes: Sequence[int]) -> Calibration | None:
        """Return what an interrupted search of an earlier part of the run has measured; None where there is none."""
        asked = setting, case, tuple(sizes)
        return next((one for one in self.kept if one.left and (one.setting, one.case, one.sizes) == asked), None)

    def found_before(self, setting: str, case: str, sizes: Sequence[int]) -> Calibration | None:
        """Return what an earlier part of the run has found for a setting; None where it is to be found now.

        One that failed is tried again, unless there are figures that were measured with what it left.

        Raises:
            UsageError: There are figures of that setting, and what was found before them was asked for otherwise.
        """
        before = next((one for one in self.kept if one.setting == setting), None)
        fits = before is not None and (before.case, before.sizes) == (case, tuple(sizes))
        if setting in self.measured and not fits:
            raise UsageError(
                "--resume",
                f"the run has figures of {setting} whose batch size was looked for among others, or on another prompt.",
                why="All figures of a setting are measured with the same batch size.",
                next_step="Begin a new run, or give --calibrate, --ubatch, --prompt and --depth as they were.",
            )
        return before if before is not None and fits and (before.final or setting in self.measured) else None


def evidence_of(found: Calibration, group: str, suite: str, origin: Mapping[str, str]) -> Evidence:
    """Return the record that is kept of a calibration; ``calibrations_of`` reads it back."""
    subject = found.subject
    return Evidence(
        kind=KIND,
        subject=f"{suite}/{found.option} @ {found.setting}",
        identity=identity_of(
            {
                "kind": KIND,
                "setting": found.setting,
                "case": found.case,
                "tried": [one.options for one in found.tried],
                "device": subject.device_name,
                "versions": subject.versions,
            }
        ),
        verdict=found.verdict,
        reason=found.text,
        started_at=found.started_at,
        time_ms=found.time_ms,
        gfx_target=subject.gfx_target,
        versions=subject.versions,
        settings={"setting": found.setting, **found.chosen},
        detail={"calibration": msgspec.to_builtins(found), "origin": dict(origin)},
        group=group,
    )


def calibrations_of(store: Store, group: str) -> tuple[Calibration, ...]:
    """Return what a run has found, of each setting the newest."""
    found: dict[str, Calibration] = {}
    for row in store.query(kind=KIND, group=group):
        with contextlib.suppress(msgspec.ValidationError):  # a newer rocmend wrote it
            one = msgspec.convert(row.evidence.detail.get("calibration"), Calibration)
            found.setdefault(one.setting, one)
    return tuple(found.values())[::-1]
