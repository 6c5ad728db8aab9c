"""Commands with a log each and a time by which they end, with all that they have started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from rocmend.core.watch import ABANDON_S, GRACE_S


def _parents() -> dict[int, int]:
    """Return the parent of each process."""
    found = {}
    for one in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            found[int(one.name)] = int((one / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    return found


def below(pid: int) -> list[int]:
    """Return the processes that a process has started, and that these have, as far as they live."""
    parents, found = _parents(), [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def _lives(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


@dataclass(slots=True)
class Steps:
    """Runs commands, several at a time, and ends those that still run when it is left.

    Args:
        logs: Folder of their logs.
        cwd: Where they run.
        env: Their environment.
        end: When all must be over, by the monotonic clock.
        stopped: Nothing is begun any more.
    """

    logs: Path
    cwd: Path
    env: Mapping[str, str]
    end: float
    stopped: bool = False
    _begun: float = field(default_factory=time.monotonic)
    _live: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self._begun

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.end - time.monotonic()

    def tell(self, text: str) -> None:
        """Print a line with the time."""
        print(f"[{self.now():6.1f}] {text}", flush=True)

    def run(self, name: str, command: Sequence[object], seconds: float, gpu: str | None = None) -> int:
        """Run a command to its end, or for so many seconds; return its exit status.

        Args:
            name: Of the step, and of its log.
            command: What is run.
            seconds: How long it may take.
            gpu: The only GPU that it sees; None for all.
        """
        seconds = max(0.0, min(seconds, self.left()))
        if self.stopped:
            return 1
        env = {**self.env} if gpu is None else {**self.env, "CUDA_VISIBLE_DEVICES": gpu}
        begun, late = self.now(), ""
        with (self.logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(part) for part in command], cwd=self.cwd, env=env, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, process_group=0,
            )  # fmt: skip
        with self._lock:
            self._live[process.pid] = process
        if self.stopped:
            # Since it was looked at: whoever stopped did not see this one.
            _end(process)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            late = ", ended as its time was up"
            _end(process)
        with self._lock:
            self._live.pop(process.pid, None)
        self.tell(f"{name}: exit {process.returncode} after {self.now() - begun:.1f} s{late}")
        return process.returncode

    def end_all(self) -> None:
        """End what still runs, and begin nothing more."""
        with self._lock:
            self.stopped = True
            processes = list(self._live.values())
        for process in processes:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all below it, groups of their own included: TERM, a grace period, KILL."""
    pids = [process.pid, *below(process.pid)]
    _signal(pids, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    pids = sorted({*pids, *(one for pid in pids for one in below(pid))})
    _signal(pids, signal.SIGKILL)
    process.wait()
    end = time.monotonic() + ABANDON_S
    while any(map(_lives, pids)) and time.monotonic() < end:
        time.sleep(0.01)


@contextmanager
def running(logs: Path, cwd: Path, env: Mapping[str, str], seconds: float) -> Iterator[Steps]:
    """Give steps that end when this is left, by an interrupt or TERM too."""
    logs.mkdir(parents=True, exist_ok=True)
    steps = Steps(logs, cwd, env, time.monotonic() + seconds)

    def stop(number: int, _frame: object) -> None:
        # Threads that wait for a step go on once it is over.
        steps.end_all()
        raise SystemExit(128 + number)

    before = [(number, signal.signal(number, stop)) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        yield steps
    finally:
        steps.end_all()
        for number, handler in before:
            signal.signal(number, handler)
