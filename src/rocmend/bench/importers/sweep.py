"""Sweeps over prompt and generation lengths of lhl's strix-halo-testing: one object a line around llama-bench's own.

Source: https://github.com/lhl/strix-halo-testing/tree/main/llm-bench.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from rocmend.bench.importers.importer import Document, Entry, Importer, Read, entries_by_line
from rocmend.bench.llama.rows import row_of

_BEGIN = re.compile(r'^[ \t]*\{.{0,1000}"bench_raw"\s*:', re.MULTILINE)


def _recognizes(document: Document) -> bool:
    return _BEGIN.search(document.head) is not None


def _read(document: Document) -> Read:
    return entries_by_line(document, _entry)


def _entry(line: str, number: int) -> Entry:
    whole = msgspec.json.decode(line, type=dict[str, Any])
    raw = whole.get("bench_raw")
    if not isinstance(raw, dict):
        raise ValueError(f"{whole.get('mode', 'a run')} {whole.get('value', '')}: the run gave no result")  # noqa: TRY004
    row = row_of(raw)
    parts = [str(whole.get(name, ""))[:60] for name in ("build", "hipblaslt", "fa", "b")]
    return Entry(row, row.model or "unknown", " ".join(part for part in parts if part), line=number)


IMPORTER = Importer("sweep", "a sweep of lhl's strix-halo-testing", _recognizes, _read, order=40)
