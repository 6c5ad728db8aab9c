"""Small real programs with known faults, for telling whether a supervisor tells them apart."""

from __future__ import annotations

import random
import shlex
import sys
from collections.abc import Callable

import msgspec

from rocmend.core.evidence import Silence
from rocmend.core.verdict import Verdict
from rocmend.runner.spec import AttemptSpec, Command, Limits, PythonCall

SILENCE_S = 2.0
"""Silence that a fault is allowed: far above what a loaded machine takes to start an interpreter."""

LIMITS = Limits(total_s=60, silence_s=SILENCE_S, grace_s=0.5)


class Fault(msgspec.Struct, frozen=True):
    """A program whose outcome is known.

    Attributes:
        name: What is wrong with it.
        verdict: What is to come out.
        make: Returns what to run.
        silence: What it does while silent, where it hangs.
    """

    name: str
    verdict: Verdict
    make: Callable[[random.Random], AttemptSpec]
    silence: Silence | None = None


def python(source: str, *, phases: str = "", limits: Limits = LIMITS) -> Callable[[random.Random], AttemptSpec]:
    """Return a maker of attempts that run a piece of Python."""
    argv = (sys.executable, "-u", "-c", source)
    return lambda _: AttemptSpec("fault", Command(argv), phases=phases, limits=limits)


def shell(source: str, limits: Limits = LIMITS) -> Callable[[random.Random], AttemptSpec]:
    """Return a maker of attempts that run a shell line."""
    return lambda _: AttemptSpec("fault", Command(("sh", "-c", source)), limits=limits)


def call(target: str, **arguments: object) -> Callable[[random.Random], AttemptSpec]:
    """Return a maker of attempts that call a Python function."""
    return lambda _: AttemptSpec("fault", PythonCall(target, dict(arguments)), limits=LIMITS)


FAILING_LINES = (
    "x vulkan model-a failed (exit 1)",
    "ROCm error: unspecified launch failure",
    "terminate called after throwing an instance of 'vk::DeviceLostError'",
    "  what():  vk::Queue::submit: ErrorDeviceLost",
    ":0:queue.cpp : Callback: Queue 0x7f00 aborting with error : HSA_STATUS_ERROR_EXCEPTION code: 0x1016",
    "Memory access fault by GPU node-1 (Agent handle: 0x55d0) on address 0x7f12. Reason: Page not present.",
    "llama_model_load: error loading model: tensor data is out of bounds",
    "FAILED (failures=2)",
)


def _says_failure(chance: random.Random) -> AttemptSpec:
    line = chance.choice(FAILING_LINES)
    return AttemptSpec("fault", Command(("sh", "-c", f"echo begin; echo {shlex.quote(line)}; echo end")), limits=LIMITS)


def _garbage(chance: random.Random) -> AttemptSpec:
    seed = chance.randrange(1 << 30)
    source = (
        f"import os,random,sys; os.write(1, random.Random({seed}).randbytes(300_000)); os.write(2, b'\\xff\\x00\\n')"
    )
    return AttemptSpec("fault", Command((sys.executable, "-c", source)), limits=LIMITS)


_WARM_UP = "print('common_init_from_params: warming up the model with an empty run')\n"
_SPIN = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass\n"
_MEMORY = Limits(total_s=60, silence_s=SILENCE_S * 2, grace_s=0.5, memory_bytes=600 << 20)
_SHORT = Limits(total_s=3, silence_s=SILENCE_S, grace_s=0.5)

FAULTS: tuple[Fault, ...] = (
    Fault("ends well", Verdict.PASS, shell("echo ready; echo done")),
    Fault("works and talks", Verdict.PASS, python("for i in range(20):\n    print(i, sum(range(200_000)))")),
    Fault(
        "talks until the limit",
        Verdict.SLOW,
        python("import time\nwhile True: print('step'); time.sleep(0.05)", limits=_SHORT),
    ),
    Fault("spins", Verdict.HANG, python("print('begin')\nwhile True: pass"), Silence.SPINNING),
    Fault(
        "two processes compute",
        Verdict.HANG,
        python("import os\nprint('begin')\nos.fork()\nwhile True: pass"),
        Silence.WORKING,
    ),
    Fault(
        "waits for a pipe",
        Verdict.HANG,
        python("import os\nprint('begin')\nr, w = os.pipe()\nos.read(r, 1)"),
        Silence.BLOCKED,
    ),
    Fault(
        "waits for a lock",
        Verdict.HANG,
        python("import threading as t\nl = t.Lock()\nl.acquire()\nprint('begin')\nl.acquire()"),
        Silence.BLOCKED,
    ),
    Fault("is stopped", Verdict.HANG, shell("echo begin; kill -STOP $$"), Silence.BLOCKED),
    Fault(
        "ignores TERM",
        Verdict.HANG,
        python("import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('begin')\nwhile True: time.sleep(60)"),
        Silence.BLOCKED,
    ),
    Fault(
        "its child ignores TERM",
        Verdict.HANG,
        shell("echo begin; (trap '' TERM; sleep 600 & wait; sleep 600) & wait"),
        Silence.BLOCKED,
    ),
    Fault(
        "waits in warm-up",
        Verdict.HANG,
        python(
            _WARM_UP + "import time\ntime.sleep(600)",
            phases="llama.cpp",
            limits=Limits(total_s=60, phase_silence={"warm-up": SILENCE_S}, grace_s=0.5),
        ),
        Silence.BLOCKED,
    ),
    Fault(
        "compiles in warm-up",
        Verdict.PASS,
        python(
            _WARM_UP + _SPIN.format(SILENCE_S * 2.5) + "print('main: model loaded')",
            phases="llama.cpp",
            limits=Limits(total_s=60, phase_silence={"warm-up": SILENCE_S}, grace_s=0.5),
        ),
    ),
    Fault("segmentation fault", Verdict.CRASH, python("import os\nprint('begin')\nos.kill(os.getpid(), 11)")),
    Fault("aborts", Verdict.CRASH, python("import os\nprint('begin')\nos.abort()")),
    Fault("exit status 3", Verdict.CRASH, shell("echo begin; exit 3")),
    Fault("Python exception", Verdict.CRASH, python("raise RuntimeError('no')")),
    Fault("a call raises", Verdict.CRASH, call("json:loads", s="{")),
    Fault("a call returns", Verdict.PASS, call("json:dumps", obj=[1, 2])),
    Fault(
        "memory limit, Python",
        Verdict.OOM,
        python("x = []\nprint('begin')\nwhile True: x.append(bytearray(50_000_000))", limits=_MEMORY),
    ),
    Fault(
        "GPU memory",
        Verdict.OOM,
        shell("echo 'torch.OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 GiB' >&2; exit 1"),
    ),
    Fault(
        "no code for the GPU",
        Verdict.UNSUPPORTED,
        shell("echo 'hipErrorNoBinaryForGpu: Unable to find code object for all current devices!' >&2; kill -ABRT $$"),
    ),
    Fault(
        "GPU hang told by the runtime",
        Verdict.GPU_RESET,
        shell("echo 'HW Exception by GPU node-1 (Agent handle: 0x55) reason :GPU Hang' >&2; kill -ABRT $$"),
    ),
    Fault("exit 0 after failure", Verdict.CRASH, _says_failure),
    Fault(
        "flood of 100 MB",
        Verdict.PASS,
        python("import os\nb = b'0123456789abcdef' * 64 + b'\\n'\nfor _ in range(98_000): os.write(1, b)"),
    ),
    Fault("binary garbage", Verdict.PASS, _garbage),
    Fault(
        "closes its output",
        Verdict.PASS,
        python("import os, time\nprint('begin')\nos.close(1)\nos.close(2)\ntime.sleep(0.5)\nos._exit(0)"),
    ),
    Fault("leaves a daemon", Verdict.PASS, shell("setsid sleep 600 >/dev/null 2>&1 & echo done")),
    Fault("leaves a daemon that holds its output", Verdict.PASS, shell("(setsid sleep 600 &) ; echo done")),
    Fault("leaves thirty children", Verdict.PASS, shell("for i in $(seq 30); do sleep 600 & done; echo done")),
    Fault("program not found", Verdict.INFRA, lambda _: AttemptSpec("fault", Command(("no-such-program-anywhere",)))),
    Fault("program not found by a shell", Verdict.INFRA, shell("no-such-program-anywhere --help")),
)
