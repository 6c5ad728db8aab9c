"""A suite: cases, settings, and how a setting is opened."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from rocmend.bench.case import DEFAULT, Case, Setting
from rocmend.bench.session import Session, Stop, Subject
from rocmend.core.errors import UsageError
from rocmend.core.suggest import did_you_mean

if TYPE_CHECKING:
    from rocmend.bench.calibration import Beginning
    from rocmend.bench.conclusion import Conclusion
    from rocmend.bench.records import Measured
    from rocmend.machine.facts import Machine


class Bound(msgspec.Struct, frozen=True):
    """What no run can exceed.

    Attributes:
        figure: In the case's unit.
        name: ``peak of the product table``, ``measured copy``, ``measured ceiling``.
        source: Where it comes from: the product, the run.
    """

    figure: float
    name: str
    source: str = ""


class Suite(abc.ABC):
    """What a command measures. Each command makes one of its options."""

    name: str
    """First part of its cases' ids, and of its command: ``gemm``."""
    title: str
    """What it measures, in a few words: ``Matrix products``."""

    @abc.abstractmethod
    def cases(self) -> list[Case]:
        """Return the cases, in the order in which they are run."""

    def settings(self) -> list[Setting]:
        """Return the settings to be compared; the first one is what others are compared with."""
        return [DEFAULT]

    def more_settings(self) -> list[Setting]:
        """Return the settings that are measured only where they are named."""
        return []

    def left_out(self) -> dict[str, str]:
        """Return what is not measured on this machine, settings by their ids, and why."""
        return {}

    def begin(self, beginning: Beginning) -> None:
        """Find, before the first case, options that settings leave to be found; ids of settings stay what they are."""
        del beginning

    def applies(self, case: Case, setting: Setting) -> str:
        """Say why a case is not run under a setting; empty where it is."""
        del case, setting
        return ""

    @abc.abstractmethod
    def open(self, setting: Setting, stop: Stop) -> Session:
        """Start what measures under a setting. It may be called again after a session died."""

    def bounds(self, case: Case, subject: Subject, machine: Machine | None) -> tuple[Bound, ...]:
        """Return what is known to bound the case's figure there; the tightest one is what a table shows."""
        del case, subject, machine
        return ()

    def memory_bytes(self) -> int:
        """Return about how much memory a setting takes at most; 0 where that is not known before."""
        return 0

    def conclusions(self, results: Sequence[Measured]) -> list[Conclusion]:
        """Return what the results of a run say in words, the most important first."""
        del results
        return []


class Selected(Suite):
    """Some cases of a suite under some of its settings.

    Args:
        whole: The suite.
        cases: Globs of the ids wanted, with or without the suite's name before them; none for all.
        settings: Ids or globs of settings; others are compared with the first one. None for all.

    Raises:
        UsageError: One of them fits nothing.
    """

    def __init__(self, whole: Suite, cases: Sequence[str] = (), settings: Sequence[str] = ()) -> None:
        self._whole = whole
        self.name, self.title = whole.name, whole.title
        self._cases, self._ids = whole.cases(), [setting.id for setting in whole.settings()]
        self._left_out = {} if settings else whole.left_out()
        self._more = [] if settings else whole.more_settings()
        if cases:
            ids = [case.id for case in self._cases]
            wanted = {name for glob in cases for name in _fitting("--select", glob, ids, f"{self.name}/")}
            self._cases = [case for case in self._cases if case.id in wanted]
        if settings:
            without = whole.left_out()
            for asked in settings:
                if asked in without:
                    raise UsageError("--setting", f"{asked} cannot be measured here: {without[asked]}.")
            named = dict.fromkeys(name for glob in settings for name in _fitting("--setting", glob, self._ids))
            self._ids = list(named)

    def cases(self) -> list[Case]:
        """Return the cases wanted, in the suite's order."""
        return self._cases

    def settings(self) -> list[Setting]:
        """Return the settings wanted, in the order in which they were named."""
        known = {setting.id: setting for setting in self._whole.settings()}
        return [known[name] for name in self._ids]

    def more_settings(self) -> list[Setting]:
        """Return the settings that could be named, where none is."""
        return self._more

    def left_out(self) -> dict[str, str]:
        """Return what would have been wanted."""
        return self._left_out

    def begin(self, beginning: Beginning) -> None:
        """Find options that settings leave to be found."""
        self._whole.begin(beginning)

    def applies(self, case: Case, setting: Setting) -> str:
        """Say why a case is not run under a setting."""
        return self._whole.applies(case, setting)

    def open(self, setting: Setting, stop: Stop) -> Session:
        """Start what measures under a setting."""
        return self._whole.open(setting, stop)

    def bounds(self, case: Case, subject: Subject, machine: Machine | None) -> tuple[Bound, ...]:
        """Return what is known to bound the case's figure."""
        return self._whole.bounds(case, subject, machine)

    def memory_bytes(self) -> int:
        """Return about how much memory a setting of the whole suite takes at most."""
        return self._whole.memory_bytes()

    def conclusions(self, results: Sequence[Measured]) -> list[Conclusion]:
        """Return what the results say."""
        return self._whole.conclusions(results)


def _fitting(option: str, glob: str, ids: Sequence[str], prefix: str = "") -> list[str]:
    found = [name for name in ids if fnmatchcase(name, glob) or fnmatchcase(name.removeprefix(prefix), glob)]
    if not found:
        near = did_you_mean(glob, ids)
        raise UsageError(option, f"{glob[:80]!r} fits none.", why=near, next_step="--list shows what there is.")
    return found
