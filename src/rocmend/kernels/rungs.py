"""The level of proof that each op has reached on each target, from records alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

import msgspec

from rocmend.core.evidence import Evidence

KIND = "kernel-suite"


class Run(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record of the suite of an op having run on a target.

    Attributes:
        op: The op.
        rung: The level of proof: ``reference``, ``nvidia``, ``emulated`` or ``amd``.
        target: ``cpu``, ``sm90``, ``gfx1151`` …
        verdict: What came out.
        passed: Cases that passed.
        count: Cases that ran.
        date: ISO date.
        versions: Of torch and Triton.
        origin: ``shipped`` with rocmend, or ``store``: run by the user.
        device_name: What it ran on.
        sizes: Which cases.
        known: Cases of these sizes, where not all were to be run; else 0.
    """

    op: str
    rung: str
    target: str
    verdict: str
    passed: int
    count: int
    date: str
    versions: dict[str, str] = {}
    origin: str = "shipped"
    device_name: str = ""
    sizes: tuple[str, ...] = ()
    known: int = 0


def shipped() -> list[Run]:
    """Return the runs whose records ship with rocmend; none where there are none."""
    path = resources.files("rocmend.kernels").joinpath("data", "runs.json")
    if not path.is_file():
        return []
    return msgspec.json.decode(path.read_bytes(), type=list[Run])


def from_evidence(records: Iterable[Evidence]) -> list[Run]:
    """Return the runs among records of a store, in their order."""
    return [
        Run(
            op=record.subject,
            rung=str(record.detail.get("rung", "")),
            target=record.gfx_target,
            verdict=record.verdict.value,
            passed=int(record.detail.get("passed", 0)),
            count=int(record.detail.get("count", 0)),
            date=record.started_at[:10],
            versions=record.versions,
            origin="store",
            device_name=str(record.detail.get("device_name", "")),
            sizes=tuple(record.settings.get("sizes", ())),
            known=int(record.detail.get("known", 0)),
        )
        for record in records
        if record.kind == KIND
    ]


def latest(runs: Iterable[Run]) -> dict[str, dict[tuple[str, str], Run]]:
    """Return the newest run by op, level of proof and target; of one day, the last given (the user's come last)."""
    found: dict[str, dict[tuple[str, str], Run]] = {}
    for run in runs:
        mine = found.setdefault(run.op, {})
        before = mine.get((run.rung, run.target))
        if before is None or before.date <= run.date:
            mine[run.rung, run.target] = run
    return found


def told(runs: Mapping[Any, Run]) -> str:
    """Summarize an op's runs in a line: ``reference 30/30; nvidia sm90 42/42; emulated 8 targets 96/96``."""
    order = {"reference": 0, "nvidia": 1, "emulated": 2, "amd": 3}
    parts = []
    by_rung: dict[str, list[Run]] = {}
    for run in sorted(runs.values(), key=lambda run: (order.get(run.rung, 9), run.target)):
        by_rung.setdefault(run.rung, []).append(run)
    for rung, own in by_rung.items():
        if rung == "emulated" and len(own) > 1:
            passed, count = sum(run.passed for run in own), sum(run.count for run in own)
            parts.append(f"{rung} {len(own)} targets {passed}/{count}")
            continue
        for run in own:
            where = f" {run.target}" if run.target not in {"", "cpu"} else ""
            parts.append(f"{rung}{where} {run.passed}/{run.count}")
    return "; ".join(parts)
