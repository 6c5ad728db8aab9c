"""A benchmark on several hosts at once: each under supervision, none of them able to lose the others' results."""

from __future__ import annotations

import datetime as dt
import re
import secrets
import shlex
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import msgspec

from rocmend import __version__
from rocmend.bench.fleet.messages import MARK, Busy, Doing, Ended, Health, Hello, Joiner, Part, Ran, message_in
from rocmend.bench.fleet.places import Host
from rocmend.bench.fleet.state import Fleet, HostRun, Notes, State
from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.evidence import Evidence
from rocmend.core.scratch import ScratchFolder
from rocmend.core.visible import one_line
from rocmend.runner.events import Event, EventKind
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Limits, Ssh
from rocmend.store.exchange import read_archive, take
from rocmend.store.store import Store

_VERSION = re.compile(r"^rocmend (\S{1,40})\s*$", re.MULTILINE)
_ANSWER = Limits(total_s=60.0, silence_s=60.0, grace_s=2.0)
_SILENCE_S = 120.0
"""A host says something every ten seconds."""
_GRACE_S = 20.0
"""In which a host that is stopped sends what it has measured."""
_MOST_AT_ONCE = 64
_KEPT_BYTES = 1 << 20

Say = Callable[[Host, str], None]
"""Told what a host does now."""


def new_fleet() -> str:
    """Return the id of a new run; ids sort by time."""
    return f"fleet-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def run_fleet(  # noqa: PLR0913  each is an option of the command
    words: Sequence[str],
    hosts: Sequence[Host],
    *,
    store: Store | None,
    notes: Notes | None = None,
    limit_s: float,
    resume: str | None = None,
    command: str = "",
    say: Say = lambda _host, _text: None,
    on_begin: Callable[[str], None] = lambda _id: None,
) -> Fleet:
    """Run a benchmark on hosts and take their evidence into the store.

    Args:
        words: The benchmark's command line: ``("gemm", "--quick")``.
        hosts: Where.
        store: Takes the evidence; None takes none.
        notes: What is remembered of hosts and runs.
        limit_s: How long a host may take.
        resume: Id of a run to go on with, or ``last``; hosts that are measured are not measured again.
        command: The command line that was typed here, kept with the records beside that of the host.
        say: Told what each host does, from several threads.
        on_begin: Told the run's id, before anything is started.

    Raises:
        UsageError: There is no such run, or it is of another benchmark.
        KeyboardInterrupt: Interrupted; what the hosts sent until then is kept.
    """
    kept = notes or Notes()
    before = kept.fleet(resume) if resume is not None else Fleet(new_fleet(), tuple(words))
    if before.words != tuple(words):
        was = shlex.join(["rocmend", "bench", *before.words])
        raise UsageError("--resume", f"{before.id} is another benchmark: `{was}`.", next_step="Give the same options.")
    on_begin(before.id)
    return _Fleet(before, hosts, store, kept, limit_s, say, command).all()


class _Fleet:
    def __init__(  # noqa: PLR0913, PLR0917  it is made in one place, from that function's arguments
        self,
        before: Fleet,
        hosts: Sequence[Host],
        store: Store | None,
        notes: Notes,
        limit_s: float,
        say: Say,
        command: str,
    ) -> None:
        self.fleet, self.hosts, self.store, self.notes = before, hosts, store, notes
        self.limit_s, self.say, self.command = limit_s, say, command
        self.stop = threading.Event()
        self.done = {run.key: run for run in before.hosts}
        self.left_out = notes.quarantined()

    def all(self) -> Fleet:
        """Measure every host that is not measured yet."""
        waiting = [host for host in self.hosts if not self._is_measured(host)]
        self._keep()
        with ThreadPoolExecutor(max(1, min(_MOST_AT_ONCE, len(waiting))), "host") as pool:
            running: dict[Future[_Seen], Host] = {}
            try:
                running |= {pool.submit(self._measure, host): host for host in waiting}
                self._collect(running)
            except BaseException:  # an interrupt: every host is stopped, and sends what it has
                self.stop.set()
                self._collect(running)
                raise
        return self.fleet

    def _is_measured(self, host: Host) -> bool:
        run = self.done.get(host.key)
        if run is None or run.state is not State.MEASURED or run.quarantine:
            return False
        self.say(host, "is measured already")
        return True

    def _collect(self, running: dict[Future[_Seen], Host]) -> None:
        """Take what hosts bring as they end, in this thread, which the store belongs to."""
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                host = running.pop(future)
                run = self._taken(host, future.result())
                self.done[host.key] = run
                if run.quarantine:
                    self.notes.quarantine(run, self.fleet.id)
                self._keep()
                self.say(host, f"{run.state.value}{f': {run.reason}' if run.reason else ''}")

    def _keep(self) -> None:
        own = {host.key for host in self.hosts}
        order = [*(host.key for host in self.hosts), *(key for key in self.done if key not in own)]
        found = tuple(self.done[key] for key in order if key in self.done)
        self.fleet = msgspec.structs.replace(self.fleet, hosts=found)
        self.notes.keep(self.fleet)

    # --- one host, in a thread of its own ----------------------------------------------------------------------------

    def _measure(self, host: Host) -> _Seen:
        """Do all that is to be done with a host; nothing that goes wrong there is raised."""
        seen = _Seen(host, self.say)
        try:
            if kept := self.left_out.get(host.key):
                seen.skipped = (
                    f"in quarantine since {kept.since[:10]}: {kept.reason}. "
                    f"`rocmend bench hosts --release {shlex.quote(host.name)}` lets it be measured"
                )
            elif self.stop.is_set():
                seen.skipped = "the fleet was interrupted before"
            elif not (refused := self._version(host)):
                self._attempt(host, seen)
            else:
                seen.refused = refused
        except RocmendError as error:
            seen.refused = " ".join(part for part in (error.message, error.next_step) if part)
        except Exception as error:  # noqa: BLE001  a host must not cost the others their results
            seen.refused = f"an error of rocmend itself: {type(error).__name__}: {error}"
        return seen

    def _version(self, host: Host) -> str:
        """Return why the rocmend of a host can't be used; of an image it says so itself."""
        if not isinstance(host.where, Ssh):
            return ""
        self.say(host, "checks its rocmend")
        spec = AttemptSpec(host.name, Command((*host.rocmend, "--version")), host.where, dict(host.env), limits=_ANSWER)
        result = run_attempt(spec, stop=self.stop.is_set)
        found = _VERSION.search(result.output.head)
        if found and result.exit_code == 0:
            return _unlike(found[1])
        if "has no program" in result.reason or result.exit_code in {126, 127}:
            return f"{shlex.join(host.rocmend)} can't be run there. {_install()}"
        return result.reason if result.exit_code is None else f"{shlex.join(host.rocmend)} --version: {_said(result)}"

    def _attempt(self, host: Host, seen: _Seen) -> None:
        options = ("--messages", "--run", self.fleet.id, *(("--gpus", host.gpus) if host.gpus else ()))
        spec = AttemptSpec(
            f"bench {self.fleet.words[0]}",
            Command((*host.rocmend, "bench", "exclusive", *options, *self.fleet.words)),
            host.where,
            dict(host.env),
            limits=Limits(self.limit_s, _SILENCE_S, grace_s=_GRACE_S, max_output_bytes=_KEPT_BYTES),
        )
        self.say(host, "starts")
        seen.result = run_attempt(spec, on_event=seen.hear, stop=lambda: self.stop.is_set() or bool(seen.refused))

    # --- what it brought ---------------------------------------------------------------------------------------------

    def _taken(self, host: Host, seen: _Seen) -> HostRun:
        """Take a host's evidence into the store, and say what became of it."""
        runs: list[str] = []
        problems: list[str] = []
        for gpu, archive in seen.archives.items():
            try:
                runs += self._take(host, gpu, archive, seen.unhealthy(gpu))
            except RocmendError as error:
                problems.append(f"its evidence can't be kept: {error.message}")
        before = self.done.get(host.key)
        if before is not None:
            runs = list(dict.fromkeys((*before.runs, *runs)))
        state, reason = seen.outcome()
        if problems and state is State.MEASURED:
            state = State.INCOMPLETE
        return HostRun(
            host.name,
            host.key,
            state,
            "; ".join(part for part in (reason, *problems) if part),
            tuple(runs),
            sum(ran.figures for ran in seen.ran.values()),
            sum(ran.expected for ran in seen.ran.values()),
            tuple(seen.health),
            seen.quarantine(),
            tuple(dict.fromkeys(note for ran in seen.ran.values() for note in ran.notes)),
            0.0 if seen.result is None else seen.result.time_ms,
        )

    def _take(self, host: Host, gpu: str, archive: bytes, unhealthy: str) -> tuple[str, ...]:
        if self.store is None:
            return ()
        with ScratchFolder("fleet") as scratch:
            file = scratch / "evidence.zip"
            file.write_bytes(archive)
            received = read_archive(file)
        records = tuple(
            msgspec.structs.replace(one, evidence=_typed(one.evidence, self.command)) for one in received.records
        )
        received = msgspec.structs.replace(received, name=host.name, records=records)
        mark = f"{host.key}-gpu{gpu}" if gpu else host.key
        told = {"fleet": self.fleet.id, **({"unhealthy": unhealthy} if unhealthy else {})}
        return take(self.store, received, mark=mark, told=told).groups


def _typed(evidence: Evidence, command: str) -> Evidence:
    """Return a record of a host with the command line that was typed here; that of the host stands beside it."""

    def told(where: dict[str, Any]) -> dict[str, Any]:
        origin = where.get("origin")
        if not command or not isinstance(origin, dict):
            return where
        there = {"on_host": origin["command"]} if "command" in origin else {}
        return {**where, "origin": {**origin, **there, "command": command}}

    detail = told(evidence.detail)
    if isinstance(measured := detail.get("measured"), dict):
        detail = {**detail, "measured": told(measured)}
    return msgspec.structs.replace(evidence, detail=detail)


class _Seen:
    """What a host said.

    Attributes:
        skipped: Why it is not to be measured.
        refused: Why it can't be measured.
        result: How the attempt ended; None where there was none.
        archives: Its evidence, by GPU.
    """

    def __init__(self, host: Host, say: Say) -> None:
        self._host, self._say = host, say
        self.skipped = self.refused = ""
        self.result: AttemptResult | None = None
        self.archives: dict[str, bytes] = {}
        self.health: list[Health] = []
        self.ran: dict[str, Ran] = {}
        self._hello: Hello | None = None
        self._ended = False
        self._joiners: dict[str, Joiner] = {}

    def hear(self, event: Event) -> None:
        """Take in what comes from the host, which may be anything."""
        if event.kind is EventKind.NOTE:
            self._say(self._host, one_line(event.text)[:300])
        message = message_in(event.text) if event.kind is EventKind.OUTPUT else None
        if isinstance(message, Hello):
            self._hello = message
            self.refused = self.refused or _unlike(message.version)
        elif isinstance(message, Doing):
            gpu = f"GPU {message.gpu[:20]}: " if message.gpu else ""
            self._say(self._host, one_line(f"{gpu}{message.text}")[:300])
        elif isinstance(message, Busy):
            self.skipped = one_line(message.reason)[:500]
        elif isinstance(message, Health) and len(self.health) < 2 * _MOST_AT_ONCE:
            self.health.append(message)
        elif isinstance(message, Ran) and len(self.ran) < _MOST_AT_ONCE:
            self.ran[message.gpu[:20]] = message
        elif isinstance(message, Part) and message.gpu in self.ran:
            whole = self._joiners.setdefault(message.gpu, Joiner()).add(message)
            if whole is not None:
                self.archives[message.gpu] = whole
        elif isinstance(message, Ended):
            self._ended = True

    def _problems(self, when: str, gpu: str | None = None) -> str:
        found = [one for one in self.health if one.when == when and gpu in {None, one.gpu}]
        return "; ".join(one_line(problem)[:500] for one in found for problem in one.problems)

    def unhealthy(self, gpu: str) -> str:
        """Return why the figures of a GPU are not to be trusted; empty where its health was checked after them."""
        if any(one.when == "after" and one.gpu == gpu for one in self.health):
            return self._problems("after", gpu)
        why = f": {self.result.reason}" if self.result is not None and self.result.reason else ""
        return f"its health after the run is not known{why}"

    def quarantine(self) -> str:
        """Return why the host is to be left out from now on."""
        found = [self._problems("after"), *(one_line(ran.quarantine)[:500] for ran in self.ran.values())]
        found.append("" if self.result is None else self.result.quarantine)
        return "; ".join(dict.fromkeys(part for part in found if part))

    def outcome(self) -> tuple[State, str]:
        """Return what became of the host, and why it is not measured in whole."""
        if self.skipped or self.refused:
            return (State.FAILED if self.refused else State.SKIPPED), self.refused or self.skipped
        if not self.ran and (problems := self._problems("before")):
            return State.SKIPPED, f"not healthy before the run: {problems}"
        figures = sum(ran.figures for ran in self.ran.values())
        told = [one_line(ran.reason)[:500] for ran in self.ran.values() if ran.reason]
        told += [f"not healthy before: {problems}" for problems in [self._problems("before")] if problems]
        told += [f"not healthy after: {problems}" for problems in [self._problems("after")] if problems]
        if not self._ended:
            told.append(self._why())
        whole = self._ended and bool(self.ran) and all(ran.code == 0 for ran in self.ran.values())
        if whole and figures and self._hello is not None and len(self.ran) == len(self._hello.gpus):
            return State.MEASURED, "; ".join(dict.fromkeys(told))
        if not told:
            missing = sum(ran.expected for ran in self.ran.values()) - figures
            told.append(f"{missing} without a figure" if missing > 0 else "nothing could be measured")
        return (State.INCOMPLETE if figures else State.FAILED), "; ".join(dict.fromkeys(told))

    def _why(self) -> str:
        """Return why the host stopped talking."""
        result = self.result
        if result is None:
            return "it was not started"
        if self._hello is None and result.exit_code is not None:
            return f"rocmend could not be started there: {_said(result)} {_install()}"
        return result.reason or "it ended without a last message"


def _unlike(version: str) -> str:
    return "" if version == __version__ else f"rocmend {one_line(version)[:40]} is installed there. {_install()}"


def _install() -> str:
    return (
        f"Install rocmend {__version__} there: `pip install rocmend=={__version__}`, or `pip install .` in its "
        "checkout. If it is in an environment of its own, name the command: --remote-command ~/venv/bin/rocmend."
    )


def _said(result: AttemptResult) -> str:
    """Return the end of what a program printed, without messages."""
    lines = [one_line(line) for line in (result.output.tail or result.output.head).splitlines() if MARK not in line]
    return (" ".join(line for line in lines[-3:] if line)[-400:] or result.reason).strip()
