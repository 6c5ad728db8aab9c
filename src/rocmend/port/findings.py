"""What the rules find in the bytes of one file."""

from __future__ import annotations

import hashlib

from rocmend.core.errors import DataError
from rocmend.port.classify import Kind, wanted
from rocmend.port.languages import source
from rocmend.port.records import FileReport, Issue, Language
from rocmend.port.suppress import Suppressions

__all__ = ["findings"]


def findings(path: str, data: bytes, kinds: Kind) -> tuple[FileReport, int]:
    """Return what the rules of these languages find, and how many issues comments suppress.

    A file that its parser does not understand is skipped, with the reason and without any issue.
    """
    own = kinds[0] if kinds else Language.TEXT
    found: list[Issue] = []
    sha256 = hashlib.sha256(data).hexdigest()
    for language in kinds:
        chosen = wanted(language, path, data)
        if not chosen:
            continue
        try:
            parsed = source(language, path, data)
        except DataError as error:
            return FileReport(path, own, len(data), sha256, skipped=error.message), 0
        placed = getattr(parsed, "placed", list)  # a notebook's cells are read as one module
        for rule in chosen:
            try:
                found += placed(rule.issues(parsed))
            except Exception as error:
                error.add_note(rule.id)
                raise
    found.sort(key=lambda issue: (issue.start, issue.end, issue.rule))
    left = Suppressions(data).left(found)
    return FileReport(path, own, len(data), sha256, left), len(found) - len(left)
