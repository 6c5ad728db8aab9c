"""Calls every command of an installed rocmend in ways that a newcomer might, and prints one JSON line a call.

Run by ``test_every_command`` with the Python of a plain installation. The program is imported once; each call is a
fork of it. With ``--brief`` it leaves out the wrong options, which are refused before a command begins.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from rocmend.cli.main import cli, main
from rocmend.cli.names import Name

TIME_LIMIT_S = 60
NOTHING = "no-such-thing"
FREE_TEXT = (click.STRING, click.UNPROCESSED)


def commands(group: click.Group, path: list[str]) -> Iterator[tuple[list[str], click.Command]]:
    """Yield the words of every command and group below one, and itself."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield [*path, name], command
        if isinstance(command, click.Group):
            yield from commands(command, [*path, name])


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
        return {"words": words, "code": os.waitstatus_to_exitcode(status), "out": out[:4_000_000], "err": err[-4000:]}


def wrong(command: click.Command) -> list[list[str]]:
    """Return wrong inputs of a command: at least three, and a wrong value of every option that takes not just any."""
    names = [
        one.opts[0]
        for one in command.params
        if isinstance(one, click.Option)
        and not (
            one.is_flag
            or one.name == "output_format"
            or one.type in FREE_TEXT
            or isinstance(one.type, click.Path | Name)
        )
    ]
    return [["--no-such-option"], [NOTHING], [NOTHING, "--no-such-option=1"], *([name, NOTHING] for name in names)]


def lines(*, brief: bool) -> Iterator[list[str]]:
    """Yield every command line to be tried."""
    yield from ([], ["--help"], ["--version"], ["-V"], ["nonsense"], ["--json"], ["nonsense", "--json"])
    for path, command in commands(cli, []):
        yield from (path, [*path, "--help"], [*path, "--json"])
        tried = [[NOTHING]] if brief else wrong(command)
        yield from ([*path, *words, *json] for words in tried for json in ([], ["--json"]))


if __name__ == "__main__":
    for words in lines(brief="--brief" in sys.argv):
        sys.stdout.write(json.dumps(call(words)) + "\n")
        sys.stdout.flush()
