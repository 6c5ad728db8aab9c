"""Reading a project and saying what in it needs a port."""

from __future__ import annotations

import hashlib

from rocmend.core.errors import DataError
from rocmend.port.classify import languages, wanted
from rocmend.port.languages import source
from rocmend.port.records import FileReport, Issue, Language
from rocmend.port.suppress import Suppressions

__all__ = ["read"]


def read(path: str, data: bytes) -> FileReport:
    """Return what the rules find in one file.

    Args:
        path: Relative to the project, with forward slashes; its name says how it is read.
        data: Its bytes.

    Returns:
        The issues by place; ``skipped`` says why a file was not understood (then there are none). A file that no rule
        reads is an empty report.
    """
    kinds = languages(path, data)
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
            return FileReport(path, own, len(data), sha256, skipped=error.message)
        for rule in chosen:
            found += rule.issues(parsed)
    found.sort(key=lambda issue: (issue.start, issue.end, issue.rule))
    return FileReport(path, own, len(data), sha256, Suppressions(data).left(found))
