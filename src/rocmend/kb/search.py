"""Finding entries by words: BM25F over the parts of an entry, with GPU names and adjacent words.

    score = sum over the terms of idf(term) * f / (f + K),   f = sum over the parts of weight * count / length norm

Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), section 3.5.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from rocmend.core.errors import UsageError
from rocmend.core.gfx import resolve
from rocmend.core.records import Severity
from rocmend.kb.entry import Entry, Status
from rocmend.kb.load import Knowledge

WEIGHTS = {"id": 4.0, "title": 4.0, "tags": 4.0, "scope": 2.0, "remedies": 1.0, "sources": 1.0, "body": 1.0}
"""What a word counts for in each part of an entry."""
MAX_WORDS = 40
"""Of a query: more are not looked for."""

_K = 1.2
_LENGTH = 0.6
"""How much the length of a part counts, from 0 (not) to 1 (fully)."""
_BEGUN = 0.5
"""What a word counts for where a longer one begins with it."""
_MOST = 5
"""A word that a part repeats more often counts no more."""
_LEAST_BEGUN = 3
_LEAST_STEM = 5
_GPU_WORDS = 4
"""Most words of a GPU's name."""
_FINDING = 1.15
"""What an entry counts for that a diagnosis reports,"""
_PAST = 0.8
"""and one that no longer stands."""

_WORD = re.compile(r"[a-z0-9]+(?:[._][a-z0-9]+)*")
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ing|ed|es|s|e)\Z")
_SAME = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "freez": "hang",
    "stuck": "hang",
}
"""Stems that mean the same."""
_COMMON_WORDS = (
    "a an and are as at be but by can do does for from get has have how i if in is it its me my no not of on or so "
    "that the then there this to was what when where which while why will with you your "
    "error run running use using gpu amd"
)
_COMMON = frozenset(_COMMON_WORDS.split())
"""Words that say nothing about what is looked for; they count where a query has no others."""


class Hit(msgspec.Struct, frozen=True):
    """An entry that was found.

    Attributes:
        entry: The entry.
        score: Higher is better; comparable within one search only.
        found: Which words, and where: ``cwsr: title, tags``.
    """

    entry: Entry
    score: float
    found: tuple[str, ...]


def search(knowledge: Knowledge, query: str) -> tuple[Hit, ...]:
    """Return the entries in which words of a query occur, best first.

    Any word may match; rare words count most, and so do words that stand side by side in the entry as in the query. The
    name of a GPU is looked for by its gfx target too.

    Args:
        knowledge: The entries.
        query: Words, or an error message; case and punctuation do not matter.
    """
    words = words_in(query)
    terms = dict.fromkeys((*words, *_targets(query)))
    typed = {next(_stem(word)): word for word in _WORD.findall(query.lower())}
    pairs = [pair for pair in itertools.pairwise(_stems(query)) if not _COMMON & set(pair)]
    counted = [
        (entry, {part: _Counts(_stems(text)) for part, text in _parts(entry).items()})
        for entry in knowledge.entries.values()
    ]
    means = {part: 1 + sum(parts[part].length for _, parts in counted) / max(1, len(counted)) for part in WEIGHTS}
    scores = [0.0] * len(counted)
    found: list[list[str]] = [[] for _ in counted]
    everything: list[str | tuple[str, str]] = [*terms, *dict.fromkeys(pairs)]
    for term in everything:
        places = [_places(parts, term) for _, parts in counted]
        holding = sum(map(bool, places))
        rarity = math.log(1 + (len(counted) - holding + 0.5) / (holding + 0.5))
        for number, (where, (_, parts)) in enumerate(zip(places, counted, strict=True)):
            if where:
                count = sum(
                    WEIGHTS[part] * min(times, _MOST) / (1 - _LENGTH + _LENGTH * parts[part].length / means[part])
                    for part, times in where.items()
                )
                scores[number] += rarity * count / (count + _K)
                found[number] += [f"{typed.get(term, term)}: {', '.join(where)}"] if isinstance(term, str) else []
    hits = [
        Hit(entry, round(score * _worth(entry), 3), tuple(names))
        for score, names, (entry, _) in zip(scores, found, counted, strict=True)
    ]
    return tuple(sorted((hit for hit in hits if hit.found), key=lambda hit: (-hit.score, hit.entry.id)))


def words_in(query: str) -> tuple[str, ...]:
    """Return what is looked for: the words that say something, or all where none does; empty where there are none."""
    stems = [stem for stem in _stems(query) if len(stem) > 1] or _stems(query)
    telling = [stem for stem in stems if stem not in _COMMON]
    return tuple(dict.fromkeys(telling or stems))[:MAX_WORDS]


def _worth(entry: Entry) -> float:
    if entry.status in {Status.SUPERSEDED, Status.REFUTED}:
        return _PAST
    return _FINDING if entry.when and entry.severity in {Severity.ERROR, Severity.WARNING} else 1.0


class _Counts:
    """The words of a part, counted, alone and in pairs."""

    def __init__(self, stems: Sequence[str]) -> None:
        self.length = len(stems)
        self.words = Counter(stems)
        self.pairs = Counter(itertools.pairwise(stems))

    def of(self, term: str | tuple[str, str]) -> float:
        if isinstance(term, tuple):
            return self.pairs[term]
        whole = self.words[term]
        if len(term) < _LEAST_BEGUN:
            return whole
        return whole + _BEGUN * sum(
            count for word, count in self.words.items() if word != term and word.startswith(term)
        )


def _places(parts: Mapping[str, _Counts], term: str | tuple[str, str]) -> dict[str, float]:
    """Return how often a term stands in each part that has it."""
    return {part: count for part, counts in parts.items() if (count := counts.of(term))}


def _parts(entry: Entry) -> dict[str, str]:
    scope = entry.scope
    return {
        "id": entry.id,
        "title": f"{entry.title} {entry.headline}",
        "tags": " . ".join(entry.tags),
        "scope": " ".join((entry.topic, entry.kind.value, *scope.gfx, *scope.package, *scope.workload, *scope.os)),
        "remedies": " ".join(remedy.text for remedy in entry.remedy),
        "sources": " ".join(source.title for source in entry.source),
        "body": entry.body,
    }


def _stems(text: str) -> list[str]:
    """Return a text's words without their endings, and the pieces of compound ones: HSA_ENABLE_SDMA and sdma."""
    return [stem for word in _WORD.findall(text.lower()) for stem in _stem(word)]


def _stem(word: str) -> Iterator[str]:
    short = _ENDING.sub("", word) if len(word) >= _LEAST_STEM else word
    yield _SAME.get(short, short)
    if "_" in word:
        yield from word.split("_")


def _targets(query: str) -> Iterator[str]:
    """Yield the gfx targets of the GPUs that a query names: gfx1010 for RX 5600 XT."""
    words = query.split()[:MAX_WORDS]
    for start, length in itertools.product(range(len(words)), range(_GPU_WORDS, 0, -1)):
        name = " ".join(words[start : start + length])
        if start + length <= len(words) and (length > 1 or re.search(r"[a-z]\d|\d[a-z]", name, re.IGNORECASE)):
            try:
                yield resolve(name).gfx.partition(":")[0]
            except UsageError:
                continue
