"""Sweeps over prompt and generation lengths of lhl's strix-halo-testing: one object a line around llama-bench's own.

Source: https://github.com/lhl/strix-halo-testing/tree/main/llm-bench.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from rocmend.bench.importers.importer import Document, Entry, Importer, Read
from rocmend.bench.llama.output import MAX_LINE_CHARS, MAX_PROBLEMS, MAX_ROWS
from rocmend.bench.llama.rows import row_of
from rocmend.core.documents import MALFORMED

_BEGIN = re.compile(r'^[ \t]*\{.{0,1000}"bench_raw"\s*:', re.MULTILINE)


def _recognizes(document: Document) -> bool:
    return _BEGIN.search(document.head) is not None


def _read(document: Document) -> Read:
    entries: list[Entry] = []
    problems: list[str] = []
    for number, line in enumerate(document.text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            entries.append(_entry(line, number))
        except (ValueError, *MALFORMED) as error:
            problems.append(f"line {number}: {str(error)[:200]}")
        if len(entries) >= MAX_ROWS or len(problems) >= MAX_PROBLEMS:
            problems.append(f"line {number}: the rest was not read")
            break
    return entries, problems


def _entry(line: str, number: int) -> Entry:
    if len(line) > MAX_LINE_CHARS:
        raise ValueError(f"is longer than {MAX_LINE_CHARS:,} characters")
    whole = msgspec.json.decode(line, type=dict[str, Any])
    raw = whole.get("bench_raw")
    if not isinstance(raw, dict):
        raise ValueError(f"{whole.get('mode', 'a run')} {whole.get('value', '')}: the run gave no result")  # noqa: TRY004
    row = row_of(raw)
    parts = [str(whole.get(name, ""))[:60] for name in ("build", "hipblaslt", "fa", "b")]
    return Entry(row, row.model or "unknown", " ".join(part for part in parts if part), line=number)


IMPORTER = Importer("sweep", "a sweep of lhl's strix-halo-testing", _recognizes, _read, order=40)
