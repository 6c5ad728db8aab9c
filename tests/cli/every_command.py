"""Calls every command of an installed rocmend in ways that a newcomer might, and prints one JSON line a call.

Run by ``test_every_command`` with the Python of a plain installation. The program is imported once; each call is a
fork of it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import click

from rocmend.cli.main import cli, main

TIME_LIMIT_S = 60
WRONG = (["--no-such-option"], ["no-such-thing"], ["--target", "gfx-nope"])


def commands(group: click.Group, path: list[str]) -> list[list[str]]:
    """Return the words of every command and group below one."""
    found = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found.append([*path, name])
        if isinstance(command, click.Group):
            found += commands(command, [*path, name])
    return found


def call(words: list[str]) -> dict[str, object]:
    """Run the program in a fork, in an empty folder, with a time limit; return how it ended and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        outputs = [Path(folder) / name for name in ("out", "err")]
        (Path(folder) / "cwd").mkdir()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.chdir(Path(folder) / "cwd")
            for descriptor, path in zip((1, 2), outputs, strict=True):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            signal.alarm(TIME_LIMIT_S)
            try:
                main(words)
            except SystemExit as stop:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(stop.code if isinstance(stop.code, int) else 1)
            except BaseException:  # noqa: BLE001  as the interpreter would: print it, leave with 1
                sys.excepthook(*sys.exc_info())
                sys.stderr.flush()
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        out, err = (path.read_text(errors="replace") for path in outputs)
        return {"words": words, "code": os.waitstatus_to_exitcode(status), "out": out[:200_000], "err": err[-4000:]}


def lines() -> list[list[str]]:
    """Return every command line to be tried."""
    paths = commands(cli, [])
    found: list[list[str]] = [[], ["--help"], ["--version"], ["nonsense"], ["--json"]]
    found += [["demo", "strix-halo"], ["demo", "port", "copy"], ["doctor", "--machine", "strix-halo"]]
    for path in paths:
        found += [path, [*path, "--help"], [*path, "--json"]]
        found += [[*path, *wrong, *json] for wrong in WRONG for json in ([], ["--json"])]
    return found


if __name__ == "__main__":
    for words in lines():
        sys.stdout.write(json.dumps(call(words)) + "\n")
        sys.stdout.flush()
