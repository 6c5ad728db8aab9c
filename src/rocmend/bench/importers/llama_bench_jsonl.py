"""llama-bench's output in jsonl: one object a line."""

from __future__ import annotations

import re

from rocmend.bench.importers.importer import Document, Importer, Read, entries_of
from rocmend.bench.llama.output import read_jsonl

_BEGIN = re.compile(r'^[ \t]*\{.{0,4000}"n_prompt"\s*:', re.MULTILINE)


def _recognizes(document: Document) -> bool:
    return _BEGIN.search(document.head) is not None


def _read(document: Document) -> Read:
    rows, problems = read_jsonl(document.text)
    return entries_of(rows, document), problems


IMPORTER = Importer("llama-bench-jsonl", "llama-bench -o jsonl", _recognizes, _read)
