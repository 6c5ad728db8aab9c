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
    row = row_of({**fields, "n_depth": fields["starting_depth"]})
    row = msgspec.structs.replace(row, seconds=_seconds(fields.get("samples_ts", ""), row.tokens))
    return Entry(row, _SHARD.sub("", fields["model"].strip())[:200], fields["toolbox"].strip()[:100], line=line)


def _seconds(text: str, tokens: int) -> tuple[float, ...]:
    """Return the time of each repetition, of which the summary has tokens a second."""
    rates = msgspec.json.decode(text, type=list[float]) if text else []
    if len(rates) > MAX_SAMPLES or not all(rate > 0 for rate in rates):
        raise ValueError("samples_ts holds no rates")
    return tuple(tokens / rate for rate in rates)


IMPORTER = Importer("campaign-summary", "curve_summary.csv of kyuz0's toolboxes", _recognizes, _read, order=40)
