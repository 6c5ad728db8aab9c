"""The child's side of a Python call: imports the target, calls it, and says how it goes.

Run as ``python -m rocmend.runner.child [--channel FD] [--stack FD] REQUEST`` where REQUEST is JSON
``{"target": "module:function", "arguments": {…}, "path": […]}``, or ``-`` to read it from standard input. It uses the
standard library alone, so that this file can be copied to where rocmend is not installed.

With ``--serve 1`` the channel is a socket: requests come by it, one JSON line each, and are answered one after the
other until it ends. Each has an ``id`` which is in every message about it; ``{"done": true}`` is the last of them.

What it says are JSON lines on the channel descriptor. Where there is none they go to standard output behind ``MARK``.
A SIGUSR1 prints the Python stacks of all threads to the stack descriptor (standard error where there is none), even
while the interpreter waits in foreign code.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import signal
import sys
import threading
import traceback
from typing import Any

MARK = "\x1erocmend "
"""Begins a line of standard output that is a message, where there is no channel."""

MAX_ERROR_CHARS = 20_000

_state: dict[str, int | None] = {"channel": None, "active": 0}
_request: dict[str, str] = {}
"""The ``id`` of the request that is being answered, while serving."""
_lock = threading.Lock()


def _say(message: dict[str, Any]) -> None:
    if not _state["active"]:
        return  # the target is being run by hand
    text = json.dumps({**message, **_request}, default=str)
    channel = _state["channel"]
    with _lock:
        if channel is None:
            sys.stdout.flush()
            data = f"{MARK}{text}\n".encode()
            channel = 1
        else:
            # a line of its own, whatever the target has written there
            data = f"\n{text}\n".encode() if _request else f"{text}\n".encode()
        view = memoryview(data)
        while view:
            view = view[os.write(channel, view) :]


def phase(name: str, *, slow: str = "") -> None:
    """Say that a phase begins.

    Args:
        name: The phase.
        slow: Id of a kind of first run that is known to be slow (``slow_first_runs.toml``), e.g. ``torch-compile``.
    """
    _say({"phase": name, "slow": slow})


def note(text: str) -> None:
    """Say something that belongs in the attempt's events."""
    _say({"note": text})


def _fail(stage: str, error: BaseException) -> int:
    text = "".join(traceback.format_exception(error))
    _say(
        {
            "error": {
                "stage": stage,
                "type": type(error).__name__,
                "bases": [base.__name__ for base in type(error).__mro__[1:-2]],
                "message": str(error)[:MAX_ERROR_CHARS],
                "traceback": text[-MAX_ERROR_CHARS:],
            }
        }
    )
    sys.stderr.write(text[-MAX_ERROR_CHARS:])
    return 1


def _call(request: dict[str, Any]) -> int:
    module, _, name = str(request["target"]).partition(":")
    try:
        sys.path[:0] = request.get("path", [])
        function: Any = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
    except Exception as error:  # noqa: BLE001  whatever the import raises is to be told
        return _fail("import", error)
    try:
        result = function(**request.get("arguments", {}))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  even SystemExit is the target's outcome, not ours
        if isinstance(error, SystemExit) and error.code in {None, 0}:
            result = None
        else:
            return _fail("call", error)
    try:
        json.dumps(result)
    except (TypeError, ValueError) as error:
        return _fail("result", error)
    _say({"result": result})
    return 0


def _serve(channel: int) -> int:
    """Answer requests until the channel ends; what the target has printed is in its pipes before ``done`` is said."""
    import ctypes

    libc = ctypes.CDLL(None)
    with os.fdopen(os.dup(channel), "rb") as requests:
        for line in requests:
            request = json.loads(line)
            _request["id"] = request["id"]
            _state["active"] = 1
            _call(request)
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    stream.flush()
            libc.fflush(None)
            _say({"done": True})
            _state["active"] = 0  # a thread that was left behind has nothing to say about the next request
    return 0


def main(argv: list[str]) -> int:
    """Run the call that the arguments name; return the exit status."""
    options = {"--channel": -1, "--stack": -1, "--serve": 0}
    while len(argv) > 1 and argv[0] in options:
        options[argv[0]] = int(argv[1])
        argv = argv[2:]
    if len(argv) != 1:
        sys.stderr.write("usage: python -m rocmend.runner.child [--channel FD] [--stack FD] REQUEST\n")
        return 2
    # the target's module finds this very module, so that its phases go where ours go
    sys.modules.setdefault("rocmend.runner.child", sys.modules[__name__])
    _state.update(channel=options["--channel"] if options["--channel"] >= 0 else None, active=1)
    stack = options["--stack"] if options["--stack"] >= 0 else 2
    for descriptor in (options["--channel"], options["--stack"]):
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)  # ours alone, not our children's
    faulthandler.enable(file=2)
    faulthandler.register(signal.SIGUSR1, file=stack, all_threads=True)
    if options["--serve"]:
        return _serve(options["--channel"])
    request = json.loads(sys.stdin.buffer.read() if argv[0] == "-" else argv[0])
    status = _call(request)
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
