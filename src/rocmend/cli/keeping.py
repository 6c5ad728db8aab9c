"""Keeping a check as evidence."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocmend.cli.output import tell
from rocmend.core.errors import RocmendError
from rocmend.core.evidence import Evidence, identity_of
from rocmend.core.verdict import Verdict

if TYPE_CHECKING:
    from rocmend.cli.check import Check
    from rocmend.machine.facts import Machine
    from rocmend.store.store import Store


def store_or_warning(path: Path | None) -> Store | None:
    """Open the store until the command ends; one that can't be used costs the records, not the check."""
    from rocmend.store.store import Store

    try:
        return click.get_current_context().with_resource(Store.open(path))
    except RocmendError as error:
        tell(f"rocmend: the result is not kept: {error}")
        return None


class Begun:
    """When something began: a stamp by the wall clock, and a duration that no change of that clock falsifies.

    Attributes:
        started_at: ISO time (UTC).
    """

    def __init__(self) -> None:
        self.started_at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        self._begin = time.monotonic()

    def time_ms(self) -> float:
        """Return how long ago it was."""
        return round((time.monotonic() - self._begin) * 1000, 1)


def keep_check(store: Store, check: Check, machine: Machine, begun: Begun, page: str) -> str:
    """Keep a check: its verdict is that of the operations tried, its findings stand in the detail.

    Args:
        store: Where to.
        check: What was found out.
        machine: The facts it rests on.
        begun: When it began.
        page: The HTML report, kept as an artifact.

    Returns:
        The record's id; empty where it is not kept.
    """
    from rocmend.cli.views.diagnosis import verdict
    from rocmend.probe.matrix import rank

    tried = [result.verdict for result in check.probes.results] if check.probes is not None else []
    summary, _ = verdict(check.diagnosis)
    findings: dict[str, list[str]] = {}
    for finding in check.diagnosis.findings:
        findings.setdefault(finding.severity.value, []).append(finding.entry_id)
    evidence = Evidence(
        kind="check",
        subject=check.diagnosis.about,
        identity=identity_of({"kind": "check", "targets": check.targets, "workload": check.environment.workload}),
        verdict=min(tried, key=rank, default=Verdict.SKIPPED),
        reason=summary,
        started_at=begun.started_at,
        time_ms=begun.time_ms(),
        gfx_target=check.targets[0] if check.targets else "",
        settings={"workload": check.environment.workload},
        detail={"findings": findings},
        group=check.probes.group if check.probes is not None else "",
    )
    try:
        first = next(store.query(kind="check", limit=1), None) is None
        kept = store.add(evidence, machine=machine, artifacts={"report.html": page.encode(errors="replace")})
    except RocmendError as error:
        tell(f"rocmend: the check is not kept: {error}")
        return ""
    if first:
        tell(f"rocmend: records of checks are kept in {store.path}: `rocmend store ls`; --no-store keeps none.")
    return kept
