"""The summary of a campaign over the depth of the context: ``curve_summary.csv`` of kyuz0's toolboxes.

Source: https://github.com/kyuz0/amd-strix-halo-toolboxes/tree/main/benchmark/toolbox_performance.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import msgspec

from rocmend.bench.importers.importer import Document, Entry, Importer, Read
from rocmend.bench.llama.output import MAX_PROBLEMS, MAX_ROWS
from rocmend.bench.llama.rows import MAX_SAMPLES, row_of
from rocmend.core.documents import MALFORMED

_NEEDED = {"model", "toolbox", "starting_depth", "n_prompt", "n_gen", "avg_ts"}
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")


def _columns(document: Document) -> list[str]:
    return [name.strip() for name in document.head.partition("\n")[0].split(",")]


def _recognizes(document: Document) -> bool:
    return set(_columns(document)) >= _NEEDED


def _read(document: Document) -> Read:
    entries: list[Entry] = []
    problems: list[str] = []
    reader = csv.DictReader(io.StringIO(document.text), strict=True)
    while len(entries) < MAX_ROWS and len(problems) < MAX_PROBLEMS:
        try:
            fields = next(reader, None)
            if fields is None:
                return entries, problems
            entries.append(_entry(fields, reader.line_num))
        except csv.Error as error:
            return entries, [*problems, f"line {reader.line_num}: is no row of csv: {error}; the rest was not read"]
        except (ValueError, *MALFORMED) as error:
            problems.append(f"line {reader.line_num}: {str(error)[:200]}")
    return entries, [*problems, f"line {reader.line_num}: the rest was not read"]


def _entry(fields: dict[str | Any, str | Any], line: int) -> Entry:
    if None in fields or None in fields.values():
        raise ValueError("has more or fewer values than the header")
    row = row_of({**fields, "n_depth": fields["starting_depth"], "samples_ns": _samples(fields)})
    return Entry(row, _SHARD.sub("", fields["model"].strip())[:200], fields["toolbox"].strip()[:100], line=line)


def _samples(fields: dict[str, str]) -> list[float] | None:
    """Return the nanoseconds of each repetition, of which the summary has tokens a second."""
    text = fields.get("samples_ts", "")
    if not text:
        return None
    rates = msgspec.json.decode(text, type=list[float])
    if len(rates) > MAX_SAMPLES or not all(rate > 0 for rate in rates):
        raise ValueError("samples_ts holds no rates")
    tokens = int(fields["n_prompt"]) + int(fields["n_gen"])
    return [1e9 * tokens / rate for rate in rates]


IMPORTER = Importer("campaign-summary", "curve_summary.csv of kyuz0's toolboxes", _recognizes, _read, order=40)
