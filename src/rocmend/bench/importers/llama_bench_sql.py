"""llama-bench's output in sql: INSERT statements."""

from __future__ import annotations

import re

from rocmend.bench.importers.importer import Document, Importer, Read, entries_of
from rocmend.bench.llama.output import read_sql

_BEGIN = re.compile(r"^[ \t]*(?:CREATE TABLE IF NOT EXISTS|INSERT INTO) (?:llama_bench|test) \(", re.MULTILINE)


def _recognizes(document: Document) -> bool:
    return _BEGIN.search(document.head) is not None


def _read(document: Document) -> Read:
    rows, problems = read_sql(document.text)
    return entries_of(rows, document), problems


IMPORTER = Importer("llama-bench-sql", "llama-bench -o sql", _recognizes, _read)
