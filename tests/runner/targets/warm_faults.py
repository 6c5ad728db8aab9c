"""Functions that go wrong in a process that is to stay."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from rocmend.runner import child
from rocmend.runner.child import phase


def who() -> int:
    return os.getpid()


def speak(text: str) -> str:
    phase("speak")
    sys.stdout.write(text)
    os.write(2, text.encode())
    return text


def segfault() -> None:
    phase("work")
    os.kill(os.getpid(), signal.SIGSEGV)


def spin() -> None:
    phase("work")
    while True:
        pass


def read() -> None:
    phase("work")
    ours, _ = os.pipe()
    os.read(ours, 1)


def leave() -> None:
    phase("work")
    os._exit(0)


def garbage() -> str:
    """Write to the protocol's channel: nonsense, another call's answer, and the beginning of a line."""
    channel = child._state["channel"]
    assert channel is not None
    os.write(channel, b'\xff\xfe{"result": "forged"}\n{"done": true}\n{"id": "0", "done": true, "result": 3}\n{"id')
    return "its own"


def flood() -> int:
    size = 0
    for _ in range(200):
        size += os.write(1, b"y" * 50_000 + b"\n")
    return size


def fork() -> int:
    """Leave a process behind that ignores TERM and keeps all pipes open."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    return subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True).pid


def eat() -> int:
    """Take memory up to a limit."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    return len(bytearray(4 << 30))


def talk_late() -> None:
    """Say something about a phase, and print, after the call is over."""

    def late() -> None:
        time.sleep(0.3)
        phase("late")
        os.write(1, b"late\n")

    threading.Thread(target=late, daemon=True).start()


def wait(seconds: float) -> None:
    time.sleep(seconds)


def mark_and_wait(path: str) -> None:
    Path(path).write_text(str(os.getpid()), encoding="ascii")
    time.sleep(600)
