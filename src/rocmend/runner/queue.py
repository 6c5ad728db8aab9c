"""Running many attempts so that none that finished is ever lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from rocmend.core.errors import UsageError
from rocmend.runner.events import Event
from rocmend.runner.journal import Journal, read_results
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec

JOURNAL_NAME = "journal.jsonl"


class QueueReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a queue.

    Attributes:
        ran: How many attempts this call ran.
        resumed: How many had been finished before.
        left: How many were not started.
        quarantine: Why no more were started; empty where all were.
        verdicts: How often each verdict came out, this time.
    """

    ran: int = 0
    resumed: int = 0
    left: int = 0
    quarantine: str = ""
    verdicts: dict[str, int] = {}


def run_queue(  # noqa: PLR0913  each is an option of its own
    attempts: Iterable[tuple[str, AttemptSpec]],
    folder: Path,
    *,
    jobs: int = 1,
    on_event: Callable[[str, Event], None] | None = None,
    on_result: Callable[[AttemptResult], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> QueueReport:
    """Run attempts in order, leaving out those that the journal in ``folder`` says are finished.

    Results are not held in memory: they are handed to ``on_result`` and kept in the journal (``finished``).

    Args:
        attempts: Ids, each once, with what to run.
        folder: Holds the journal and the logs; made where it is not there.
        jobs: Attempts at a time.
        on_event: Called with an attempt's id and event, from several threads where ``jobs`` is above 1.
        on_result: Called with each result, one at a time.
        stop: No more are started, and those that run are ended, when it says True.

    Raises:
        UsageError: An id comes twice, or another process works on the folder.
        KeyboardInterrupt: Interrupted: what ran was ended; the rest can be resumed.
    """
    if jobs < 1:
        raise UsageError("queue", f"jobs must be at least 1, got {jobs}.")
    with Journal(folder / JOURNAL_NAME) as journal:
        return _Queue(journal, on_event, on_result, stop).run(iter(attempts), jobs)


def finished(folder: Path) -> list[AttemptResult]:
    """Return the results in a queue's folder, in the order in which they ended; needs no lock.

    Args:
        folder: As given to ``run_queue``.
    """
    return list(read_results(folder / JOURNAL_NAME))


class _Queue:
    def __init__(
        self,
        journal: Journal,
        on_event: Callable[[str, Event], None] | None,
        on_result: Callable[[AttemptResult], None] | None,
        stop: Callable[[], bool] | None,
    ) -> None:
        self.journal = journal
        self.done = journal.completed_ids()
        self.on_event = on_event
        self.on_result = on_result
        self.outer_stop = stop
        self.lock = threading.Lock()
        self.seen: set[str] = set()
        self.halted = False
        self.quarantine = ""
        self.ran = self.resumed = self.left = 0
        self.verdicts: dict[str, int] = {}
        self.error: BaseException | None = None

    def stopped(self) -> bool:
        return self.halted or (self.outer_stop is not None and self.outer_stop())

    def next(self, attempts: Iterator[tuple[str, AttemptSpec]]) -> tuple[str, AttemptSpec] | None:
        """Return the next attempt to run; None where there is none, or none may be started."""
        with self.lock:
            while True:
                if self.quarantine or self.stopped():
                    return None
                found = next(attempts, None)
                if found is None:
                    return None
                attempt_id, spec = found
                if attempt_id in self.seen:
                    raise UsageError("queue", f"the id {attempt_id!r} comes twice.", next_step="Use unique ids.")
                self.seen.add(attempt_id)
                if self.done.get(attempt_id) == spec.identity():
                    self.resumed += 1
                    continue
                return attempt_id, spec

    def work(self, attempts: Iterator[tuple[str, AttemptSpec]]) -> None:
        """Run attempts until there are no more."""
        try:
            while (found := self.next(attempts)) is not None:
                self.one(*found)
        except BaseException as error:  # noqa: BLE001  handed to the thread that waits for us
            with self.lock:
                self.error = self.error or error
                self.halted = True

    def one(self, attempt_id: str, spec: AttemptSpec) -> None:
        """Run one attempt and count it."""
        tell = self.on_event
        result = run_attempt(
            spec,
            on_event=None if tell is None else lambda event: tell(attempt_id, event),
            journal=self.journal,
            attempt_id=attempt_id,
            stop=self.stopped,
        )
        with self.lock:
            self.ran += 1
            self.verdicts[result.verdict.value] = self.verdicts.get(result.verdict.value, 0) + 1
            self.quarantine = self.quarantine or result.quarantine
            if self.on_result is not None:
                self.on_result(result)

    def run(self, attempts: Iterator[tuple[str, AttemptSpec]], jobs: int) -> QueueReport:
        """Run them all, in this thread or in several."""
        if jobs == 1:
            self.work(attempts)
        else:
            self.together(attempts, jobs)
        if self.error is not None:
            raise self.error
        self.left = sum(1 for attempt_id, spec in attempts if self.done.get(attempt_id) != spec.identity())
        return QueueReport(self.ran, self.resumed, self.left, self.quarantine, self.verdicts)

    def together(self, attempts: Iterator[tuple[str, AttemptSpec]], jobs: int) -> None:
        """Run them in several threads; all are over when this returns or raises, interrupted or not."""
        # Not Thread.join: in CPython 3.11 one that is interrupted takes its thread for ended, and whoever leaves then
        # leaves children behind.
        with ThreadPoolExecutor(jobs, "attempt") as pool:
            try:
                for worker in [pool.submit(self.work, attempts) for _ in range(jobs)]:
                    worker.result()
            except BaseException:  # an interrupt may come before the last one has started
                self.halted = True  # each ends its child within its grace period
                raise
