"""How what was found in a project is grouped: a line for each decision, however many places it is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rocmend.cli.views.diagnosis import TONE
from rocmend.core.units import count_text
from rocmend.port.build.kinds import of_ci
from rocmend.port.records import Issue, Outcome
from rocmend.port.rule import rules
from rocmend.report.document import Block, Cell, Section, Tone, table

__all__ = ["group_sections", "sentences"]

_SECTIONS = (
    (Outcome.MANUAL, "By hand", Tone.WARNING),
    (Outcome.SUGGEST, "Suggested", Tone.ADVICE),
    (Outcome.AUTO, "Rewritten", Tone.PLAIN),
    (Outcome.NOTE, "Notes on the code", Tone.PLAIN),
)
_CI = "CI"
_LAST = ("CU40", _CI)
"""What comes last in its section: a line for an include in each source, and jobs that stay as they are."""
_PLACES = 3
"""Places that are named of each group; a paragraph of them hides the next line."""


def group_sections(issues: Iterable[Issue], *, written: bool) -> list[Block]:
    """Return a section for each outcome, with a line for each rule and remedy; what is rewritten needs no remedy.

    Args:
        issues: What was found.
        written: Whether the rewrites were made.
    """
    groups: dict[tuple[Outcome, str, str], list[Issue]] = {}
    for issue in issues:
        if of_ci(issue.path):
            groups.setdefault((issue.outcome, _CI, ""), []).append(issue)
            continue
        remedy = "" if issue.outcome is Outcome.AUTO else issue.remedy
        groups.setdefault((issue.outcome, issue.rule, remedy), []).append(issue)
    blocks: list[Block] = []
    for outcome, name, tone in _SECTIONS:
        found = sorted((key, of) for key, of in groups.items() if key[0] is outcome)
        if not found:
            continue
        places = sum(len(of) for _, of in found)
        counted = count_text(places, "place")
        title = "To be rewritten" if outcome is Outcome.AUTO and not written else name
        head = (
            f"{title}: {counted}" if len(found) == places else f"{title}: {counted}, {count_text(len(found), 'kind')}"
        )
        rows = [
            _row(of, key[1]) for key, of in sorted(found, key=lambda one: (one[0][1] in _LAST, -len(one[1]), one[0]))
        ]
        blocks.append(Section(head, (table(["rule", "", "what", "where"], rows),), tone))
    return blocks


def _row(issues: Sequence[Issue], shown: str) -> list[Cell]:
    worst = min((one.severity for one in issues), key=lambda one: one.rank)
    count = f"{len(issues)}\N{MULTIPLICATION SIGN}" if len(issues) > 1 else ""
    what = _jobs(issues) if shown == _CI else _what(issues)
    return [Cell(shown, TONE[worst]), Cell(count), Cell(what), Cell(_where(issues))]


def _jobs(issues: Sequence[Issue]) -> str:
    found = ", ".join(sorted({one.rule for one in issues}))
    return f"Jobs for CUDA ({found}) stay as they are. Add a job for ROCm, in an image with ROCm's compilers."


def _what(issues: Sequence[Issue]) -> str:
    first = issues[0]
    title = next((rule.title for rule in rules() if rule.id == first.rule), first.message)
    if first.outcome is Outcome.AUTO:
        return title
    return sentences(first) if len({one.message for one in issues}) == 1 else _sentences(title, first.remedy)


def _where(issues: Sequence[Issue]) -> str:
    lines: dict[str, list[str]] = {}
    for one in issues[:_PLACES]:
        lines.setdefault(one.path, []).append(str(one.line))
    shown = " ".join(f"{path}:{','.join(dict.fromkeys(at))}" for path, at in lines.items())
    return f"{shown} +{len(issues) - _PLACES}" if len(issues) > _PLACES else shown


def sentences(issue: Issue) -> str:
    """Return what an issue is and what to do about it, as sentences."""
    return _sentences(issue.message, issue.remedy)


def _sentences(*texts: str) -> str:
    parts = [part.strip() for part in texts if part.strip()]
    return " ".join(part if part[-1] in ".!?:" else f"{part}." for part in parts)
