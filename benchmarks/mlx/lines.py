"""A pytest plugin: a JSON line to ``$ROCMEND_LINES`` for each start and end of a test, so that a crash loses one only.

A test that takes longer than ``$ROCMEND_TEST_LIMIT_S`` ends its process with a traceback of every thread. Tests whose
ids stand in the file ``$ROCMEND_SKIP_IDS`` are not run again.
"""

from __future__ import annotations

import faulthandler
import json
import os
from pathlib import Path
from typing import Any, TextIO

import pytest

_LIMIT_S = float(os.environ.get("ROCMEND_TEST_LIMIT_S", "300"))
_STDERR = os.fdopen(os.dup(2), "w")  # the process's own: pytest captures what tests print


class Lines:
    """Writes what happens, line by line."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.failed: dict[str, str] = {}

    def write(self, **fields: Any) -> None:
        """Write one event."""
        self.out.write(json.dumps(fields) + "\n")
        self.out.flush()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what an earlier process ran."""
        path = os.environ.get("ROCMEND_SKIP_IDS")
        done = set(Path(path).read_text(encoding="utf-8").splitlines()) if path else set()
        items[:] = [item for item in items if item.nodeid not in done]
        self.write(event="collected", count=len(items))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Tell of a file that cannot be imported."""
        if report.failed:
            self.write(event="end", id=report.nodeid, outcome="failed", why=_first(report.longreprtext))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Tell what runs, and watch it."""
        self.write(event="start", id=nodeid)
        faulthandler.dump_traceback_later(_LIMIT_S, exit=True, file=_STDERR)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what came out; subtests and the phases of a test come one by one."""
        if report.failed:
            self.failed.setdefault(report.nodeid, _first(report.longreprtext))
        elif report.skipped and type(report) is pytest.TestReport:
            self.failed.setdefault(report.nodeid, "")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Tell what came out."""
        faulthandler.cancel_dump_traceback_later()
        why = self.failed.get(nodeid)
        self.write(event="end", id=nodeid, outcome="failed" if why else "passed" if why is None else "skipped", why=why)


def _first(text: str) -> str:
    """Return the line of a traceback that says what went wrong."""
    lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return (lines[0] if lines else text.strip().splitlines()[-1] if text.strip() else "no message")[:300]


def pytest_configure(config: pytest.Config) -> None:
    """Write where the environment says."""
    path = os.environ.get("ROCMEND_LINES")
    if path:
        out = Path(path).open("a", encoding="utf-8")  # noqa: SIM115  open for as long as pytest runs
        config.pluginmanager.register(Lines(out), "rocmend-lines")
