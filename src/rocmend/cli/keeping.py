"""Keeping a check as evidence."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from rocmend.cli.output import tell
from rocmend.cli.resumable import command_line
from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.evidence import Evidence, identity_of
from rocmend.core.verdict import Verdict

if TYPE_CHECKING:
    from rocmend.cli.check import Check, Earlier
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


class CutShort:
    """A check that may be interrupted: what it did is kept, and ``--resume`` goes on with it.

    Args:
        store: Where it is kept; None keeps nothing.
        resume: Go on with the newest check of the same command line that was not completed.

    Attributes:
        line: The command line, without ``--resume``.
        group: The run of probes to go on with; empty for a new one.

    Raises:
        UsageError: There is no such check.
    """

    def __init__(self, store: Store | None, *, resume: bool) -> None:
        self.line = command_line().replace(" --resume", "")
        self.group = ""
        self._kept, self._done = store is not None, 0
        if resume and store is not None:
            self.group = self._newest(store)

    @property
    def since(self) -> str:
        """When the check began that is gone on with, ``20260131-120000``; empty where it is a new one."""
        return self.group.removeprefix("probe-")[:15]

    def _newest(self, store: Store) -> str:
        from rocmend.probe.run import begun_with

        complete = {row.evidence.group for row in store.query(kind="check")}
        for group in sorted(store.group_names("probe-"), reverse=True):
            if group not in complete and begun_with(store, group) == self.line:
                return group
        raise UsageError(
            "--resume",
            f"the store has no `{self.line}` that was cut short.",
            next_step="Leave out --resume to begin one, or give the options that it was begun with.",
        )

    def note(self, *_: Any) -> None:
        """Take note that an operation is done."""
        self._done += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt and self._kept and (self._done or self.group):
            tell(f"What was done is kept. To go on: {self.line} --resume")


def earlier_runs(store: Store) -> tuple[Earlier, ...]:
    """Return the newest run of each benchmark that this store has of its own."""
    from rocmend.bench.stored import chosen_runs
    from rocmend.cli.check import Earlier
    from rocmend.cli.views.bench import run_summary

    try:
        runs, _ = chosen_runs(store, ())
    except RocmendError:
        return ()  # of an older kind: `rocmend report` says what can't be read
    return tuple(
        Earlier(run.group, run.title, min(one.started_at for one in run.results), run_summary(run)[0]) for run in runs
    )


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
