"""The loop that watches one attempt from its start to its end."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import time
from collections.abc import Callable
from typing import Any

import msgspec

from rocmend.core.evidence import Silence
from rocmend.core.stall import StallClock
from rocmend.runner.child import MARK
from rocmend.runner.events import Event, EventKind, Stack
from rocmend.runner.executor import Exit, Handle
from rocmend.runner.failures import FailureScanner
from rocmend.runner.kernel import KernelLog, OomCounter, killed_process
from rocmend.runner.output import LineScanner, OutputKeeper, Sieve
from rocmend.runner.phases import PhaseTracker, load_phases
from rocmend.runner.result import PythonError
from rocmend.runner.secret import Scrubber
from rocmend.runner.spec import AttemptSpec, PythonCall
from rocmend.runner.watching import Patience, SampleLog, Timeline, silence_of

READ_BYTES = 1 << 18
BATCH_S = 0.04
"""While output flows it is read this often: waking up for each line would cost more than the lines do."""

BUSY_BYTES = 1 << 17
"""A batch of this size is followed by the next one at once."""

PIPE_READS = 4
"""Reads that empty the largest pipe."""

STACK_S = 1.0
KILL_S = 5.0
LATEST = 3.0
"""Times a signal's delay after which it is sent, though we may have been paused: no flood keeps a program alive."""
DRAIN_S = 1.0
STACK_BYTES = 1 << 18
MESSAGE_BYTES = 32 << 20
INLINE_BYTES = 16 << 20
_COST_SHARE = 100
_MAX_STACKS = 24
_MAX_LINES = 50
_MAX_NAME = 200
_MAX_PHASES = 10_000

Emit = Callable[[Event], None]


def _can_be_kept(message: dict[str, Any]) -> bool:
    """Whether a message can be written to the journal: half of a surrogate pair cannot."""
    try:
        msgspec.json.encode(message)
    except (UnicodeError, RecursionError):
        return False
    return True


class Supervisor:
    """Watches a started attempt.

    Args:
        spec: What runs.
        handle: Where it runs.
        keeper: Where its output goes.
        emit: Called with each event that is not output.
        emit_output: Called with each output line as an event; None where nobody asks for them.
        secrets: Values that are kept nowhere: output and messages have ``***`` in their place.

    Attributes:
        clock: Time without our own pauses; every limit is by it. What is told of goes by monotonic time.
        ended_for: ``silence``, ``total`` or ``stop`` where we ended it.
    """

    def __init__(  # noqa: PLR0913  each comes from somewhere else
        self,
        spec: AttemptSpec,
        handle: Handle,
        keeper: OutputKeeper,
        *,
        emit: Emit,
        emit_output: Emit | None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.begin = time.monotonic()
        self.clock = StallClock()
        self.spec = spec
        self.handle = handle
        self.keeper = keeper
        self.ended_for = ""
        self.limit_s = 0.0
        self.silence: Silence | None = None
        self.silent_s = 0.0
        self.slow_title = ""
        self.timeline = Timeline()
        start = self.clock.now()
        self.samples = SampleLog(start)
        self.failures = FailureScanner()
        self.total_at = start + spec.limits.total_s
        self.patience = Patience(spec, spec.limits.silence_s, start, start)
        self.patience.enter(self.timeline.name)
        self.stacks: list[Stack] = []
        self.notes: list[str] = []
        self.dmesg: dict[str, int] = {}
        self.dmesg_lines: list[str] = []
        self.oom_killed = False
        self.python_result: Any = None
        self.returned = False
        self.python_error: PythonError | None = None
        self.survivors: tuple[str, ...] = ()
        self.exit: Exit | None = None
        self._emit = emit
        self._emit_output = emit_output
        self._tracker = PhaseTracker(load_phases(spec.phases))
        self._sieve = Sieve(self._tracker.all_words())
        self._side = {"channel": bytearray(), "stack": bytearray()}
        self._inline = isinstance(spec.command, PythonCall) and "channel" not in handle.streams
        stdout = LineScanner(INLINE_BYTES) if self._inline else LineScanner()
        self._scanners = {"stdout": stdout, "stderr": LineScanner()}
        self._scrubbers = {name: Scrubber(secrets) for name in self._scanners}
        self._kernel = KernelLog("/dev/kmsg" if handle.on_this_host else None)
        self._oom = OomCounter() if handle.on_this_host else None
        self._phases = 0
        self._ladder: list[tuple[float, float, Callable[[], None]]] = []
        self._next_sample = start
        self._sampled_lost_s = 0.0
        self._selector = selectors.DefaultSelector()

    def now_ms(self) -> float:
        """Milliseconds since the start."""
        return round((time.monotonic() - self.begin) * 1000, 1)

    def tell(self, kind: EventKind, text: str = "", **more: Any) -> None:
        """Emit an event of now."""
        self._emit(Event(self.now_ms(), kind, text, phase=self.timeline.name, **more))

    def note(self, text: str) -> None:
        """Emit and keep a note."""
        if len(self.notes) < _MAX_LINES:
            text = self._scrubbers["stdout"].text(text)
            self.notes.append(text)
            self.tell(EventKind.NOTE, text)

    # -- the loop ------------------------------------------------------------------------------------------------

    def watch(self, stop: Callable[[], bool] | None) -> None:
        """Watch until the attempt is over, or cannot be ended."""
        for name, descriptor in self.handle.streams.items():
            self._selector.register(descriptor, selectors.EVENT_READ, name)
        wake = self.handle.wake()
        if wake is not None:
            self._selector.register(wake, selectors.EVENT_READ, "")
        flowing = 0.0
        while True:
            now = self.clock.now()
            pause = min(self._next_step() - now, 0.2 if wake is None or stop is not None else 60.0)
            ready = self.clock.wait(self._selector.select, pause)
            taken = sum(self._read(key.data) for key, _ in ready if key.data)
            now = self.clock.now()
            self.exit = self.handle.exit()
            if self.exit is not None or self._gave_up(now, stop):
                break
            for text in (*self.handle.notes(), *self.clock.news()):
                self.note(text)
            if taken and now - flowing < 2 * BATCH_S and taken < BUSY_BYTES:
                self.clock.sleep(BATCH_S)
            if taken:
                flowing = self.clock.now()
        self._finish()

    def _next_step(self) -> float:
        """Return when something is due, whatever comes in."""
        steps = [self._next_sample]
        if self.ended_for:
            steps += [at for at, _, _ in self._ladder]
        else:
            steps += [self.patience.deadline(), self.total_at]
        return min(steps)

    def _gave_up(self, now: float, stop: Callable[[], bool] | None) -> bool:
        """Do what is due; return whether the attempt could not be ended."""
        if now >= self._next_sample:
            self._sample(now)
        if self.ended_for:
            while self._ladder and (self._ladder[0][0] <= now or self._ladder[0][1] <= time.monotonic()):
                self._ladder.pop(0)[2]()
            return not self._ladder
        if stop is not None and stop():
            self._end("stop", now, 0.0)
        elif now >= self.total_at:
            self._drain()
            self._end("total", now, self.spec.limits.total_s)
        elif now >= self.patience.deadline():
            self._sample(now)  # it may have begun to work since
            self._drain()  # or have said something
            if now >= self.patience.deadline():
                self._end("silence", now, self.patience.limit_s)
        elif self.patience.in_slow_progress(now) and now - self.patience.announced >= self.patience.limit_s:
            self.patience.announced = now
            title = self.patience.slow.title if self.patience.slow else ""
            silent = now - self.patience.last_output
            self.tell(EventKind.SLOW_PROGRESS, f"silent for {silent:.0f} s but working: first run of {title}")
        return False

    def _end(self, why: str, now: float, limit_s: float) -> None:
        """Begin to end it: stacks first, then TERM, grace, KILL."""
        self.ended_for, self.limit_s = why, limit_s
        self.silent_s = now - self.patience.last_output
        self.slow_title = self.patience.slow.title if self.patience.slow else ""
        terminate = now
        if why != "stop":
            begin = self.patience.last_output
            self.silence = silence_of(self.samples, begin, uses_gpu=self.handle.uses_gpu())
            for stack in self.handle.stacks()[:_MAX_STACKS]:
                self._add_stack(stack)
            terminate = now + (STACK_S if "stack" in self.handle.streams else 0.0)
        steps = (
            (terminate, self.handle.terminate),
            (terminate + self.spec.limits.grace_s, self.handle.kill),
            (terminate + self.spec.limits.grace_s + KILL_S, lambda: None),
        )
        real = time.monotonic()
        self._ladder = [(at, real + LATEST * (at - now), step) for at, step in steps]

    def _finish(self) -> None:
        """End what is left, read what is left, and look at the kernel's log once more."""
        if not self.ended_for:
            self.silent_s = self.clock.now() - self.patience.last_output
        self.survivors = self.handle.settle()
        self.exit = self.exit or self.handle.exit()
        deadline = self.clock.now() + DRAIN_S
        streams = dict(self.handle.streams)
        while streams and self.clock.now() < deadline:
            for name in list(streams):
                while self.clock.now() < deadline and self._read(name):
                    pass
                if self.handle.stays or not self._open(name):
                    del streams[name]
            if streams:
                self.clock.sleep(0.005)
        for name, scanner in self._scanners.items():
            self._output(name, b"", last=True)
            self._block(name, scanner.rest())
        self._flush_stack()
        self._look_at_kernel()
        if self._was_killed() and ("oom_kill" in self.dmesg or (self._oom is not None and self._oom.kills())):
            self.oom_killed = True  # of a process that no sample has seen
        left = self.handle.left_behind
        if left and not self.ended_for:
            self.note(f"{left} {'process' if left == 1 else 'processes'} that it left behind had to be killed")
        for text in (*self.handle.notes(), *self.clock.news()):
            self.note(text)

    def close(self) -> None:
        """Let go of what the loop holds; the handle is closed by who started it."""
        self._selector.close()
        self._kernel.close()

    def _was_killed(self) -> bool:
        return self.exit is not None and (self.exit.signal == 9 or self.exit.code == 137)

    # -- what comes in -------------------------------------------------------------------------------------------

    def _open(self, name: str) -> bool:
        return self.handle.streams[name] in self._selector.get_map()

    def _drain(self) -> None:
        """Read what lies in the pipes, up to what they hold: it was said in time."""
        for name in self.handle.streams:
            for _ in range(PIPE_READS):
                if not (self._open(name) and self._read(name)):
                    break

    def _read(self, name: str) -> int:
        """Read what is there of a stream, up to a bound; return how much it was."""
        descriptor = self.handle.streams[name]
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
            return 0
        now = self.clock.now()
        if name == "stack":
            self._side["stack"] += data[: max(0, STACK_BYTES - len(self._side["stack"]))]
        elif name == "channel":
            self.patience.heard(now)
            self._channel(data)
        else:
            self.patience.heard(now)
            self._output(name, data)
        return len(data)

    def _output(self, name: str, data: bytes, *, last: bool = False) -> None:
        data = self._scrubbers[name].rest() if last else self._scrubbers[name].feed(data)
        self.keeper.add(self.now_ms(), name, data)
        self._block(name, self._scanners[name].feed(data))

    def _block(self, name: str, block: bytes) -> None:
        """Look at whole lines."""
        if not block:
            return
        telling = self._sieve.keep(block)
        for mark in self._tracker.feed(telling) if telling else ():
            self.patience.enter(mark.phase.name, mark.phase)
            self._enter(mark.phase.name, mark.line)
        self.failures.feed(block)
        if self._inline and name == "stdout" and MARK.encode() in block:
            for raw in block.split(b"\n"):
                if raw.startswith(MARK.encode()):
                    self._message(raw[len(MARK) :])
        if self._emit_output is not None:
            at, phase = self.now_ms(), self.timeline.name
            for line in block.decode(errors="replace").split("\n")[: -1 if block.endswith(b"\n") else None]:
                self._emit_output(Event(at, EventKind.OUTPUT, line, name, phase))

    def _enter(self, name: str, mark: str) -> None:
        self.timeline.begin(name, self.now_ms(), mark, slow=self.patience.slow is not None)
        self._phases += 1
        if self._phases <= _MAX_PHASES:  # a program that names phases without end does not fill the journal
            self.tell(EventKind.PHASE, mark)

    def _channel(self, data: bytes) -> None:
        buffer = self._side["channel"]
        buffer += data
        if len(buffer) > MESSAGE_BYTES:
            buffer.clear()
            self.note("the child sent a message over the size limit; it was dropped")
        while (cut := buffer.find(b"\n")) >= 0:
            line = bytes(buffer[:cut])
            del buffer[: cut + 1]
            self._message(line)

    def _message(self, line: bytes) -> None:
        """Take in what our child says; what is no message of ours is passed over."""
        try:
            message = json.loads(self._scrubbers["stdout"].text(line.decode(errors="replace")))
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict) or not _can_be_kept(message) or not self.handle.admits(message):
            return
        if "phase" in message:
            name, slow = str(message["phase"])[:_MAX_NAME], str(message.get("slow", ""))[:_MAX_NAME]
            self.patience.enter(name, None, slow)
            self._enter(name, "")
        elif "note" in message:
            self.note(str(message["note"])[:2000])
        elif "result" in message:
            self.python_result, self.returned = message["result"], True
        elif "error" in message:
            with contextlib.suppress(msgspec.ValidationError):
                self.python_error = msgspec.convert(message["error"], PythonError)

    def _add_stack(self, stack: Stack) -> None:
        self.stacks.append(stack)
        self.tell(EventKind.STACK, stack=stack)

    def _flush_stack(self) -> None:
        text = bytes(self._side["stack"]).decode(errors="replace").strip()
        if text:
            self._side["stack"].clear()
            self._add_stack(Stack("python", text, self.handle.pid))

    # -- looking -------------------------------------------------------------------------------------------------

    def _sample(self, now: float) -> None:
        """Take a sample: often while it is silent, seldom while it talks, never so often that it costs much."""
        silent = now - self.patience.last_output
        before = time.thread_time()
        sample = self.handle.sample()
        cost = time.thread_time() - before
        if sample is not None:
            if self.clock.lost_s > self._sampled_lost_s:  # nobody knows whether it ran while we did not
                sample = msgspec.structs.replace(sample, cpu_rate=None, cpu_wait_rate=None)
            self.samples.add(sample, self.clock.now())
            self.patience.sampled(now, None if sample.cpu_rate is None else self.samples.last_rate())
            self.tell(EventKind.SAMPLE, sample=sample)
        else:
            self.patience.sampled(now, None)
        self._sampled_lost_s = self.clock.lost_s
        self._look_at_kernel()
        base = min(1.0, max(0.1, self.patience.limit_s / 8))
        if silent < base:
            base = min(2.0, max(base, self.patience.limit_s / 4))
        self._next_sample = self.clock.now() + max(base, min(cost * _COST_SHARE, self.patience.limit_s / 4))

    def _look_at_kernel(self) -> None:
        seen = self.handle.seen_pids()
        for line in self._kernel.new_lines():
            for name in line.classes:
                self.dmesg[name] = self.dmesg.get(name, 0) + 1
            if len(self.dmesg_lines) < _MAX_LINES:
                self.dmesg_lines.append(line.text)
                self.tell(EventKind.DMESG, line.text, data={"classes": list(line.classes)})
            pid = killed_process(line.text)
            if pid is not None and pid in seen:
                self.oom_killed = True
