"""A suite: cases, settings, and how a setting is opened."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

import msgspec

from rocmend.bench.case import DEFAULT, Case, Setting
from rocmend.bench.session import Session, Stop, Subject

if TYPE_CHECKING:
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
