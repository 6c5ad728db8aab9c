"""Signatures: an error's text as it is printed, and the one matcher that finds it in output and in kernel logs.

Knowledge entries hold them (``[[signature]]``). The runner judges a run's output by them, the kernel log is sorted into
classes by them, and ``rocmend explain`` and ``rocmend kb search`` look errors up by them. The runner and the machine's
collectors may not import the knowledge base, so the signatures of the shipped entries are read here, as data.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import rocmend
from rocmend.core.documents import parse_toml
from rocmend.core.kept import place_of, read_kept, stamps_of, write_kept
from rocmend.core.patterns import compile_pattern
from rocmend.core.verdict import Verdict

ENTRIES = Path(rocmend.__file__).parent / "kb" / "entries"
MAX_LINE_BYTES = 2000
"""Bytes of a line that are shown and kept: a line is cut around what was found in it."""

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

_BOOT = r"\bLinux version \d"
"""What the kernel prints first."""

_AMDGPU = r"(?i)\bamdgpu|\bamdkfd|\bkfd\b|\bdrmn\d|_kfd_"
_DRM = r"(?i)\[drm[\]:]"
_OTHER_DRM = (
    r"(?i)[a-z][\w-]* (?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]: .*\[drm[\]:]"  # a device with its driver
    r"|\[drm:\w+ \[\w+\]"  # a function with its module
    r"|\[drm:(?:i915|intel|xe|radeon|nouveau|nv\d*|nvidia|ast|vmw|virtio|msm|panfrost|v3d|vc4)_|\[nvidia-drm\]"
)
"""Lines of [drm] that say which driver printed them."""

_HEADER = "[[signature]]"

MIDDLE = b"\0x"
"""What is put before text that begins in the middle of a line, so that no pattern takes it for a beginning."""


class Certainty(StrEnum):
    """How sure it is that a line with this text means what the entry says."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


class Log(StrEnum):
    """Where such a line is printed."""

    OUTPUT = "output"
    KERNEL = "kernel"


class Device(StrEnum):
    """Whose lines are meant."""

    ANY = "any"
    AMDGPU = "amdgpu"


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line as a program or the kernel printed it.

    Attributes:
        text: The line; addresses, paths and times may be shortened.
        source: Where it was seen, or where the program that prints it has it.
    """

    text: str
    source: str


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An error's text as it is printed.

    Attributes:
        pattern: Regular expression in RE2's syntax, searched for in a line; ``{at}`` stands for the line's beginning
            and what loggers and exceptions put there. Case does not count in the kernel log.
        lines: At least one real line that it matches.
        certainty: How sure it is that such a line means what the entry says.
        log: Where such a line is printed.
        rank: Of several that match a line, the lowest is named first.
        unless: Regular expression of lines that are not meant all the same; empty for none.
        device: Whose lines are meant: any program's and driver's, or only those that name amdgpu or its kfd, or the
            kernel's [drm] and no other driver.
        kind: The name under which programs know it: the class of a kernel line, counted as the fact ``dmesg.<kind>``,
            or the kind of failure in a run's record. No other signature has it.
        meaning: What such a line says, in a sentence; empty where the entry's title says it.
        verdict: What it makes of a run that did not end well and printed it; None where it makes nothing of it.
        always: It counts even where the exit status is 0.
        ended_by: Kinds of lines that take it back where they follow it: a reset that began has ended.
        ended_by_text: Regular expression of lines that take it back too, and that are no errors themselves.
    """

    pattern: str
    lines: tuple[Line, ...]
    certainty: Certainty = Certainty.CERTAIN
    log: Log = Log.OUTPUT
    rank: int = 50
    unless: str = ""
    device: Device = Device.ANY
    kind: str = ""
    meaning: str = ""
    verdict: Verdict | None = None
    always: bool = False
    ended_by: tuple[str, ...] = ()
    ended_by_text: str = ""


class Known(msgspec.Struct, frozen=True, array_like=True):
    """A signature, and the entry that holds it."""

    entry_id: str
    signature: Signature


class Found(msgspec.Struct, frozen=True):
    """A line in which signatures were found.

    Attributes:
        offset: Where the line begins in the block that was looked at.
        line: The line, cut.
        known: The signatures, by rank.
    """

    offset: int
    line: str
    known: tuple[Known, ...]


class SignatureIndex:
    """Finds signatures in lines, in time that grows with the text and no faster.

    RE2's FilteredRE2 looks for the words of all patterns at once, so that lines without any cost next to nothing.

    Args:
        known: What to look for.

    Raises:
        PatternError: A pattern is malformed or too large.
    """

    def __init__(self, known: Iterable[Known]) -> None:
        import re2

        self.known = tuple(sorted(known, key=lambda one: one.signature.rank))
        self._filter = re2.Filter()
        for one in self.known:
            try:
                self._filter.Add(expression(one.signature.pattern, one.signature.log), _options())
            except re2.error:
                compile_pattern(expanded(one.signature.pattern))  # which says what is wrong with it
                raise
        if self.known:
            self._filter.Compile()
        self._patterns = [self._filter.re(number) for number in range(len(self.known))]
        ends = {kind for one in self.known for kind in one.signature.ended_by}
        self._paired = [bool(one.signature.ended_by) or one.signature.kind in ends for one in self.known]

    def of(self, line: str | bytes) -> tuple[Known, ...]:
        """Return the signatures that match a line, by rank."""
        data = line.encode(errors="replace") if isinstance(line, str) else line
        numbers = self._filter.Match(data) if self.known else None
        return tuple(self.known[number] for number in sorted(numbers or ()) if _meant(self.known[number], data))

    def may_match(self, line: str) -> bool:
        """Whether a line holds the words of a pattern, so that it is tried."""
        return bool(self.known and self._filter.Match(line.encode(errors="replace"), potential=True))

    def scan(self, block: bytes, most: int = 0, more: set[str] | None = None) -> Iterator[Found]:
        """Yield the lines of a block that signatures match, in order; of a very long line several parts.

        Args:
            block: Whole lines; a carriage return ends one too.
            most: Lines looked at for each signature, from the first on; 0 for all. What takes another signature back,
                and what is taken back, is looked for in all lines: the last one decides.
            more: Takes in the entries of signatures that more lines match.
        """
        numbers = self._filter.Match(block, potential=True) if self.known else None
        if not numbers:
            return
        if b"\r" in block:
            block = block.replace(b"\r", b"\n")
        places: dict[tuple[int, int], int] = {}
        for number in numbers:
            limit = 0 if self._paired[number] else most
            for count, at in enumerate(self._places(number, block)):
                if limit and count == limit:
                    if more is not None:
                        more.add(self.known[number].entry_id)
                    break
                start = block.rfind(b"\n", 0, at) + 1
                places.setdefault((start, (at - start) // MAX_LINE_BYTES), at)
        for (start, _), at in sorted(places.items()):
            first, line = _cut_line(block, start, at)
            known = self.of(line if first == start else MIDDLE + line)
            if known:
                yield Found(start, line.decode(errors="replace").strip(), known)

    def _places(self, number: int, block: bytes) -> Iterator[int]:
        """Yield where a pattern is found, at most once a line."""
        pattern, at = self._patterns[number], 0
        while at >= 0:
            found = pattern.search(block, at)
            if found is None:
                return
            yield found.start()
            at = block.find(b"\n", found.end()) + 1 or -1


def _cut_line(block: bytes, start: int, at: int) -> tuple[int, bytes]:
    """Return the line that begins at ``start``, cut around ``at``, and where the cut begins."""
    end = block.find(b"\n", at)
    end = len(block) if end < 0 else end
    if end - start > MAX_LINE_BYTES:
        start = max(start, at - MAX_LINE_BYTES // 2)
        end = min(end, start + MAX_LINE_BYTES)
    return start, block[start:end]


def expanded(pattern: str) -> str:
    """Return a pattern with ``{at}`` written out."""
    return pattern.replace("{at}", _AT_START)


def expression(pattern: str, log: Log) -> str:
    """Return the expression that is searched for in a block of lines."""
    return f"(?im){pattern}" if log is Log.KERNEL else f"(?m){expanded(pattern)}"


def _options() -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_nl = True  # a class such as [^)] does not reach into the next line
    return options


def _meant(known: Known, data: bytes) -> bool:
    """Whether a line that has a signature's text is meant by it."""
    signature = known.signature
    if signature.unless and _searched(expression(signature.unless, signature.log)).search(data):
        return False
    if signature.device is Device.AMDGPU and not _of_amdgpu(data):
        return False
    return not (signature.log is Log.OUTPUT and _searched(_BENIGN).search(data))


def _of_amdgpu(data: bytes) -> bool:
    """Whether a line of the kernel's is of AMD's GPU driver."""
    if _searched(_AMDGPU).search(data):
        return True
    return bool(_searched(_DRM).search(data)) and not _searched(_OTHER_DRM).search(data)


def ends_in(signature: Signature, text: bytes, start: int = 0) -> Iterator[tuple[int, str | None]]:
    """Yield the lines from an offset on that take a signature back by their text, in order.

    Yields:
        Where such a line is found, and the line; None in its place where the kernel starts anew.
    """
    if not signature.ended_by_text:
        return
    ends = expression(f"(?:{signature.ended_by_text})|(?P<boot>{_BOOT})", signature.log)
    for found in _searched(ends).finditer(text, max(start, 0)):
        begin = text.rfind(b"\n", 0, found.start()) + 1
        end = text.find(b"\n", found.start())
        line = text[begin : end if end >= 0 else len(text)][:MAX_LINE_BYTES]
        yield found.start(), None if found["boot"] else line.decode(errors="replace")


@cache
def _searched(expression: str) -> Any:
    import re2

    return re2.compile(expression, _options())


@cache
def builtin() -> tuple[Known, ...]:
    """Return the signatures of the entries that come with rocmend.

    Raises:
        DataError: One of them cannot be read.
    """
    paths = [
        f"{folder.path}/{name}"
        for folder in sorted(os.scandir(ENTRIES), key=lambda one: one.name)
        if folder.is_dir()
        for name in sorted(os.listdir(folder.path))  # noqa: PTH208  pathlib doubles the time
        if name.endswith(".md")
    ]
    stamps = stamps_of((__file__, *paths))
    kept = read_kept(place_of(__file__), stamps, tuple[Known, ...])
    if kept is None:
        kept = tuple(known for path in paths for known in _in_file(Path(path)))
        write_kept(place_of(__file__), stamps, kept)
    return kept


def _in_file(path: Path) -> Iterator[Known]:
    """Yield the signatures of an entry, without parsing the rest of it."""
    text = path.read_text(encoding="utf-8")
    if _HEADER not in text:
        return
    kept: list[str] = []
    inside = False
    for line in text.partition("\n+++\n")[0].split("\n"):
        inside = line == _HEADER if line.startswith("[") else inside
        if inside:
            kept.append(line)
    tables = parse_toml("\n".join(kept), str(path))
    for table in tables["signature"]:
        yield Known(path.stem, msgspec.convert(table, Signature))


@cache
def judging() -> SignatureIndex:
    """Return the index of the signatures that make something of a run."""
    return SignatureIndex(known for known in builtin() if known.signature.verdict is not None)


def kernel_kinds() -> tuple[Known, ...]:
    """Return the signatures that are classes of kernel lines."""
    return tuple(known for known in builtin() if known.signature.kind and known.signature.log is Log.KERNEL)


@cache
def kernel_classes() -> SignatureIndex:
    """Return their index."""
    return SignatureIndex(kernel_kinds())
