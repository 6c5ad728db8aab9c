"""What the rules find in the bytes of one file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import msgspec

from rocmend.core.errors import DataError
from rocmend.core.records import Severity
from rocmend.port.build.kinds import of_ci
from rocmend.port.classify import Kind, wanted
from rocmend.port.cuda.marks import without_marks
from rocmend.port.languages import broken, source
from rocmend.port.records import FileReport, Issue, Language, Outcome
from rocmend.port.rule import Source, rules
from rocmend.port.suppress import Suppressions

__all__ = ["findings"]

_CELL = re.compile(r"\Acell \d+, line \d+: ")
"""Where in a notebook a place is: what is said of it is the same in every cell."""


def findings(path: str, data: bytes, kinds: Kind) -> tuple[FileReport, int]:
    """Return what the rules of these languages find, and how many issues comments suppress.

    A file that its parser does not understand is skipped, with the reason and without any issue. Places of a
    file of which a rule says the same are one issue where the rule asks for it; those that a comment suppresses do not
    count.
    """
    own = kinds[0] if kinds else Language.TEXT
    found: list[Issue] = []
    once: set[str] = set()
    asks: tuple[str, ...] = ()
    sha256 = hashlib.sha256(data).hexdigest()
    for language in kinds:
        chosen = wanted(language, path, data)
        if not chosen:
            if why := broken(language, path, data):
                return FileReport(path, own, len(data), sha256, skipped=why), 0
            continue
        try:
            parsed = source(language, path, data)
        except DataError as error:
            return FileReport(path, own, len(data), sha256, skipped=error.message), 0
        placed = getattr(parsed, "placed", list)  # a notebook's cells are read as one module
        for rule in chosen:
            if rule.once:
                once.add(rule.id)
            try:
                found += placed(rule.issues(parsed))
            except Exception as error:  # whatever a rule raises is named after it, and goes on
                error.add_note(rule.id)
                raise
        if language is Language.CUDA:
            found = _by_width(parsed, found)
            asks = _asks(parsed)
    found = without_marks(found)
    found.sort(key=lambda issue: (issue.start, issue.end, issue.rule))
    left = Suppressions(data).left(found)
    if of_ci(path):
        left = tuple(_of_ci(issue) for issue in left)
    if path.endswith(".ipynb") or of_ci(path):
        once = {rule.id for language in kinds for rule in rules(language)}
    kept = tuple(_folded(left, once))
    return FileReport(path, own, len(data), sha256, kept, asks=asks), len(found) - len(left)


def _asks(file: Source) -> tuple[str, ...]:
    from rocmend.port.cuda.file import CudaFile
    from rocmend.port.wave.asked import asked

    return asked(file) if isinstance(file, CudaFile) else ()


def _by_width(file: Source, found: list[Issue]) -> list[Issue]:
    """Return issues without rewrites to 32 lanes where the file's own code for ROCm works with others."""
    from rocmend.port.cuda.file import CudaFile
    from rocmend.port.wave.lanes import left_to_a_person
    from rocmend.port.wave.sites import wave

    if not isinstance(file, CudaFile) or not any(issue.edits for issue in found):
        return found
    wide = wave(file).other_width
    return left_to_a_person(found, f"{wide[2]} in code for ROCm works with other than 32 lanes.") if wide else found


def _of_ci(issue: Issue) -> Issue:
    """Return what is said of a job for CUDA: it stays, whatever is done about such lines elsewhere."""
    return msgspec.structs.replace(issue, outcome=Outcome.NOTE, severity=Severity.INFO, edits=(), needs=())


def _folded(issues: Iterable[Issue], once: set[str]) -> list[Issue]:
    """Return issues in their order, of those that say the same of several places the first, which says how many."""
    kept: dict[tuple[object, ...], list[Issue]] = {}
    for number, issue in enumerate(issues):
        # a place in CUDA C++ that a person has to port is marked in the source, each for itself
        marked = issue.rule.startswith("CU") and issue.outcome is not Outcome.NOTE
        alike = issue.rule in once and not issue.edits and not marked
        said = (issue.rule, issue.outcome, _CELL.sub("", issue.message))
        kept.setdefault(said if alike else (number,), []).append(issue)
    return [_counted(one, len(more)) if more else one for one, *more in kept.values()]


def _counted(issue: Issue, more: int) -> Issue:
    return msgspec.structs.replace(issue, message=f"{_sentence(issue.message)} ({more} more in this file.)")


def _sentence(message: str) -> str:
    return message if message.endswith((".", "!", "?")) else f"{message}."
