"""A setting's process, or its program that is started for each block: where cases are made ready and run."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, Self

import msgspec

from rocmend.bench.case import Case
from rocmend.core.errors import RocmendError
from rocmend.core.verdict import Verdict

Stop = Callable[[], bool]
"""Asked often; what runs is ended where it says True."""


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a case ran.

    Attributes:
        gfx_target: ``gfx1151``, ``sm_90``, ``cpu``; empty where it is not known.
        device: As the program names it: ``cuda:0``, ``Vulkan0``.
        device_name: What the device calls itself.
        versions: Package, build or tool to version.
    """

    gfx_target: str = ""
    device: str = ""
    device_name: str = ""
    versions: dict[str, str] = {}

    @property
    def named(self) -> str:
        """The device with its target, as far as they are known: ``AMD Radeon 8060S (gfx1151)``."""
        if self.device_name and self.gfx_target:
            return f"{self.device_name} ({self.gfx_target})"
        return self.device_name or self.gfx_target


class Prepared(msgspec.Struct, frozen=True, omit_defaults=True):
    """A case made ready: built, run once, its result compared, warmed up.

    Attributes:
        verdict: ``pass`` where it may be timed; ``wrong-output`` and all others get no figure.
        reason: Why not.
        first_s: Seconds of the first run: compilation, search and loading are in it.
        warm_s: Seconds of the runs after it that do not count.
        subject: Where it ran.
        detail: What else is to be kept: the largest error, peak memory, the algorithm that a library chose.
        command: What was run, as a person would type it; empty for a call in a process that stays.
        quarantine: Why nothing more may be started on this host.
        log: Text worth keeping where it failed.
    """

    verdict: Verdict
    reason: str = ""
    first_s: float | None = None
    warm_s: float = 0.0
    subject: Subject = Subject()
    detail: dict[str, Any] = {}
    command: tuple[str, ...] = ()
    quarantine: str = ""
    log: str = ""


class Block(msgspec.Struct, frozen=True, omit_defaults=True):
    """Runs one after another.

    Attributes:
        seconds: Of each run. A run that is too short for the clock is many, and this their mean.
        verdict: ``pass`` where all came to their end.
        reason: Why not.
        quarantine: Why nothing more may be started on this host.
        log: Text worth keeping where it failed.
        waited: Share of its time that its busiest thread waited for a processor that others had.
    """

    seconds: tuple[float, ...]
    verdict: Verdict = Verdict.PASS
    reason: str = ""
    quarantine: str = ""
    log: str = ""
    waited: float = 0.0


class NotStartedError(RocmendError):
    """A session has nothing to measure with: no torch, no such device, no such program."""

    code = "bench"


class Session(abc.ABC):
    """Measures cases under one setting. Others may be open at the same time, but only one of them works at a time."""

    @abc.abstractmethod
    def prepare(self, case: Case) -> Prepared:
        """Make a case ready. The case before it is let go of.

        Raises:
            NotStartedError: Nothing can be measured in this session.
        """

    @abc.abstractmethod
    def block(self, case: Case, time_s: float, least: int = 1) -> Block:
        """Run the prepared case for about so long, and so many times at least."""

    @abc.abstractmethod
    def close(self) -> None:
        """End its process with all that it started; again is allowed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
