"""llama-bench's Markdown table, alone, in a log or in a page; a line ``Source: URL`` says where it is from."""

from __future__ import annotations

import re

from rocmend.bench.importers.importer import Document, Importer, Read, entries_of
from rocmend.bench.llama.output import read_markdown

TABLE = re.compile(r"^[ \t]*\|[ \t]*model[ \t]*\|.{0,2000}\btest[ \t]*\|[ \t]*t/s[ \t]*\|[ \t]*$", re.MULTILINE)
_FACT = re.compile(r"^(Source|Date|Note): (\S.{0,499})$", re.MULTILINE)


def _recognizes(document: Document) -> bool:
    return TABLE.search(document.head) is not None


def _read(document: Document) -> Read:
    rows, problems = read_markdown(document.text)
    facts = {name.lower(): value.strip() for name, value in _FACT.findall(document.head)}
    entries = entries_of(rows, document, facts)
    return entries, problems


IMPORTER = Importer("llama-bench-md", "llama-bench's table", _recognizes, _read, order=60)
