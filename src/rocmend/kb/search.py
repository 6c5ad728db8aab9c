"""Finding entries: pasted errors by their signatures, words by SQLite's FTS5 (BM25).

Each term of a query is looked up by itself, and an entry's scores are added: whole phrases and adjacent words count
most, rare words more than common ones (BM25), synonyms and mistyped words less than what was typed, and the beginnings
of longer words least. An entry that has too little of a query is not shown, so that a text about something else finds
nothing.

Source: https://sqlite.org/fts5.html (bm25, fts5vocab)
"""

from __future__ import annotations

import itertools
import math
import re
import sqlite3
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.gfx import known_names, resolve
from rocmend.core.records import Severity
from rocmend.core.signatures import Certainty
from rocmend.core.suggest import misspelled
from rocmend.kb.entry import Entry, Kind, Status
from rocmend.kb.errors import Sighting, explain_text, index_of
from rocmend.kb.load import Knowledge

SYNONYMS = Path(__file__).with_name("synonyms.toml")
WEIGHTS = {
    "id": 5.0,
    "title": 5.0,
    "tags": 5.0,
    "errors": 3.0,
    "scope": 2.0,
    "remedies": 1.0,
    "sources": 1.5,
    "body": 1.0,
}
"""What a word counts for in each part of an entry."""
MAX_WORDS = 40
"""Of a query: more are not looked for."""
MAX_CHARS = 4000
"""Of a query that are looked up by their words; signatures are looked for in all of it."""

_IN_TITLE = "{id title tags} : "
_TITLE = 1.2
_PHRASE = 2.5
_PAIR = 1.5
_COMPOUND = 2.0
_SYNONYM = 0.6
_TYPED = 0.5
"""What a word counts for that was mistyped,"""
_ENDED = 0.5
"""that stands there with another ending,"""
_BEGUN = 0.3
"""or that a longer one begins with."""
_TARGET_WORD = 0.4
"""A GPU's name says where the problem is, not what it is."""
_LEAST_BEGUN = 3
_LEAST_TYPED = 5
_LONG_WORD = 6
_NEAR = 0.22
_ENOUGH = 0.4
"""The share of a query's weight that an entry must have,"""
_ENOUGH_OF_FOREIGN = 0.52
"""of a query with words that no entry has,"""
_LITTLE = 0.25
"""of a single word and of a long text,"""
_ENOUGH_IN_TITLE = 0.2
"""or that its title, id or tags must have."""
_SEVERAL = 3
_ENOUGH_OF_SEVERAL = 0.25
"""What is enough where an entry has that many words of it."""
_PLENTY = 0.65
"""What is enough of any words; of less, one must be among the rarest of the query."""
_RAREST = 3
_LONG = 12
"""Words from which on a query counts as a pasted text: less of it is enough."""
_GPU_WORDS = 4
"""Most words of a GPU's name."""
_FINDING = 1.1
_CONFIRMED = 1.4
_TARGET = 1.2
_OTHER_TARGET = 0.7
_PAST = 0.75
_FIGURE = 0.85
"""A figure or a release answers few problems."""
_UNKNOWN = 0.85

_WORD = re.compile(r"[^\W_]+")
_COMPOUND_WORD = re.compile(r"(?<![^\W_])[^\W_]+(?:[._:/+-]+[^\W_]+)+")
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ings?|ed|es|s|e|ing)\Z")
_COMMON_WORDS = (
    "a an and any are as at be been but by can cannot could did do does don doesn for from get gets getting give got "
    "had has have how i if in into is isn it its just like me my need no not of off on one only or our out over s so "
    "some still t than that the their them then there these they this to too try tried up us use used using want was "
    "way we what when where which while who why will with won work working works would you your error errors run "
    "running runs gpu gpus amd problem issue help fail fails failed failing failure failures new after before during "
    "find finding finds supports supported every all "
    "named module modules returns return returned resources many due using made make makes "
    "very really always sometimes suddenly completely please anyone currently already even also again too much more "
    "question support supporting latest "
    "var lib lib64 usr opt home bin tmp etc py python3 site packages line file most recent call last traceback"
)
_COMMON = frozenset(_COMMON_WORDS.split())
"""Words that say nothing about what is looked for; they count where a query has no others."""


class Hit(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry that was found.

    Attributes:
        entry: The entry.
        score: Higher is better; comparable within one search only.
        found: Which words of the query it has.
        line: The line of the query that one of its signatures matches; empty where none does.
    """

    entry: Entry
    score: float
    found: tuple[str, ...]
    line: str = ""


class _Term(msgspec.Struct, frozen=True):
    """Something to look up: an FTS5 expression, the word of the query that it stands for, and what it counts for."""

    match: str
    word: str
    weight: float
    titled: bool = False
    compound: bool = False


class _Match:
    """What of a query stands in an entry."""

    def __init__(self) -> None:
        self.score = 0.0
        self.words: dict[str, float] = {}
        self._titled: set[str] = set()
        self._compound = False

    def take(self, term: _Term, score: float) -> None:
        """Take in a term that stands there."""
        self.score += term.weight * score
        self._compound = self._compound or term.compound
        if term.titled:
            self._titled.add(term.word)
        elif term.word:
            self.words[term.word] = max(self.words.get(term.word, 0.0), min(1.0, term.weight))

    def share(self, wanted: Mapping[str, float], enough: float) -> float:
        """Return the share of a query's weight that is there; 0 where it is too little to be about it.

        Args:
            wanted: The words of the query, with how much each tells.
            enough: The share that is enough of one or two words.
        """
        total = sum(wanted.values())
        counted = {word: part for word, part in self.words.items() if word in wanted}
        share = sum(wanted[word] * part for word, part in counted.items()) / total if counted else 0.0
        in_title = sum(wanted.get(word, 0.0) for word in self._titled) / total if counted else 0.0
        whole = sum(part >= _ENDED for part in counted.values())
        several = whole >= _SEVERAL or (len(counted) > 1 and in_title >= _ENOUGH_IN_TITLE)
        rarest = sorted(wanted, key=lambda word: -wanted[word])[:_RAREST]
        telling = self._compound or in_title >= _ENOUGH_IN_TITLE or any(word in counted for word in rarest)
        if share >= _PLENTY or (telling and share >= (_ENOUGH_OF_SEVERAL if several else enough)):
            return share
        return 0.0


class SearchIndex:
    """The entries, ready to be searched.

    Args:
        knowledge: The entries.

    Raises:
        RocmendError: Python's SQLite has no full-text search.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self._entries = tuple(knowledge.entries.values())
        self._errors = index_of(knowledge)
        self._database = sqlite3.connect(":memory:")
        columns = ", ".join(WEIGHTS)
        try:
            self._database.execute(f"CREATE VIRTUAL TABLE entries USING fts5({columns}, tokenize='unicode61')")
            self._database.execute("CREATE VIRTUAL TABLE words USING fts5vocab(entries, 'row')")
        except sqlite3.OperationalError as error:
            raise RocmendError(
                "kb search",
                f"Python's SQLite {sqlite3.sqlite_version} has no full-text search: {error}.",
                next_step="Use a Python whose sqlite3 has FTS5; `rocmend explain` and `rocmend kb show ID` do without.",
            ) from None
        marks = ", ".join("?" * len(WEIGHTS))
        self._database.executemany(f"INSERT INTO entries VALUES ({marks})", map(_parts, self._entries))  # noqa: S608
        self._documents: dict[str, int] = dict(self._database.execute("SELECT term, doc FROM words"))

    def search(self, query: str, *, targets: Collection[str] = (), findings: Collection[str] = ()) -> tuple[Hit, ...]:
        """Return the entries that a query is about, best first.

        Entries whose signature stands in the query come first, the surest first.

        Args:
            query: Words, or a pasted error; case and punctuation do not matter.
            targets: gfx targets of the person's GPUs: entries about them are lifted, those about others lowered.
            findings: Ids of entries that a diagnosis reports of the person's machine: they are lifted.
        """
        seen = explain_text(query, self._errors)
        hits = {hit.entry.id: hit for hit in self._by_words(query, targets, findings)}
        best = max((hit.score for hit in hits.values()), default=1.0)
        for number, sighting in enumerate(reversed(seen)):
            hits[sighting.entry_id] = self._seen(sighting, hits.get(sighting.entry_id), best, number)
        return tuple(sorted(hits.values(), key=lambda hit: (-hit.score, hit.entry.id)))

    def _seen(self, sighting: Sighting, hit: Hit | None, best: float, number: int) -> Hit:
        entry = next(one for one in self._entries if one.id == sighting.entry_id)
        before = hit.score if hit is not None else 0.0
        sure = sighting.certainty is not Certainty.POSSIBLE
        score = best * (2 + number) if sure else max(before, best * 0.6) * 1.2
        return Hit(entry, round(score, 3), hit.found if hit is not None else (), sighting.line)

    def _by_words(self, query: str, targets: Collection[str], findings: Collection[str]) -> list[Hit]:
        query = query[:MAX_CHARS]
        words, named = _asked(query)
        matches: dict[int, _Match] = {}
        for term in self._terms(query, words, named):
            for number, score in self._look(term.match):
                matches.setdefault(number, _Match()).take(term, score)
        wanted = {word: self._rarity(word) for word in words} or dict.fromkeys(named, 1.0)
        enough = self._enough(words)
        hits = []
        for number, match in matches.items():
            share = match.share(wanted, enough)
            if share:
                entry = self._entries[number]
                score = match.score * share * _worth(entry, {*targets, *named}, findings)
                found = tuple(word for word in match.words if word in wanted)
                hits.append(Hit(entry, max(0.001, round(score, 3)), found))
        return hits

    def _enough(self, words: Sequence[str]) -> float:
        """Return the share of a query's weight that an entry must have."""
        if len(words) > _LONG or len(words) < 2:
            return _LITTLE
        return _ENOUGH if all(word in self._documents for word in words) else _ENOUGH_OF_FOREIGN

    def _terms(self, query: str, words: Sequence[str], named: Mapping[str, str]) -> Iterator[_Term]:
        """Yield what is looked up for a query."""
        every = _words(query)[:MAX_WORDS]
        for compound in dict.fromkeys(_COMPOUND_WORD.findall(_folded(query))):
            yield _Term(_phrase(_WORD.findall(compound)), "", _COMPOUND, compound=True)
        for target, name in named.items():
            yield _Term(_phrase([target]), target, _TARGET_WORD)
            if name.lower() != target:
                yield _Term(_phrase(_words(name)), target, 0.15)
        if len(words) > _LONG:
            yield from (_Term(_phrase([word]), word, 1.0) for word in words if word in self._documents)
            return
        if len(every) > 1:
            yield _Term(_phrase(every), "", _PHRASE)
        for pair in dict.fromkeys(itertools.pairwise(every)):
            if not _COMMON & set(pair):
                yield _Term(_phrase(pair), "", _PAIR)
        for word in words:
            yield from self._of_word(word)
        for words_of, phrase in _synonyms(every):
            for word in words_of:
                if word in words:
                    yield _Term(_phrase(_words(phrase)), word, _SYNONYM)

    def _of_word(self, word: str) -> Iterator[_Term]:
        if word in self._documents:
            yield _Term(_phrase([word]), word, 1.0)
            yield _Term(_IN_TITLE + _phrase([word]), word, _TITLE, titled=True)
        short = _ENDING.sub("", word)
        if len(short) >= _LEAST_BEGUN and not word.isdigit():
            known = short != word or word in self._documents or len(word) >= _LONG_WORD
            yield _Term(f"{_phrase([short])}*", word, _ENDED if known else _BEGUN)
        if word in self._documents or len(word) < _LEAST_TYPED or any(map(str.isdigit, word)):
            return
        if any(known.startswith(short) for known in self._documents):
            return
        near = [known for known in self._documents if known[0] == word[0] and abs(len(known) - len(word)) <= 2]
        meant = misspelled(word, near, near=_NEAR)
        if meant:
            yield _Term(_phrase([meant]), word, _TYPED)

    def _look(self, match: str) -> Iterator[tuple[int, float]]:
        weights = ", ".join(map(str, WEIGHTS.values()))
        statement = f"SELECT rowid, -bm25(entries, {weights}) FROM entries WHERE entries MATCH ?"  # noqa: S608
        for row, score in self._database.execute(statement, (match,)):
            yield row - 1, score

    def _rarity(self, word: str) -> float:
        """Return how much a word tells; of one that no entry has, little."""
        holding = self._documents.get(word, 0)
        if not holding:
            return _UNKNOWN * math.log(len(self._entries) + 1)
        return math.log(1 + (len(self._entries) - holding + 0.5) / (holding + 0.5))


def search(knowledge: Knowledge, query: str) -> tuple[Hit, ...]:
    """Return the entries that a query is about, best first; see SearchIndex."""
    return SearchIndex(knowledge).search(query)


def words_in(query: str) -> tuple[str, ...]:
    """Return what is looked for: the words that say something, or all where none does; empty where there are none."""
    found = _words(query[:MAX_CHARS])
    words = [word for word in found if len(word) > 1] or found
    telling = [word for word in words if word not in _COMMON]
    return tuple(dict.fromkeys(telling or words))[:MAX_WORDS]


def _words(text: str) -> list[str]:
    return _WORD.findall(_folded(text))


def _folded(text: str) -> str:
    """Return a text in lower case and without diacritics, as FTS5's tokenizer ``unicode61`` reads it."""
    low = text.lower()
    if low.isascii():
        return low
    apart = unicodedata.normalize("NFD", low)
    return unicodedata.normalize("NFC", "".join(char for char in apart if not unicodedata.combining(char)))


def _worth(entry: Entry, targets: Collection[str], findings: Collection[str]) -> float:
    worth = _PAST if entry.status in {Status.SUPERSEDED, Status.REFUTED} else 1.0
    if entry.kind in {Kind.MEASUREMENT, Kind.RELEASE}:
        worth *= _FIGURE
    if entry.id in findings:
        worth *= _CONFIRMED
    elif entry.when and entry.severity in {Severity.ERROR, Severity.WARNING}:
        worth *= _FINDING
    if targets and entry.scope.gfx:
        worth *= _TARGET if set(targets) & set(entry.scope.gfx) else _OTHER_TARGET
    return worth


def _phrase(words: Sequence[str]) -> str:
    return '"' + " ".join(words) + '"'


def _parts(entry: Entry) -> tuple[str, ...]:
    """Return the texts of an entry, in the order of WEIGHTS."""
    scope = entry.scope
    return (
        entry.id,
        f"{entry.title} {entry.headline}",
        " . ".join(entry.tags),
        " ".join(line.text for one in entry.signature for line in one.lines),
        " ".join((entry.topic, entry.kind.value, *scope.gfx, *scope.package, *scope.workload, *scope.os)),
        " ".join(remedy.text for remedy in entry.remedy),
        " ".join(source.title for source in entry.source),
        entry.body,
    )


class _Synonyms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    groups: tuple[tuple[str, ...], ...]


@cache
def _groups() -> tuple[tuple[tuple[str, tuple[str, ...]], ...], ...]:
    """Return the groups of synonyms, each phrase with its words."""
    made = msgspec.toml.decode(SYNONYMS.read_bytes(), type=_Synonyms)
    return tuple(tuple((phrase, tuple(_words(phrase))) for phrase in group) for group in made.groups)


def _synonyms(words: Sequence[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the phrases that mean the same as one in the query, with the words that that one has."""
    stems = [_ENDING.sub("", word) for word in words]
    for group in _groups():
        for phrase, parts in group:
            wanted = [_ENDING.sub("", part) for part in parts]
            at = next((at for at in range(len(stems)) if stems[at : at + len(wanted)] == wanted), -1)
            if at >= 0:
                typed = tuple(words[at : at + len(wanted)])
                yield from ((typed, other) for other, _ in group if other != phrase)


def _asked(query: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the words of a query without the names of GPUs, and those names by target: gfx1010: RX 5600 XT."""
    parts = query.split()[:MAX_WORDS]
    named: dict[str, str] = {}
    rest: list[str] = []
    at = 0
    while at < len(parts):
        length, target = _longest_name(parts, at)
        if target:
            named[target] = " ".join(parts[at : at + length])
        else:
            rest.append(parts[at])
        at += length
    words = words_in(" ".join(rest)) if named else words_in(query)
    if named and not any(word not in _COMMON for word in words):
        words = ()
    return words, named


def _longest_name(parts: Sequence[str], at: int) -> tuple[int, str]:
    """Return how many words from a place on are a GPU's name, none too many, and its target; 1 and "" for none."""
    for length in range(min(_GPU_WORDS, len(parts) - at), 0, -1):
        name = [part.strip("()[],;:.") for part in parts[at : at + length]]
        target = _target(name)
        if target and not any(_target(name[first:]) == target for first in range(1, length)):
            return next(least for least in range(1, length + 1) if _target(name[:least]) == target), target
    return 1, ""


def _target(name: Sequence[str]) -> str:
    """Return the gfx target of a GPU's name; empty where it is none."""
    words = [word.lower() for word in name]
    if len(words) == 1 and not re.search(r"[a-z]\d|\d[a-z]", words[0]):
        return ""
    if not all(re.search(r"\d", word) or word in _words_of_names() for word in words):
        return ""
    return _resolved(" ".join(words))


@cache
def _resolved(name: str) -> str:
    try:
        return resolve(name).gfx.partition(":")[0]
    except UsageError:
        return ""


@cache
def _words_of_names() -> frozenset[str]:
    """Return the words of which GPUs' names are made."""
    names = (part for word, _, shown in known_names() for part in _words(f"{word} {shown}"))
    return frozenset({*names, "amd", "radeon", "instinct", "ryzen", "gpu", "graphics"})
