"""Lines of output that say what went wrong, as data (``failures.toml``).

A word such as ``CUDA error`` is in the names of tests, in documentation and in summaries that count none. What counts
is the form in which a runtime prints an error: at the beginning of a line, behind nothing but what loggers and
exceptions put there, and followed by what went wrong.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from rocmend.core.patterns import compile_pattern
from rocmend.core.verdict import Verdict
from rocmend.runner.output import find_lines

FILE = Path(__file__).with_name("failures.toml")

STEMS = (
    b"rror", b"ailed", b"ault", b"emory", b"FAILED", b"core dumped", b"DeviceLost", b"DEVICE_LOST", b"_OF_",
    b"terminate called", b"GGML_ASSERT", b"Aborted", b"Illegal instruction", b"bad_alloc", b"not found", b"llocat",
    b"No such file", b"cannot open shared", b"Exception by GPU", b"Traceback (most", b"no kernel image",
    b"nvalid device function", b"unable to load", b"OutOf", b"HSA_STATUS", b"mem_buffer", b"aborting with",
    b"miopenStatus", b"context is lost", b"exit status", b"Failed  ",
    b"tests failed", b"FAILURES", b"TensileLibrary", b"Tensile host", b"Tensile library", b"ggml_cuda_",
)  # fmt: skip
"""Every word of every entry holds one of these (a test checks it); they are what is looked for in a flood of output."""

MAX_LINES = 200
"""Lines of one kind that are looked at; from then on the kind is known."""

_RANK = (Verdict.GPU_RESET, Verdict.UNSUPPORTED, Verdict.OOM, Verdict.CRASH, Verdict.INFRA)


_AT_START = (
    r"^(?:"
    r"[\s>|*]|\[[^\]]*\]|\([^)]*\)|[\w-]+ +\| |"  # indent, rank, process, container
    r"[\d:.,/T+-]+Z? |"  # date and time
    r"(?:FATAL ERROR|(?i:error|fatal|critical)|E)\b:?|"
    r"[\w./\\+-]+:(?: line )?\d+:|:\d:[\w.]+ *:\d+ *:.*\]|"  # place, as compilers, shells and ROCm's log write it
    r"[\w.]+(?:Error|Exception):|what\(\):|"
    r"[a-z]\w*(?: +\w+)?(?:::\w+)*: "  # function
    r')*"?'
)
"""``{at}`` of a pattern: a line's beginning, and what loggers and exceptions put before an error."""

_BENIGN = (
    r"(?i)(?:\.\.\.? *|[\s\[(])(?:ok|pass|passed|skipped|xfail|xfailed|expected|handled)\W*"
    r"(?:\[ *\d+ ?%\]|\([\d.]+ ?m?s\)|[\d.]+ sec)?\s*$"
    r"|^\s*(?:ok \d|✓|✔|√|PASS\b|PASSED\b|\[ +(?:OK|RUN|PASSED) +\])|\bXFAIL\b"
)
"""Lines on which a test says that it ended well, whatever it tested."""


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of line that says what went wrong.

    Attributes:
        id: Its name.
        words: Such a line holds one of them.
        pattern: Regular expression searched for in it; ``{at}`` stands for the line's beginning.
        verdict: What it makes of a run that did not end well.
        always: It counts even where the exit status is 0.
        meaning: What such a line says.
        source: Where that is written.
        unless: Regular expression of lines that are no such failure all the same; "" for none.
    """

    id: str
    words: tuple[str, ...]
    pattern: str
    verdict: Verdict
    always: bool
    meaning: str
    source: str
    unless: str = ""


class FailureSeen(msgspec.Struct, frozen=True, omit_defaults=True):
    """Lines of one kind that a run printed.

    Attributes:
        id: The kind.
        verdict: What it makes of a run.
        line: The first such line, cut at 300 characters.
        meaning: What it says.
        count: How many of them were looked at.
        always: It counts even where the exit status is 0.
    """

    id: str
    verdict: Verdict
    line: str
    meaning: str
    count: int = 1
    always: bool = False


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    failures: tuple[Failure, ...]


@cache
def known_failures() -> tuple[Failure, ...]:
    """Return the kinds of failing lines, in order."""
    return msgspec.toml.decode(FILE.read_bytes(), type=_File).failures


def failure_of(line: str) -> Failure | None:
    """Return the kind of failure that a line speaks of."""
    for item in known_failures():
        if any(word in line for word in item.words) and _speaks_of(item, line):
            return item
    return None


def _speaks_of(item: Failure, line: str) -> bool:
    if not compile_pattern(item.pattern.replace("{at}", _AT_START)).search(line):
        return False
    if item.always and compile_pattern(_BENIGN).search(line):
        return False
    return not (item.unless and compile_pattern(item.unless).search(line))


class FailureScanner:
    """Looks for failing lines in one run's output."""

    def __init__(self) -> None:
        self._seen: dict[str, FailureSeen] = {}

    def feed(self, block: bytes) -> None:
        """Look at a block of whole lines."""
        for hit in find_lines(block, STEMS, MAX_LINES):
            self.look(hit.line)

    def look(self, line: str) -> None:
        """Look at one line."""
        item = failure_of(line)
        if item is None:
            return
        before = self._seen.get(item.id)
        if before is None:
            self._seen[item.id] = FailureSeen(item.id, item.verdict, line[:300], item.meaning, always=item.always)
        else:
            self._seen[item.id] = msgspec.structs.replace(before, count=before.count + 1)

    def seen(self) -> tuple[FailureSeen, ...]:
        """Return the kinds seen, the weightiest first."""
        return tuple(sorted(self._seen.values(), key=lambda item: _RANK.index(item.verdict)))
