"""A benchmark alone on this machine: the lock, health before, the run, its evidence, health after.

It runs on the machine that is measured, started by ``rocmend bench exclusive``, and says what it does in messages.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from rocmend import __version__
from rocmend.bench.fleet.health import OWN_COMMAND, Checkup
from rocmend.bench.fleet.messages import PROTOCOL, Busy, Doing, Ended, Health, Hello, Message, Ran, parts_of
from rocmend.bench.lock import BusyError, measuring
from rocmend.bench.records import KIND
from rocmend.core.documents import MALFORMED, read_document
from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.files import make_private
from rocmend.core.places import data_home
from rocmend.core.scratch import ScratchFolder
from rocmend.core.variables import MEASURING, PROGRESS
from rocmend.core.verdict import Verdict
from rocmend.core.visible import one_line
from rocmend.report.envelope import CLEAN, FAILED, FINDINGS
from rocmend.runner.events import Event, EventKind
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import LONGEST_S, AttemptSpec, Command, Limits
from rocmend.store.exchange import FOLDER, Manifest, archived, packed
from rocmend.store.store import Store

if TYPE_CHECKING:
    from rocmend.core.redact import Redactor
    from rocmend.store.records import StoredEvidence

VISIBLE = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
"""Variables that show a program one GPU alone."""
RUN = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
SUITES = ("gemm", "kernels", "llama", "memory", "mlx", "nn", "serve")
"""Benchmarks that measure a machine."""

_EVERY_S = 10.0
"""Between two messages at least, so that a host that is silent is known to be gone."""
_KEPT_S = 14 * 86400.0
"""How long a host keeps the results of a run, to go on with it."""
_MOST_BYTES = 256 << 20

Emit = Callable[[Message], None]


class Speaker:
    """Sends messages, and the last one of what is being done again when nothing else was sent for a while.

    Args:
        send: Sends one; called from two threads, never at the same time.
        every_s: How long nothing may be sent.
    """

    def __init__(self, send: Emit, every_s: float = _EVERY_S) -> None:
        self._send, self._every_s = send, every_s
        self._lock, self._end = threading.Lock(), threading.Event()
        self._doing, self._at = Doing("begins"), time.monotonic()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def __call__(self, message: Message) -> None:
        """Send a message."""
        with self._lock:
            if isinstance(message, Doing):
                self._doing = message
            self._at = time.monotonic()
            self._send(message)

    def _repeat(self) -> None:
        while not self._end.wait(self._every_s / 4):
            if time.monotonic() - self._at >= self._every_s:
                self(self._doing)


def measure_alone(  # noqa: PLR0913  each is an option of the command
    words: Sequence[str],
    *,
    run: str,
    gpus: Sequence[str],
    emit: Emit,
    redactor: Redactor,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Run a benchmark on this machine while no other rocmend measures here; return the exit code.

    Args:
        words: The benchmark's command line: ``gemm --quick``.
        run: Id of the run; its results are kept here under it, so that it can be gone on with.
        gpus: Numbers of the GPUs, measured one after the other; none for the machine as it is.
        emit: Told of each message.
        redactor: Replaces names in the evidence.
        stop: Asked often: what was measured until then is sent.

    Raises:
        UsageError: This benchmark cannot be run so.
    """
    if not words or words[0] not in SUITES:
        raise UsageError(
            "bench exclusive", f"expected a benchmark ({', '.join(SUITES)}), got {' '.join(words)[:80]!r}."
        )
    if not RUN.fullmatch(run):
        raise UsageError("--run", f"{run[:80]!r} is no id of a run.", next_step="Use lower-case letters and digits.")
    with Speaker(emit) as speak:
        speak(Hello(PROTOCOL, __version__, tuple(gpus) or ("",)))
        try:
            with measuring(f"bench {words[0]}"):
                return _Host(tuple(words), run, speak, redactor, stop).all(tuple(gpus) or ("",))
        except BusyError as error:
            speak(Busy(error.message))
            return FINDINGS
        finally:
            speak(Ended())


class _Host:
    def __init__(
        self, words: tuple[str, ...], run: str, emit: Emit, redactor: Redactor, stop: Callable[[], bool]
    ) -> None:
        self.words, self.emit, self.redactor, self.stop = words, emit, redactor, stop
        self.folder = data_home() / "fleet" / "measured" / run
        self.code = CLEAN

    def all(self, gpus: Sequence[str]) -> int:
        """Measure all GPUs, as long as the machine is healthy."""
        _forget_old(self.folder.parent, self.folder)
        checkup = Checkup(self.words)
        try:
            for gpu in gpus:
                if self.stop() or not self._one(gpu, checkup):
                    break
        finally:
            checkup.close()
        return self.code

    def _one(self, gpu: str, checkup: Checkup) -> bool:
        """Measure one GPU; return whether the machine is fit for another one."""
        env = dict.fromkeys(VISIBLE, gpu) if gpu else {}
        if not self._healthy("before", gpu, checkup, env):
            return False
        store = self.folder / (f"gpu-{gpu}" if gpu else "gpu") / "evidence.sqlite"
        make_private(store.parent)
        ran = self._run(gpu, env, store)
        self.emit(ran)
        self.code = max(self.code, ran.code if ran.code in {CLEAN, FINDINGS, FAILED} else FINDINGS)
        self.emit(Doing("sends its evidence", gpu))
        for part in parts_of(self._archive(store), gpu) if store.exists() else ():
            self.emit(part)
        return not self.stop() and self._healthy("after", gpu, checkup, env)

    def _healthy(self, when: str, gpu: str, checkup: Checkup, env: Mapping[str, str]) -> bool:
        self.emit(Doing(f"checks its health {when} the run", gpu))
        health: Health = checkup.check(when, gpu, env)
        self.emit(health)
        if health.problems:
            self.code = max(self.code, FINDINGS)
        return not health.problems

    def _run(self, gpu: str, env: Mapping[str, str], store: Path) -> Ran:
        """Run the benchmark as a person would, with its results in a store of this run alone."""
        suite = self.words[0]
        resume = ("--resume", "last") if store.exists() and _has_run(store, suite) else ()
        said: list[str] = []

        def hear(event: Event) -> None:
            if event.kind is not EventKind.OUTPUT or not event.text.strip():
                return
            before, colon, text = event.text.partition(": ")
            if colon and before == f"rocmend bench {suite}":
                self.emit(Doing(one_line(text)[:300], gpu))
            else:
                said[:] = [*said, one_line(event.text)[:300]][-3:]

        with ScratchFolder("fleet") as scratch:
            result_file = scratch / "run.json"
            options = ("--store", str(store), "-o", str(result_file), "--no-redact", *resume)
            spec = AttemptSpec(
                f"bench {suite}",
                Command((*OWN_COMMAND, "bench", *self.words, *options)),
                env={**env, PROGRESS: "1", MEASURING: "1"},
                limits=Limits(total_s=LONGEST_S, silence_s=LONGEST_S),
            )
            self.emit(Doing("goes on with the run" if resume else "starts the benchmark", gpu))
            result = run_attempt(spec, on_event=hear, stop=self.stop)
            data = _data_of(result_file)
        results = data.get("results") or []
        expected = [item for item in results if item.get("verdict") not in {"skipped", "unsupported"}]
        notes = [str(note)[:500] for note in data.get("notes") or []]
        # one that was ended wrote no result, but has kept figures
        figures = sum("figure" in item for item in expected) if data else _figures(store, suite)
        quarantine = str(data.get("quarantine") or "") or result.quarantine
        reason = quarantine if data or quarantine else " ".join(said) or result.reason
        return Ran(
            gpu,
            FAILED if result.exit_code is None else result.exit_code,
            reason,
            figures,
            max(figures, len(expected) + len(data.get("not_run") or ())),
            tuple(notes),
            quarantine,
        )

    def _archive(self, store: Path) -> bytes:
        """Return the evidence of the newest run in a store, redacted, as ``rocmend share`` would write it."""
        with Store.open(store) as opened:
            records = _records(opened, self.words[0])
            if not records:
                return b""
            manifest = Manifest(
                FOLDER,
                __version__,
                max(record.evidence.started_at for record in records),
                {"evidence.jsonl": "the evidence, for rocmend share show and import"},
            )
            return archived(manifest, packed(opened, records, self.redactor))


def _records(store: Store, suite: str) -> list[StoredEvidence]:
    """Return the newest run of a benchmark in a store."""
    group = store.last_group(f"{KIND}-{suite}-")
    return list(store.query(group=group)) if group else []


def _has_run(store: Path, suite: str) -> bool:
    with contextlib.suppress(RocmendError), Store.open(store, create=False) as opened:
        return bool(_records(opened, suite))
    return False


def _figures(store: Path, suite: str) -> int:
    """Return how many figures a store has of a benchmark."""
    with contextlib.suppress(RocmendError), Store.open(store, create=False) as opened:
        records = [row.evidence for row in _records(opened, suite)]  # calibrations are among them
        return len({one.subject for one in records if one.kind == KIND and one.verdict is Verdict.PASS})
    return 0


def _data_of(file: Path) -> dict[str, Any]:
    """Return what a benchmark wrote; nothing where it wrote none."""
    try:
        whole = msgspec.json.decode(read_document(file, max_bytes=_MOST_BYTES), type=dict[str, Any])
    except (OSError, RocmendError, *MALFORMED):
        return {}
    found = whole.get("data")
    return found if isinstance(found, dict) else {}


def _forget_old(folder: Path, own: Path) -> None:
    """Remove the results of runs that nobody went on with for two weeks."""
    for one in _folders(folder):
        with contextlib.suppress(OSError):
            if one != own and time.time() - one.stat().st_mtime > _KEPT_S:
                shutil.rmtree(one, ignore_errors=True)
    make_private(own)
    with contextlib.suppress(OSError):
        os.utime(own)


def _folders(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (one for one in folder.iterdir() if RUN.fullmatch(one.name) and not one.is_symlink())
