"""A rule: a construct that CUDA projects hold, what it does on ROCm, and what is written instead.

A rule is one file in ``rules/python``, ``rules/cuda`` or ``rules/text``. Its module docstring is its page, with the
headings *What it does*, *Why it matters*, *Example*, *Use instead*, *Fix safety* and *References*. Its cases are its
tests and the examples of its page.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import msgspec

from rocmend.core.records import Severity
from rocmend.core.registry import Registry
from rocmend.port.records import Edit, Issue, Language, Outcome

__all__ = ["Case", "Found", "Rule", "Source", "cuda", "python", "rule", "rules", "text"]


class Source(Protocol):
    """What a rule reads: ``python.file.PythonFile``, ``cuda.file.CudaFile`` or ``build.file.TextFile``."""

    path: str
    data: bytes


class Case(NamedTuple):
    """A piece of source that the rule rewrites, and what it becomes (None: reported, not rewritten)."""

    before: str
    after: str | None
    path: str = ""


class Found(NamedTuple):
    """A construct, as a rule reports it; the engine makes an ``Issue`` of it."""

    start: int
    end: int
    message: str = ""
    edits: tuple[Edit, ...] = ()
    outcome: Outcome | None = None
    severity: Severity | None = None
    remedy: str = ""
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


_SHOWN = 1024
"""Bytes of a line that are looked at for what is shown of it."""


class _Places:
    """Tells lines and columns of places that are asked for in order, so that no byte is counted twice."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._head = 0
        self._line = 1
        self._column = 1

    def of(self, at: int) -> tuple[int, int, int]:
        """Return where a place's line begins, the line's number, and the place's column in characters."""
        between = self._data[self._at : at]
        ends = between.count(b"\n")
        if ends:
            self._line += ends
            self._head = self._at + between.rindex(b"\n") + 1
            between = self._data[self._head : at]
            self._column = 1
        self._column += len(between.decode("utf-8", "replace"))
        self._at = at
        return self._head, self._line, self._column


class Rule(msgspec.Struct, frozen=True):
    """One rule.

    Attributes:
        id: Stable and never used again: PY01, CU13, BL02, DP05.
        title: The construct, in a few words.
        severity: What it is where a finding does not say otherwise.
        outcome: The most that is done about it.
        triggers: Byte strings of which a file holds one wherever the rule can fire: others are not even parsed.
        sources: Where the knowledge comes from (addresses, or "measured: …").
        valid: Sources that the rule has nothing to say about.
        invalid: Sources that it reports.
        page: Its documentation.
        check: Yields what it finds in a file.
        paths: Endings or names of the files that a rule for text reads; empty for the other languages.
        once: Whether places of a file of which the same is said, and nothing is rewritten, are one issue, at the first.
    """

    id: str
    title: str
    language: Language
    severity: Severity
    outcome: Outcome
    triggers: tuple[bytes, ...]
    sources: tuple[str, ...]
    valid: tuple[str, ...]
    invalid: tuple[Case, ...]
    page: str
    check: Callable[[Any], Iterable[Found]]
    paths: tuple[str, ...] = ()
    once: bool = False

    def issues(self, source: Source) -> list[Issue]:
        """Return what the rule finds in a file, by place."""
        ordered = sorted(self.check(source), key=lambda found: found.start)
        places = _Places(source.data)
        return [self._issue(source, found, *places.of(found.start)) for found in ordered]

    def _issue(self, source: Source, found: Found, head: int, line: int, column: int) -> Issue:
        data = source.data
        tail = data.find(b"\n", found.start)
        shown = data[head : tail if tail >= 0 else len(data)].lstrip()[:_SHOWN].decode("utf-8", "replace").strip()
        return Issue(
            rule=self.id,
            path=source.path,
            line=line,
            column=column,
            end_line=line + data.count(b"\n", found.start, max(found.start, found.end - 1)),
            start=found.start,
            end=found.end,
            severity=found.severity or self.severity,
            outcome=found.outcome or self.outcome,
            message=found.message or self.title,
            remedy=found.remedy,
            snippet=shown[:160],
            edits=tuple(sorted(found.edits)),
            needs=found.needs,
            unless=found.unless,
        )


python: Registry[Rule] = Registry("port rule", "rocmend.port.rules.python")
cuda: Registry[Rule] = Registry("port rule", "rocmend.port.rules.cuda")
text: Registry[Rule] = Registry("port rule", "rocmend.port.rules.text")
_of = {Language.PYTHON: python, Language.CUDA: cuda, Language.TEXT: text}


def rules(language: Language | None = None) -> list[Rule]:
    """Return the rules, of one language or all, by id."""
    chosen = [_of[language]] if language else list(_of.values())
    return sorted((unit for registry in chosen for _, unit in registry), key=lambda one: one.id)


def rule(  # noqa: PLR0913  a rule has as many parts as it has
    rule_id: str,
    title: str,
    language: Language,
    *,
    severity: Severity,
    outcome: Outcome,
    triggers: tuple[bytes, ...],
    sources: tuple[str, ...],
    valid: tuple[str, ...],
    invalid: tuple[Case, ...],
    paths: tuple[str, ...] = (),
    once: bool = False,
) -> Callable[[Callable[[Any], Iterable[Found]]], Rule]:
    """Return a decorator that makes a rule of a function and registers it; its page is its module's docstring."""

    def decorate(check: Callable[[Any], Iterable[Found]]) -> Rule:
        page = sys.modules[check.__module__].__doc__ or ""
        made = Rule(
            rule_id, title, language, severity, outcome, triggers, sources, valid, invalid, page, check, paths, once
        )
        return _of[language].register(rule_id)(made)

    return decorate
