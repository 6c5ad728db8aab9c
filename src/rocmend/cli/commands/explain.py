"""``rocmend explain``."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from rocmend.cli.base import RewritingOption, rocmend_command
from rocmend.cli.output import finish, output_options, tell
from rocmend.cli.progress import Progress
from rocmend.cli.quantities import Duration
from rocmend.cli.source import asked_with, machine_option, take_snapshot, target_option
from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.verdict import Verdict
from rocmend.report.envelope import CLEAN, FINDINGS, INTERRUPTED, Outcome

if TYPE_CHECKING:
    from rocmend.doctor.records import Plan
    from rocmend.kb.errors import ErrorReader
    from rocmend.kb.load import Knowledge
    from rocmend.machine.facts import Machine
    from rocmend.runner.result import AttemptResult

_READ_BYTES = 1 << 20
_SHORT_BYTES = 4000
"""A text up to this long that holds no known error is looked up by its words."""
_MOST_NEAR = 3
_LOGS = frozenset({".log", ".txt", ".out", ".err"})


class _Run(RewritingOption):
    """``--run``: all that follows it is a command line, whatever it looks like."""

    def rewrite(self, context: click.Context, words: list[str]) -> list[str]:
        """Put ``--`` before the command line."""
        del context
        if "--run" not in words or "--" in words[: words.index("--run")]:
            return words
        at = words.index("--run") + 1
        rest = words[at:]
        return [*words[:at], "--", *(rest[1:] if rest[:1] == ["--"] else rest)]


@rocmend_command(
    "explain",
    examples=(
        ('rocmend explain "HIP error: invalid device function"', "what a pasted error means here"),
        ("rocmend explain kernel-log.txt", "what a log says; also piped: sudo dmesg | rocmend explain"),
        ("rocmend explain --run python train.py", "run a program, then explain what it printed"),
        ('rocmend explain "ErrorDeviceLost" --target gfx1201', "for a GPU that is not here"),
    ),
)
@click.argument("text", nargs=-1, metavar="[TEXT | FILE]...")
@click.option("--run", cls=_Run, is_flag=True, help="Run the command line that follows, and explain its output.")
@click.option("--time-limit", type=Duration(1), metavar="TIME", default=None, help="With --run: end the program then.")
@machine_option
@target_option
@output_options()
def command(
    text: tuple[str, ...],
    run: bool,
    time_limit: float | None,
    machine_dir: Path | None,
    target: str | None,
    output_format: str,
) -> None:
    """Explain errors: a pasted text, a log, or what a program prints.

    Each known error is shown with its meaning, how sure that is, what this machine says of it, and what to do. A log of
    any size is read as it comes. Exit code 1 means that a known error was found or that the program failed.
    A program under --run has no standard input; Ctrl-C ends it, explains what it printed, and exits with 130.
    """
    from rocmend.cli.views.explain import as_asked, meanings_document
    from rocmend.doctor.meaning import meanings
    from rocmend.kb.errors import ErrorReader, index_of
    from rocmend.kb.load import load_entries
    from rocmend.kb.own import OwnSentences
    from rocmend.kb.quoted import quoted
    from rocmend.machine.hypothetical import target_alone

    if time_limit is not None and not run:
        raise UsageError("--time-limit", "it ends a program, and --run was not given.", next_step="Give --run too.")
    knowledge = load_entries()
    if len(text) == 1 and text[0] in knowledge.entries and not run:
        raise UsageError("explain", f"{text[0]} is an entry.", next_step=f"Run `rocmend kb show {text[0]}`.")
    reader = ErrorReader(index_of(knowledge), OwnSentences(knowledge))
    result = _run(text, time_limit, reader) if run else None
    interrupted = run and result is None
    pasted = "" if run else _read(text, reader)
    seen = reader.finish()
    if not seen and pasted:
        seen = quoted(pasted, knowledge)
    machine = None
    if seen:
        machine = target_alone(take_snapshot(machine_dir, target=target))
    found = meanings(seen, knowledge, machine, _plan(machine, knowledge))
    named = asked_with(machine_dir, target)
    found = tuple(as_asked(one, named) for one in found)
    near = _near(knowledge.current(), pasted, target) if not found else []
    ended = "" if result is None else _ended(result)
    failed = result is not None and result.exit_code != 0
    data: dict[str, Any] = {
        "meanings": found,
        "lines": reader.lines,
        "bytes": reader.bytes,
        "machine": "" if machine is None else machine.name,
        "near": [entry_id for entry_id, _ in near],
    }
    if result is not None:
        data["run"] = {"exit_code": result.exit_code, "verdict": result.verdict, "reason": result.reason}
    elif interrupted:
        data["run"] = {"interrupted": True}
    exit_code = INTERRUPTED if interrupted else FINDINGS if found or failed else CLEAN
    outcome = Outcome("explain", data, exit_code, judged=bool(found or failed))
    name = "" if machine is None else machine.hypothetical_target or machine.name
    finish(
        outcome,
        output_format,
        lambda: meanings_document(
            found,
            lines=reader.lines,
            machine=name,
            doctor=f"rocmend doctor {named}".strip(),
            ended=ended,
            well=result is not None and not failed,
            near=near,
        ),
    )


def _read(text: tuple[str, ...], reader: ErrorReader) -> str:
    """Read what was pasted, named or piped; return it where it is short.

    Raises:
        UsageError: There is nothing to read, or no such file.
    """
    path = _named(text) if text and text != ("-",) else None
    if path is not None:
        with path.open("rb", buffering=0) as file:
            pasted = _stream(file, reader, path.stat().st_size)
        if path.is_file() or reader.bytes:
            return pasted
    elif text and text != ("-",):
        pasted = " ".join(text)
        reader.feed(pasted.encode(errors="replace"))
        pasted = pasted[:_SHORT_BYTES]
    elif sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "explain", "there is no text.", next_step='Paste the error in quotes: `rocmend explain "…"`, or pipe a log.'
        )
    else:
        pasted = _stream(sys.stdin.buffer, reader, 0)
    if not reader.bytes:
        raise UsageError("explain", "the text is empty.", next_step='Paste the error in quotes: `rocmend explain "…"`.')
    return pasted


def _named(text: tuple[str, ...]) -> Path | None:
    """Return the file that is named; None for a pasted text.

    Raises:
        UsageError: There is no such file, there are several, or it is neither one nor a pipe (a device may never end).
    """
    files = [word for word in text if word and _is_there(Path(word)) and (len(text) == 1 or _is_name(word))]
    if not files:
        if all(map(_is_name, text)):
            raise UsageError(
                ", ".join(text), "There is no such file.", next_step="Paste the error in quotes, or pipe it."
            )
        return None
    if len(text) > 1:
        raise UsageError(
            files[0],
            "is a file among other words.",
            next_step=f"Name one file, or pipe: cat {files[0]} … | rocmend explain",
        )
    path = Path(files[0])
    if path.is_file() or path.is_fifo():  # a pipe is how a shell names a command: <(dmesg)
        return path
    if path.is_dir():
        if not _is_name(files[0]):  # an error that is called like a folder
            return None
        raise UsageError(files[0], "is a folder.", next_step="Name the log in it.")
    raise UsageError(files[0], "is neither a file nor a pipe.", next_step="Pipe it: sudo dmesg | rocmend explain")


def _is_name(word: str) -> bool:
    """Whether a word looks like the name of a log."""
    return not re.search(r"\s", word) and (os.sep in word or Path(word).suffix in _LOGS or word in {".", ".."})


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a pasted error that is too long for a name
        return False


def _stream(file: BinaryIO | Any, reader: ErrorReader, size_bytes: int) -> str:
    """Read a stream to its end, with progress; return its beginning where that is all."""
    head = b""
    with Progress("rocmend explain", "reading", quick=True, ticks=False) as progress:
        while data := file.read(_READ_BYTES):
            head = head or data[: _SHORT_BYTES + 1]
            reader.feed(data)
            known = f"{len(reader.found())} known errors"
            progress(known, reader.bytes >> 20, size_bytes >> 20, "MiB")
    return head.decode(errors="replace") if reader.bytes <= _SHORT_BYTES else ""


def _run(words: tuple[str, ...], time_limit: float | None, reader: ErrorReader) -> AttemptResult | None:
    """Run a program under supervision, show its output on stderr as it comes, and read it.

    Raises:
        UsageError: No program was named, or it could not be started.
    """
    from rocmend.runner.events import Event, EventKind
    from rocmend.runner.run import run_attempt
    from rocmend.runner.spec import LONGEST_S, AttemptSpec, Command, Limits

    if not words:
        raise UsageError("--run", "no program was named.", next_step="`rocmend explain --run python train.py`.")

    def hear(event: Event) -> None:
        if event.kind in {EventKind.OUTPUT, EventKind.DMESG}:
            reader.feed(f"{event.text}\n".encode(errors="replace"))
            if event.kind is EventKind.OUTPUT:
                tell(event.text)

    limits = Limits(total_s=time_limit or LONGEST_S, silence_s=LONGEST_S, max_output_bytes=_READ_BYTES)
    try:
        result = run_attempt(AttemptSpec(words[0], Command(words), limits=limits), on_event=hear)
    except KeyboardInterrupt:
        tell("rocmend: the program was interrupted; this is what it had printed:")
        return None
    if result.verdict is Verdict.INFRA and result.exit_code is None and not reader.bytes:
        raise UsageError("--run", result.reason, next_step="Check the name of the program.")
    return result


def _ended(result: AttemptResult) -> str:
    """Say how a program ended."""
    if result.verdict in {Verdict.HANG, Verdict.SLOW}:
        return "The program was ended at its time limit."
    if result.exit_code is None:
        return f"The program was ended by signal {result.signal}."
    return f"The program ended with exit status {result.exit_code}."


def _plan(machine: Machine | None, knowledge: Knowledge) -> Plan | None:
    """Return what doctor advises for a machine; None where nothing of it is judged."""
    if machine is None or machine.hypothetical_target:
        return None
    from rocmend.cli.plan import with_installs
    from rocmend.doctor.diagnose import diagnose

    return with_installs(diagnose(machine, knowledge), machine, knowledge).plan


def _near(knowledge: Knowledge, pasted: str, target: str | None) -> list[tuple[str, str]]:
    """Return the entries that are about the words of a short text, with their titles."""
    from rocmend.kb.general import headline
    from rocmend.kb.search import SearchIndex, words_in

    if not words_in(pasted):
        return []
    try:
        index = SearchIndex(knowledge)
    except RocmendError:  # a Python without FTS5
        return []
    hits = index.search(pasted, targets=(target,) if target else ())
    return [(hit.entry.id, headline(hit.entry)) for hit in hits[:_MOST_NEAR]]
