"""llama-bench's output in json: a list of objects."""

from __future__ import annotations

import re

from rocmend.bench.importers.importer import Document, Importer, Read, entries_of
from rocmend.bench.llama.output import read_json

_BEGIN = re.compile(r'^[ \t]*\[\s*\{\s*"\w+"\s*:[^\[\]]{0,4000}"n_prompt"\s*:', re.MULTILINE)


def _recognizes(document: Document) -> bool:
    return _BEGIN.search(document.head) is not None


def _read(document: Document) -> Read:
    rows, problems = read_json(document.text)
    return entries_of(rows, document), problems


IMPORTER = Importer("llama-bench-json", "llama-bench -o json", _recognizes, _read)
