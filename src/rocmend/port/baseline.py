"""Issues that are known and accepted: only what is new is then reported.

An issue is known by its rule, its file and its source line with the white space made even; not by its line number,
which moves with every change above it. Of lines that are the same in a file, as many are known as were written down.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from rocmend.core.documents import read_json
from rocmend.core.errors import DataError
from rocmend.core.outputs import write_named
from rocmend.port.records import Analysis, FileReport, Issue

__all__ = ["Baseline", "read_baseline", "without_known", "write_baseline"]

_VERSION = 1
_MAX_BYTES = 16 << 20


class _Known(msgspec.Struct, frozen=True, order=True, omit_defaults=True, forbid_unknown_fields=True):
    path: str
    rule: str
    snippet: str
    count: int = 1


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Known issues, as they are stored.

    Attributes:
        schema_version: Of the file.
        known: The issues, by path and rule.
    """

    schema_version: int
    known: tuple[_Known, ...]


def _key(issue: Issue) -> tuple[str, str, str]:
    return issue.path, issue.rule, " ".join(issue.snippet.split())


def write_baseline(path: Path, analysis: Analysis) -> int:
    """Write the issues of an analysis down as known and return how many they are."""
    counted = Counter(_key(issue) for issue in analysis.issues)
    known = tuple(_Known(*key, count) for key, count in sorted(counted.items()))
    document = msgspec.json.encode(Baseline(_VERSION, known))
    write_named(path, msgspec.json.format(document, indent=1) + b"\n", project=Path(analysis.root))
    return counted.total()


def read_baseline(path: Path) -> Baseline:
    """Return known issues.

    Raises:
        DataError: The file cannot be read or is no baseline.
    """
    try:
        baseline: Baseline = read_json(path, Baseline, max_bytes=_MAX_BYTES, what="baseline")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DataError(
            str(path), f"the baseline cannot be read: {error.strerror}.", next_step="Write one with --write-baseline."
        ) from error
    except DataError as error:
        raise DataError(str(path), error.message, next_step="Rewrite it with --write-baseline.") from error
    if baseline.schema_version != _VERSION:
        raise DataError(
            str(path),
            f"is a baseline of version {baseline.schema_version}, not {_VERSION}.",
            next_step="Rewrite it with --write-baseline.",
        )
    return baseline


def without_known(analysis: Analysis, baseline: Baseline) -> Analysis:
    """Return an analysis without the issues that are known; files with nothing else are left out of it."""
    left = Counter({(one.path, one.rule, one.snippet): one.count for one in baseline.known})

    def fresh(file: FileReport) -> FileReport:
        kept = []
        for issue in file.issues:
            key = _key(issue)
            if left[key] > 0:
                left[key] -= 1
            else:
                kept.append(issue)
        return msgspec.structs.replace(file, issues=tuple(kept))

    files = tuple(file for file in map(fresh, analysis.files) if file.issues or file.skipped)
    return msgspec.structs.replace(analysis, files=files, narrowed=True)
