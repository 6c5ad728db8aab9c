"""The processes that run cases, and the threads that drive them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock, Timer
from typing import Any

from benchmarks.kernels.suites.board import Board, Item
from benchmarks.kernels.suites.outcomes import Log

from rocmend.core.verdict import Verdict
from rocmend.kernels.suite.supervise import CaseOutcome, events

OF_A_PROCESS_GIB, KEPT_GIB = 0.8, 5.0
"""Memory of the GPU that a process takes for itself, and what is left free."""
CPU_GIB = 1e6
"""The interpreter's cases need next to nothing."""
WORKER = "benchmarks.kernels.suites.worker"
STARTS = 8
"""Times that a thread starts a process anew: each case that hangs or kills its process costs one."""


class Crew:
    """Processes on one or several GPUs.

    Args:
        board: What is to be run.
        log: Where outcomes go.
        device: ``cuda`` or ``cpu``.
        case_s: Seconds for a case.
        threads: Of torch, in each process.
    """

    def __init__(self, board: Board, log: Log, device: str, case_s: float, threads: int = 1) -> None:
        self.board, self.log, self.device, self.case_s = board, log, device, case_s
        self.threads = threads
        self.alive: set[subprocess.Popen[str]] = set()
        self.over = False
        self.lock = Lock()

    def work(self, gpus: list[str], jobs: int, end: float) -> None:
        """Run what the board holds until it is empty or time is up, with so many processes over all GPUs."""
        shares = {gpu: len(range(at, jobs, len(gpus))) for at, gpu in enumerate(gpus)}
        clock = Timer(max(0.0, end - time.monotonic()), self.stop)
        clock.daemon = True
        clock.start()
        with ThreadPoolExecutor(jobs) as pool:
            waits = [pool.submit(self._thread, gpu, share) for gpu, share in shares.items() for _ in range(share)]
            for wait in waits:
                wait.result()
        clock.cancel()

    def stop(self) -> None:
        """End all processes; what they were at counts as not begun."""
        with self.lock:
            self.over = True
            for process in self.alive:
                process.kill()

    def _thread(self, gpu: str, share: int) -> None:
        for _ in range(STARTS):
            if self.over or not self._process(gpu, share):
                return

    def _process(self, gpu: str, share: int) -> bool:
        """Start a process and hand it cases; return whether another one should go on."""
        with tempfile.TemporaryFile("w+") as errors:
            process = self._started(gpu, errors)
            if process is None:
                return False
            try:
                return self._handed(process, errors, gpu, share)
            finally:
                process.kill()
                with suppress(subprocess.TimeoutExpired):  # a driver that hangs does not let go of it
                    process.wait(10)
                for pipe in (process.stdin, process.stdout):
                    with suppress(BrokenPipeError):
                        if pipe is not None:
                            pipe.close()
                with self.lock:
                    self.alive.discard(process)

    def _started(self, gpu: str, errors: Any) -> subprocess.Popen[str] | None:
        paths = [str(Path.cwd() / "src"), str(Path.cwd()), *(entry for entry in sys.path if entry)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "OMP_NUM_THREADS": str(self.threads)}
        env |= {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
        for name in ("ROCMEND_KERNELS", "TRITON_INTERPRET"):
            env.pop(name, None)
        if self.device == "cpu":
            env["TRITON_INTERPRET"] = "1"
        elif gpu:
            env["CUDA_VISIBLE_DEVICES"] = gpu
        command = (sys.executable, "-P", "-m", WORKER, self.device, str(self.case_s))
        with self.lock:
            if self.over:
                return None
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=env, text=True
            )
            self.alive.add(process)
        return process

    def _handed(self, process: subprocess.Popen[str], errors: Any, gpu: str, share: int) -> bool:
        about = self._next_event(process)
        if about is None:
            if not self.over:
                print(f"a process on GPU {gpu or '-'} did not start: {_said(errors)[-600:]}", flush=True)
            return False
        self.log.device({name: value for name, value in about.items() if name != "gib"})
        room = about["gib"] - share * OF_A_PROCESS_GIB - KEPT_GIB
        self.board.opened(gpu, room if self.device != "cpu" else CPU_GIB)
        group = -1
        while True:
            item = self.board.take(gpu, group)
            if item is None:
                return False
            group = item.group
            told = self._told(process, item)
            again = told is not None and told["verdict"] == Verdict.OOM.value and not item.again
            if told is not None and not again:
                self._keep(item, told)
            elif told is None and not self.over:
                self._keep(item, _ended(process, errors))
            self.board.done(gpu, item, again=again)
            if told is None or process.poll() is not None:
                return not self.over

    def _told(self, process: subprocess.Popen[str], item: Item) -> dict[str, Any] | None:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"op": item.op, "case": item.case}) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return None
        return self._next_event(process)

    def _next_event(self, process: subprocess.Popen[str]) -> dict[str, Any] | None:
        assert process.stdout is not None
        for line in process.stdout:
            for event in events(line):
                return event
        return None

    def _keep(self, item: Item, told: Mapping[str, Any]) -> None:
        verdict = Verdict(told["verdict"])
        outcome = CaseOutcome(item.case, verdict, told["detail"], told["worst"], told["ms"])
        self.log.add(item.op, outcome, item.size, told["gib"])
        if verdict is not Verdict.PASS:
            print(f"{item.op}/{item.case}: {verdict.value} {told['detail'][:300]}", flush=True)


def _ended(process: subprocess.Popen[str], errors: Any) -> dict[str, Any]:
    """Return the outcome of a case whose process ended."""
    code, said = process.wait(), _said(errors)
    hang = "Timeout (" in said  # what faulthandler prints before it ends a process
    why = "no end within its time" if hang else f"exit {code}: {said[-300:]}"
    verdict = Verdict.HANG if hang else Verdict.CRASH
    return {"verdict": verdict.value, "detail": why, "worst": 0.0, "ms": 0.0, "gib": None}


def _said(errors: Any) -> str:
    errors.seek(0)
    return str(errors.read()).strip()
