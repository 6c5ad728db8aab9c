"""Which tests are in the fast tier (``make test``) and which in the rest (``make test-rest``).

A test is in the fast tier unless it, its file or its case is marked ``slow``. Of a test with many parametrised cases
the fast tier holds the first, the last and those marked ``fast``. All tests are in one of the two; without ``--tier``
both run.

``--times`` prints what the tests cost in processor time, child processes included, which a busy machine changes little.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

LIMIT_S = 1.5
"""Processor time of a test, its cases in the fast tier together, from which on it should be marked ``slow``."""
SHOWN = 25
_STARTED = pytest.StashKey[float]()
_WITHOUT = pytest.StashKey[set[str]]()
_COST = "cpu_s"
_NAME = "folders_without_a_fast_test"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers")
    group.addoption("--tier", choices=("fast", "rest", "all"), default="all", help="tests to run (default: all)")
    group.addoption("--times", action="store_true", help="print the processor time of files and tests")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: not in the fast tier, by its measured time (make test-times)")
    config.addinivalue_line("markers", "fast: in the fast tier, however many cases its test has")
    if config.getoption("--times"):
        config.pluginmanager.register(Times(), "tier-times")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier that was asked for, and note which folder has none in the fast one."""
    tier = config.getoption("--tier")
    if tier == "all":
        return
    fast = chosen(items)
    kept = [item for item in items if (item.nodeid in fast) == (tier == "fast")]
    config.hook.pytest_deselected(items=[item for item in items if (item.nodeid in fast) != (tier == "fast")])
    if tier == "fast" and not config.option.file_or_dir:
        config.stash[_WITHOUT] = {room(item) for item in items} - {room(item) for item in kept}
    items[:] = kept


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where a folder has no test in the fast tier; a worker leaves that to its controller."""
    config = session.config
    without = config.stash.get(_WITHOUT, set())
    output: dict[str, object] | None = getattr(config, "workeroutput", None)
    if output is not None:
        output[_NAME] = sorted(without)
    elif without:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker noted."""
    node.config.stash.setdefault(_WITHOUT, set()).update(getattr(node, "workeroutput", {}).get(_NAME, ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if without := config.stash.get(_WITHOUT, set()):
        terminalreporter.write_line(
            f"FAILED: no test in the fast tier: {', '.join(sorted(without))}. See tests/tiers.py."
        )


def chosen(items: Iterable[pytest.Item]) -> set[str]:
    """Return the ids of the tests that are in the fast tier."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is None:
            cases[function(item.nodeid)].append(item)
    return {item.nodeid for every in cases.values() for item in _sample(every)}


def _sample(cases: list[pytest.Item]) -> list[pytest.Item]:
    last = len(cases) - 1
    return [case for place, case in enumerate(cases) if place in {0, last} or case.get_closest_marker("fast")]


def function(nodeid: str) -> str:
    """Return the id of a test without its case."""
    return nodeid.partition("[")[0]


def room(item: pytest.Item) -> str:
    """Return the folder below ``tests`` that a test is in."""
    parts = item.path.relative_to(item.config.rootpath).parts[1:-1]
    return parts[0] if parts else "."


# -- what tests cost ---------------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_STARTED] = _processor_s()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write into a test's last report what it cost: a worker's reports are all that its controller sees."""
    report = yield
    if call.when == "teardown":
        report.user_properties.append((_COST, _processor_s() - item.stash.get(_STARTED, _processor_s())))
    return report


def _processor_s() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


class Times:
    """Adds up what tests cost, and prints it."""

    def __init__(self) -> None:
        self.tests: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            cost = dict(report.user_properties).get(_COST, 0.0)
            self.tests[function(report.nodeid)] += cost if isinstance(cost, float) else 0.0

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Print the slowest files and tests, and which test should change its tier."""
        files: dict[str, float] = defaultdict(float)
        rooms: dict[str, float] = defaultdict(float)
        for test, cost in self.tests.items():
            file = test.partition("::")[0]
            files[file] += cost
            rooms[str(Path(*Path(file).parts[:2]))] += cost
        write = terminalreporter.write_line
        for title, costs in (("folders", rooms), ("files", files), ("tests", self.tests)):
            terminalreporter.section(f"processor time, seconds: {title}")
            for name, cost in sorted(costs.items(), key=lambda one: -one[1])[:SHOWN]:
                write(f"{cost:8.1f}  {name}")
        write(f"{sum(self.tests.values()):8.1f}  all {len(self.tests)} tests")
        if config.getoption("--tier") == "fast":
            over = [f"{cost:8.1f}  {name}" for name, cost in sorted(self.tests.items()) if cost > LIMIT_S]
            terminalreporter.section(f"over {LIMIT_S} s: mark them slow, or make them faster")
            write("\n".join(over) or "none")
