"""llama-bench's output in csv: a header line and quoted values."""

from __future__ import annotations

import re

from rocmend.bench.importers.importer import Document, Importer, Read, entries_of
from rocmend.bench.llama.output import read_csv

_BEGIN = re.compile(r"^build_commit,[\w,]*\bn_prompt\b", re.MULTILINE)


def _recognizes(document: Document) -> bool:
    return _BEGIN.search(document.head) is not None


def _read(document: Document) -> Read:
    rows, problems = read_csv(document.text)
    return entries_of(rows, document), problems


IMPORTER = Importer("llama-bench-csv", "llama-bench -o csv", _recognizes, _read)
