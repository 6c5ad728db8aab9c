"""What a text means: the entries whose signatures stand in its lines, read as it comes, in bounded memory."""

from __future__ import annotations

import codecs
import re

import msgspec

from rocmend.core.pending import Key, Pending, device_in
from rocmend.core.signatures import MAX_LINE_BYTES, MIDDLE, Certainty, Found, Known, Log, SignatureIndex
from rocmend.kb.load import Knowledge
from rocmend.kb.own import OwnSentences, Place, Reports

BLOCK_BYTES = 1 << 20
"""How much is looked at at once."""

_LONGEST_LINE = 1 << 16
"""A longer line is looked at in pieces,"""
_OVERLAP = MAX_LINE_BYTES
"""each with the end of the piece before, so that an error across the cut is seen."""
_MOST = 100
"""Lines looked at for each signature in each block: in a flood of errors the rest is alike."""
_SHOWN_BYTES = 400
_ANSI = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_BOM = codecs.BOM_UTF8
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_MENTION = re.compile(
    r"^\s*(?:if |!|while )?\s*(?:echo|printf|print|raise|export|unset)\b|^\W*(?:Set|Unset) \w+="
    r"|\b(?:[ef]?grep|rg|sed|awk|journalctl|findstr|Select-String)\b.*[\"']"
    r"|[\"'”`] means\b|\bprint(?:s|ed)? [\"'“`]"
)
"""Lines of a script, a traceback's source or a text that name an error and are none."""
_SURE = tuple(Certainty)


class Sighting(msgspec.Struct, frozen=True, omit_defaults=True):
    """The lines of a text that one entry explains.

    Attributes:
        entry_id: The entry.
        certainty: How sure it is that such a line means it.
        log: Where such a line is printed.
        line: The first such line, cut.
        number: Its number in the text, from 1.
        surest: The number of the line that says it most surely; 0 for this one.
        meaning: What such a line says; empty where the entry's title says it.
        count: How many there are,
        at_least: or more: in a flood not all are counted.
        rank: The signature's.
        part: Only a part of such a line was given.
        mention: The line is of a script, a text or a report that names the error.
    """

    entry_id: str
    certainty: Certainty
    log: Log
    line: str
    number: int
    meaning: str = ""
    count: int = 1
    at_least: bool = False
    rank: int = 50
    part: bool = False
    mention: bool = False
    surest: int = 0

    @property
    def order(self) -> tuple[int, int, int]:
        """What to sort by: the surest first, then by rank, then as they come."""
        return _SURE.index(self.certainty), self.rank, self.number


def index_of(knowledge: Knowledge) -> SignatureIndex:
    """Return the index of the signatures of all entries.

    Raises:
        PatternError: A pattern is malformed or too large.
    """
    return SignatureIndex(
        Known(entry.id, signature) for entry in knowledge.entries.values() for signature in entry.signature
    )


class ErrorReader:
    """Finds what lines mean, in a text that comes in pieces.

    Colours are taken out; UTF-16, as PowerShell writes it, is told by its first bytes; other bytes that are no text do
    no harm.

    What rocmend itself printed is no error: its sentences are passed over, what its reports quote is a mention.

    Args:
        index: What to look for.
        own: rocmend's sentences; None to take them for errors.
    """

    def __init__(self, index: SignatureIndex, own: OwnSentences | None = None) -> None:
        self._index = index
        self._own = own
        self._reports = Reports()
        self._rest = b""
        self._middle = False
        self._told: set[str] = set()
        self._decoder: codecs.IncrementalDecoder | None = None
        self._found: dict[Key, Sighting] = {}
        self._pending = Pending()
        self._real: set[str] = set()
        self.bytes = 0
        self.lines = 0

    def feed(self, data: bytes) -> None:
        """Take in the next piece."""
        if not self.bytes and data[:2] in _UTF16:
            self._decoder = codecs.getincrementaldecoder(_UTF16[data[:2]])("replace")
        self.bytes += len(data)
        if self._decoder is not None:
            data = self._decoder.decode(data).encode(errors="replace")
        for start in range(0, len(data), BLOCK_BYTES):
            self._take(data[start : start + BLOCK_BYTES])

    def _take(self, data: bytes) -> None:
        data = self._rest + data
        cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if len(data) - cut > _LONGEST_LINE:
            self._rest = data[-_OVERLAP:]
            self._look(data, whole=False)
        else:
            self._rest = data[cut:]
            self._look(data[:cut], whole=True)

    def finish(self) -> tuple[Sighting, ...]:
        """Take in the last line; return what was found, the surest first."""
        rest, self._rest = self._rest, b""
        self._look(rest, whole=True)
        self.lines += bool(rest)
        return self.found()

    def found(self) -> tuple[Sighting, ...]:
        """Return what was found so far, the surest first."""
        merged: dict[str, Sighting] = {}
        for one in sorted(self._found.values(), key=lambda one: one.number):
            before = merged.get(one.entry_id)
            merged[one.entry_id] = one if before is None else _both(before, one)
        return tuple(sorted(merged.values(), key=lambda one: one.order))

    def _look(self, block: bytes, *, whole: bool) -> None:
        """Look at lines.

        Args:
            block: The lines; the first may have begun in the block before, whose end it then begins with.
            whole: The last line ends here.
        """
        if not block:
            return
        plain = _ANSI.sub(b"", block) if b"\x1b" in block else block
        plain = (MIDDLE if self._middle else b"") + plain.replace(_BOM, b"")
        self._reports.take(plain)
        number, counted, line, more = self.lines + 1, 0, 0, set[str]()
        for hit in self._index.scan(plain, _MOST, more):
            number += plain.count(b"\n", counted, hit.offset)
            counted = hit.offset
            if hit.offset != line:
                line, self._told = hit.offset, set()
            telling = [known for known in _telling(hit.known) if known.entry_id not in self._told]
            place = self._place(hit, telling)
            if place is Place.OWN:
                continue
            if telling:
                for key in self._pending.end({known.signature.kind for known in hit.known}, hit.line):
                    del self._found[key]
            mention = place is Place.QUOTED or _MENTION.search(hit.line) is not None
            for known in telling:
                self._told.add(known.entry_id)
                self._keep(known, hit.line.removeprefix(MIDDLE.decode()), number, mention=mention)
                if known.signature.ended_by:
                    self._pending.begin(known.entry_id, known.signature, hit.line, hit.offset)
        for key in self._pending.settle(plain):
            del self._found[key]
        for key in [key for key in self._found if key[0] in more]:
            self._found[key] = msgspec.structs.replace(self._found[key], at_least=True)
        self._middle = not whole
        if whole or line != max(plain.rfind(b"\n"), plain.rfind(b"\r")) + 1:
            self._told = set()
        self.lines += block.count(b"\n")

    def _place(self, hit: Found, telling: list[Known]) -> Place:
        """Return where a line stands; rocmend's sentences are not looked for once its entries have a real line."""
        place = self._reports.place(hit.offset)
        if place is Place.OUTSIDE and self._own is not None and any(one.entry_id not in self._real for one in telling):
            return Place.OWN if self._own.holds(hit.line) else place
        return place

    def _keep(self, known: Known, line: str, number: int, *, mention: bool) -> None:
        signature = known.signature
        self._real.add(known.entry_id)
        key = known.entry_id, device_in(line) if signature.ended_by else ""
        before = self._found.get(key)
        made = Sighting(
            known.entry_id,
            Certainty.POSSIBLE if mention else signature.certainty,
            signature.log,
            line[:_SHOWN_BYTES],
            number,
            signature.meaning,
            rank=signature.rank,
            mention=mention,
        )
        self._found[key] = made if before is None else _both(before, made)


def _both(before: Sighting, later: Sighting) -> Sighting:
    """Return what two sightings say together: the first line is shown; what a later one says more surely holds."""
    made = later
    if later.order[:2] >= before.order[:2]:
        made = before
    elif not before.mention:
        made = msgspec.structs.replace(
            later, line=before.line, number=before.number, surest=later.surest or later.number
        )
    return msgspec.structs.replace(made, count=before.count + later.count, at_least=before.at_least or later.at_least)


def _telling(known: tuple[Known, ...]) -> list[Known]:
    """Return those of a line's signatures that tell something: beside a surer one, a mere possibility does not."""
    best = min(_SURE.index(one.signature.certainty) for one in known)
    least = len(_SURE) if best == _SURE.index(Certainty.POSSIBLE) else _SURE.index(Certainty.POSSIBLE)
    kept: dict[str, Known] = {}
    for one in known:
        if _SURE.index(one.signature.certainty) < least:
            kept.setdefault(one.entry_id, one)
    return list(kept.values())


def explain_text(text: str, index: SignatureIndex) -> tuple[Sighting, ...]:
    """Return what the lines of a text mean, the surest first."""
    reader = ErrorReader(index)
    reader.feed(text.encode(errors="replace"))
    return reader.finish()
