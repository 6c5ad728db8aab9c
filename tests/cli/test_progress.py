"""Long commands say at once what they do, on stderr alone."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rocmend.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands; its one element is the time."""
    now = [100.0]
    monkeypatch.setattr("rocmend.cli.progress.time.monotonic", lambda: now[0])
    return now


def test_elsewhere_than_on_a_terminal_a_line_comes_at_once_and_then_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr := io.StringIO())
    with Progress("rocmend work", "starting", about_s=20, ticks=False) as progress:
        assert stderr.getvalue() == "rocmend work: starting (about 20 s)\n"
        for number in range(12):
            clock[0] += 1
            progress(f"part {number}", number, 24, "parts")
    assert stderr.getvalue().splitlines()[1:] == [
        "rocmend work: 4 of 24 parts, part 4 (5 s, about 20 s left)",
        "rocmend work: 9 of 24 parts, part 9 (10 s, about 15 s left)",
    ]


@pytest.mark.parametrize("of", [15, 0])
def test_past_the_estimate_the_time_that_is_left_is_told_by_the_parts_that_are_done(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], of: int
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr := io.StringIO())
    with Progress("rocmend work", "starting", ticks=False) as progress:
        clock[0] += 40  # waited for another measurement
        progress.expect(120)
        for second in range(300):
            progress("network", second // 20 if of else 0, of)
            clock[0] += 1
    late = stderr.getvalue().splitlines()[-4:]
    assert late[-1].startswith(f"rocmend work: {'14 of 15, ' if of else ''}network (330 s, ")
    assert [line.rpartition("s, ")[2] for line in late] == (
        ["about 2 min left)", "about 70 s left)", "about 40 s left)", "about 10 s left)"]
        if of
        else ["longer than expected)"] * 4
    )


def test_a_long_command_says_little_and_never_that_more_is_left_than_before(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr := io.StringIO())
    with Progress("rocmend work", "starting", ticks=False) as progress:
        for second in range(600):
            clock[0] += 1
            progress("parts", min(50 + second // 10, 99), 100)  # the first half was quick, the second is not
    lines = stderr.getvalue().splitlines()
    assert len(lines) < 35
    left = [int(line.split("about ")[1].split()[0]) for line in lines if "about " in line and "min" not in line]
    assert left
    assert left == sorted(left, reverse=True)


def test_on_a_terminal_it_is_one_line_that_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr := Terminal())
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    with Progress("rocmend work", ticks=False) as progress:
        for text in ("one", "two", "a text that is longer than the terminal is wide"):
            progress(text, 1, 2)
            clock[0] += 1
        progress.say("kept")
    assert stderr.getvalue().split("\r\x1b[K")[1:] == [
        "rocmend work: 1 of 2, one",
        "rocmend work: 1 of 2, two (1 s)",
        "rocmend work: 1 of 2, a text tha… (2 s)",
        "kept\n",
        "",
    ]


def test_what_hangs_is_still_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stderr := io.StringIO())
    monkeypatch.setattr("rocmend.cli.progress._TICK_S", 0.01)
    monkeypatch.setattr("rocmend.cli.progress._LINE_EVERY_S", 0.02)
    progress = Progress("rocmend work", "waiting")
    with progress:
        while stderr.getvalue().count("waiting") < 3:
            progress._end.wait(0.01)


@pytest.mark.parametrize(("output_format", "lines"), [("json", 0), ("junit", 0), ("human", 1)])
def test_a_result_for_a_program_comes_without_lines(
    monkeypatch: pytest.MonkeyPatch, output_format: str, lines: int
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr := io.StringIO())
    context = click.Context(click.Command("work"))
    context.params["output_format"] = output_format
    with context, Progress("rocmend work", "starting"):
        pass
    assert stderr.getvalue().count("\n") == lines


def test_a_terminal_is_told_that_the_machine_is_read() -> None:
    """Through a terminal of its own: the line is there while it lasts, and gone at the end."""
    ours, theirs = pty.openpty()
    command = [str(Path(sys.executable).with_name("rocmend")), "doctor"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(ours, 4096):
                said += part
        process.wait(timeout=60)
    os.close(ours)
    assert said.startswith(b"\r\x1b[Krocmend doctor: reading this machine")
    assert said.endswith(b"\r\x1b[K")
