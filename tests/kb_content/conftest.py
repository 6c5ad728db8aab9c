"""The shipped entries and the example machines, read once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from rocmend.core.records import Finding
from rocmend.doctor.diagnose import asked, diagnose
from rocmend.kb.load import Knowledge, load_entries
from rocmend.machine.collect import open_machine, snapshot
from rocmend.machine.facts import Machine
from rocmend.machine.hypothetical import with_target

MACHINES = Path(__file__).resolve().parents[2] / "src" / "rocmend" / "examples" / "machines"

Example = Callable[[str], Machine]
Diagnose = Callable[[str, str | None], dict[str, Finding]]


@cache
def _knowledge() -> Knowledge:
    return load_entries()


@cache
def _machine(name: str) -> Machine:
    return snapshot(open_machine(MACHINES / name), name=name, asked={"workload": None, "model_bytes": None})


@cache
def _findings(name: str, workload: str | None) -> dict[str, Finding]:
    report = diagnose(_machine(name), _knowledge(), workload=workload)
    return {finding.entry_id: finding for finding in report.findings}


@pytest.fixture(scope="session")
def knowledge() -> Knowledge:
    return _knowledge()


@pytest.fixture(scope="session")
def example() -> Example:
    """Return an example machine by name; ``gfx1151`` gives the machine without a GPU, asked for that target."""

    def get(name: str) -> Machine:
        return with_target(_machine("no-amd-gpu"), name) if name.startswith("gfx") else _machine(name)

    return get


@pytest.fixture(scope="session")
def for_workload() -> Callable[[Machine, str | None], Machine]:
    return asked


@pytest.fixture(scope="session")
def findings() -> Diagnose:
    """Return a machine's findings for a workload, by entry id."""
    return _findings
