"""Checking the knowledge entries: ``python -m rocmend.kb.lint [ID…]``."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterable, Sequence

import msgspec

from rocmend.core.visible import visible
from rocmend.kb.action import action_name
from rocmend.kb.entry import Entry
from rocmend.kb.index_rules import INDEX_CHECKS, check_indexes
from rocmend.kb.indexes import TABLE
from rocmend.kb.load import Knowledge, load_entries
from rocmend.kb.remedy_rules import REMEDY_CHECKS
from rocmend.kb.rules import CHECKS, Context
from rocmend.kb.setting_rules import SETTING_CHECKS
from rocmend.kb.signature_rules import SIGNATURE_CHECKS, index_of
from rocmend.machine.facts import KeyPatterns, declared_facts


class LintProblem(msgspec.Struct, frozen=True):
    """Something wrong with an entry.

    Attributes:
        entry_id: The entry; empty where its file could not be loaded.
        code: The rule's code; see rocmend.kb.rules.RULES.
        message: What is wrong.
        path: The entry's file.
        line: Where in it, from 1; 0 where that is not known.
        warning: It is time for a review; nothing is wrong yet.
    """

    entry_id: str
    code: str
    message: str
    path: str = ""
    line: int = 0
    warning: bool = False


def lint(
    knowledge: Knowledge,
    *,
    today: dt.date,
    only: Iterable[str] = (),
    declared: Iterable[str] | None = None,
) -> tuple[LintProblem, ...]:
    """Check entries and return what is wrong, by entry and code.

    Args:
        knowledge: Every entry; links are checked against all of them.
        today: A review that was due before this day is overdue.
        only: Ids, or file names, to report on; all where empty.
        declared: Fact keys that predicates may read; those of the collectors and derivations where None.
    """
    keys = [key for key, _, _ in declared_facts()] if declared is None else list(declared)
    context = Context(
        knowledge=knowledge,
        today=today,
        declared=KeyPatterns(keys),
        targets=known_targets(),
        actions=frozenset(knowledge.actions) | declared_actions(knowledge),
        signatures=index_of(knowledge),
    )
    wanted = {name.removesuffix(".md").rpartition("/")[2] for name in only}
    problems = [
        LintProblem("", "KB001", problem.reason, problem.path, problem.line)
        for problem in knowledge.problems
        if not wanted or problem.path.rpartition("/")[2].removesuffix(".md") in wanted
    ]
    for entry in knowledge.entries.values():
        if wanted and entry.id not in wanted:
            continue
        path = knowledge.paths.get(entry.id, "")
        checks = (*CHECKS, *REMEDY_CHECKS, *SETTING_CHECKS, *SIGNATURE_CHECKS, *INDEX_CHECKS)
        found = {(code, message): None for check in checks for code, message in check(entry, context)}
        problems += [
            LintProblem(entry.id, code, message, path, warning=_is_due(entry, code, today))
            for code, message in sorted(found)
        ]
    if not wanted:
        problems += [
            LintProblem("", code, message, str(TABLE), warning=code == "KB039")
            for code, message in check_indexes(context)
        ]
    return tuple(problems)


def _is_due(entry: Entry, code: str, today: dt.date) -> bool:
    """Whether the calendar alone is the reason: such a review is asked for, and fails nothing."""
    return code == "KB004" and entry.reviewed <= entry.review_by and entry.reviewed <= today


def declared_actions(knowledge: Knowledge) -> frozenset[str]:
    """Return the ids of the actions that remedies declare in place, by giving them a phase."""
    remedies = (remedy for entry in knowledge.entries.values() for remedy in entry.remedy)
    return frozenset(action_name(one.action) for one in remedies if one.action and one.phase is not None)


def known_targets() -> frozenset[str]:
    """Return every gfx target and generic class."""
    from rocmend.core.gfx import generic_targets, targets

    return frozenset(target.name for target in targets()) | frozenset(generic_targets())


def main(arguments: Sequence[str]) -> int:
    """Check entries and print the problems; see the module's first line.

    Args:
        arguments: Ids or files of entries; all where empty.

    Returns:
        0 where nothing is wrong (reviews may be due), 1 where something is, 2 where an id is not known.
    """
    knowledge = load_entries()
    problems = lint(knowledge, today=dt.datetime.now(tz=dt.UTC).date(), only=arguments)
    for problem in problems:
        place = f"{problem.path}:{problem.line}" if problem.line else problem.path
        kind = "warning: " if problem.warning else ""
        sys.stdout.write(visible(f"{place}: {problem.code} {kind}{problem.message}") + "\n")
    failed = {problem.path.rpartition("/")[2].removesuffix(".md") for problem in problems}
    names = [name.removesuffix(".md").rpartition("/")[2] for name in arguments]
    unknown = [name for name in names if name not in knowledge.entries and name not in failed]
    for name in unknown:
        sys.stderr.write(f"no entry has the id {name!r}\n")
    checked = len(set(names)) if names else len(knowledge.entries) + len(knowledge.problems)
    sys.stderr.write(f"{len(problems)} problems in {len(failed)} of {checked} entries\n")
    return 2 if unknown else int(any(not problem.warning for problem in problems))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
