"""Taking a snapshot: every collector in a child of its own, then the derivations in their order."""

from __future__ import annotations

import datetime as dt
import signal
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.documents import MALFORMED
from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.records import CollectorRun, CollectorStatus, Fact, Gap
from rocmend.core.suggest import unknown
from rocmend.core.supervise import ChildResult, Ending, run_children
from rocmend.machine.captured import CapturedRoot
from rocmend.machine.derivations import derive_all
from rocmend.machine.facts import ASKED_FACTS, COLLECTORS, Collector, FactSink, Machine, declared_facts
from rocmend.machine.hardware.gpus import TOPOLOGY
from rocmend.machine.live import LiveRoot
from rocmend.machine.recording import Recording
from rocmend.machine.root import ChosenPython, Root

CAPTURED_CHILDREN = 2
"""Children that share a captured machine's collectors: there a fork costs more than a collector."""

LIVE_PARALLEL = 8
"""Collectors of a live machine that run at once: they wait for tools more than they compute."""

MAX_PAYLOAD_BYTES = 64 << 20
"""What one collector may state (and, for a capture, have read)."""

THIS_MACHINE = "this machine"
"""What the machine that is read here is called; a captured one is called by its folder."""


class _Outcome(msgspec.Struct):
    """What a collector's child hands back."""

    facts: list[Fact]
    gaps: list[Gap]
    error: str = ""
    record: Recording | None = None


def open_machine(directory: Path | None, python: ChosenPython | None = None) -> Root:
    """Return the captured machine in ``directory``, or the running machine where that is None.

    Args:
        directory: The capture.
        python: The Python environment of the running machine that was asked for.

    Raises:
        UsageError: The folder is no capture.
        DataError: The capture is damaged or incomplete.
    """
    if directory is None:
        return LiveRoot(python=python)
    root = CapturedRoot(directory)
    root.check()
    return root


def fact_docs() -> list[tuple[str, str, str]]:
    """Return every fact that there can be: (key or pattern, documentation, the unit that states it), by key."""
    return sorted(declared_facts())


def snapshot(
    root: Root,
    *,
    name: str,
    asked: Mapping[str, Any] | None = None,
    only: Collection[str] | None = None,
) -> Machine:
    """Collect and derive all facts about a machine.

    Args:
        root: The machine, live or captured.
        name: What to call it.
        asked: What the person asked for: ``workload``, ``model_bytes``; they become ``ask.*`` facts.
        only: Names of the collectors to run; None for all.

    Returns:
        The machine with its facts, its gaps, and how each collector ended. A unit that cannot be loaded is listed there
        with status ``error``.

    Raises:
        UsageError: ``only`` or ``asked`` names something that there is not.
        UnitError: Derivations need each other in a circle.
    """
    collectors = _chosen(only)
    _load_tables(root)
    facts: dict[str, Fact] = {}
    gaps: dict[str, Gap] = {}
    runs: list[CollectorRun] = []
    for collector, result in _run_all(root, collectors):
        runs.append(_merge(root, collector, result, facts, gaps))
    runs += [
        CollectorRun(problem.module, CollectorStatus.ERROR, 0.0, problem.reason) for problem in COLLECTORS.problems
    ]
    _put_asked(asked or {}, facts)
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    at = root.manifest.captured_at if isinstance(root, CapturedRoot) else now
    machine = Machine(name, at, facts, gaps, tuple(runs))
    return derive_all(machine)


def _load_tables(root: Root) -> None:
    """Read the gfx tables once, before the fork, where there are GPUs to look up in them."""
    if root.exists(TOPOLOGY):
        from rocmend.core import gfx

        gfx.targets()
        gfx.products()


def _chosen(only: Collection[str] | None) -> list[Collector]:
    known = dict(COLLECTORS)
    for name in only or ():
        if name not in known:
            raise unknown("collectors", "collector", name, known)
    return [collector for name, collector in known.items() if only is None or name in only]


def _run_all(root: Root, collectors: list[Collector]) -> Iterable[tuple[Collector, ChildResult]]:
    jobs: dict[str, tuple[Callable[[], bytes], float]] = {
        collector.name: (partial(_collect, root, collector), collector.time_limit_s) for collector in collectors
    }
    results = run_children(
        jobs,
        max_payload_bytes=MAX_PAYLOAD_BYTES,
        max_parallel=LIVE_PARALLEL if root.live else CAPTURED_CHILDREN,
        batch_size=1 if root.live else -(-len(jobs) // CAPTURED_CHILDREN),
    )
    return [(collector, results[collector.name]) for collector in collectors]


def _collect(root: Root, collector: Collector) -> bytes:
    """Run one collector; called in its child."""
    sink = FactSink(collector.name, collector.facts)
    error = ""
    try:
        collector.collect(root, sink)
    except RocmendError as raised:
        error = f"{type(raised).__name__}: {raised}"
    record = root.record if isinstance(root, LiveRoot) else None
    return msgspec.json.encode(_Outcome(list(sink.facts.values()), list(sink.gaps.values()), error, record))


def _merge(
    root: Root, collector: Collector, result: ChildResult, facts: dict[str, Fact], gaps: dict[str, Gap]
) -> CollectorRun:
    """Take over what a collector stated, and say of what it promised and did not state why it is missing."""
    status, reason = _status(result)
    if status is CollectorStatus.OK:
        try:
            outcome = msgspec.json.decode(result.payload, type=_Outcome)
        except MALFORMED as error:
            outcome = _Outcome([], [], f"its facts could not be read back: {error}")
        for fact in outcome.facts:
            facts.setdefault(fact.key, fact)
        for gap in outcome.gaps:
            gaps.setdefault(gap.key, gap)
        if outcome.record is not None and isinstance(root, LiveRoot) and root.record is not None:
            root.record.merge(outcome.record)
        if outcome.error:
            status, reason = CollectorStatus.ERROR, outcome.error
    for key in collector.facts:
        if key in facts or key in gaps:
            continue
        if status is not CollectorStatus.OK:
            why = f"the collector {collector.name} ended with {status.value}: {reason}"
            gaps[key] = Gap(key, why, f"collector {collector.name}")
        elif "*" not in key:
            gaps[key] = Gap(key, "this machine has nothing to read it from", f"collector {collector.name}")
    return CollectorRun(collector.name, status, result.time_ms, reason)


def _status(result: ChildResult) -> tuple[CollectorStatus, str]:
    if result.ending is Ending.TIMEOUT:
        stuck = " and could not be killed: it waits inside the kernel" if result.unkillable else ""
        return CollectorStatus.TIMEOUT, f"took longer than its limit{stuck}"
    if result.ending is Ending.SIGNALLED:
        number = result.signal or 0
        known = number in set(signal.Signals)
        return CollectorStatus.CRASH, f"ended by {signal.Signals(number).name if known else f'signal {number}'}"
    if result.ending is Ending.FLOODED:
        return CollectorStatus.ERROR, f"returned more than {MAX_PAYLOAD_BYTES} bytes"
    if result.ending is not Ending.EXITED or result.error:
        return CollectorStatus.ERROR, result.error or result.ending.value
    return CollectorStatus.OK, ""


def _put_asked(asked: Mapping[str, Any], facts: dict[str, Fact]) -> None:
    unknown = sorted(key for key in asked if f"ask.{key}" not in ASKED_FACTS)
    if unknown:
        raise UsageError("snapshot", f"nothing can be asked about {', '.join(unknown)}.")
    for key in ASKED_FACTS:
        facts[key] = Fact(key, asked.get(key.removeprefix("ask.")), "command line")


def default_name(directory: Path | None) -> str:
    """Return what a machine is called where nobody named it: the capture folder's name, or ``this machine``."""
    return THIS_MACHINE if directory is None else directory.resolve().name
