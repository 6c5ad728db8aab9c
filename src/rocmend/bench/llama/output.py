"""llama-bench's jsonl, json, csv, Markdown and SQL, of all generations, read row by row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from rocmend.bench.llama.rows import Row, parse_test, row_of
from rocmend.core.documents import MALFORMED

MAX_ROWS = 100_000
MAX_PROBLEMS = 200
MAX_LINE_CHARS = 1 << 20
_SIZE = re.compile(r"^([\d.]{1,20}) (MiB|GiB|TiB)$")
_PARAMETERS = re.compile(r"^([\d.]{1,20}) ([MBT])$")
_RATE = re.compile(r"^([\d.]{1,20})(?: (?:±|\+/-|�) ([\d.]{1,20}))?$")
_BUILD = re.compile(r"^build: ([0-9a-f]{6,40}) \((\d{1,9})\)$")
_INSERT = re.compile(r"^\s*INSERT INTO (?:llama_bench|test) \(([\w, ]{1,4000})\) VALUES \((.*)\);?\s*$")
_NAMES = {
    "ngl": "n_gpu_layers", "sm": "split_mode", "threads": "n_threads", "nkvo": "no_kv_offload", "fa": "flash_attn",
    "mmap": "use_mmap", "lm": "load_mode", "embd": "embeddings", "nopo": "no_op_offload", "noh": "no_host",
    "dev": "devices", "ts": "tensor_split", "backend": "backends", "model": "model_type", "ub": "n_ubatch",
}  # fmt: skip

Found = tuple[list[Row], list[str]]
"""Rows, and what could not be read, each with its line."""


def read_output(text: str, output_format: str) -> Found:
    """Read llama-bench's output in a format that is known.

    Args:
        text: Its standard output; lines of other kinds around the results are passed over.
        output_format: ``jsonl``, ``json``, ``csv``, ``md`` or ``sql``.
    """
    return FORMATS[output_format](text)


def _collect(found: Iterable[tuple[int, Callable[[], Row]]]) -> Found:
    rows: list[Row] = []
    problems: list[str] = []
    for line, make in found:
        try:
            rows.append(make())
        except (ValueError, *MALFORMED) as error:
            if len(problems) < MAX_PROBLEMS:
                problems.append(f"line {line}: {str(error)[:200]}")
        if len(rows) >= MAX_ROWS:
            problems.append(f"line {line}: more than {MAX_ROWS:,} rows; the rest was not read")
            break
    return rows, problems


def _fields(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("expected an object")  # noqa: TRY004  a fault of the data, reported with its line
    return value


def read_jsonl(text: str) -> Found:
    """Read one JSON object a line."""

    def lines() -> Iterator[tuple[int, Callable[[], Row]]]:
        for number, line in enumerate(text.split("\n"), 1):
            if line.lstrip().startswith("{"):
                yield number, lambda line=line: row_of(_fields(_decoded(line)))  # type: ignore[misc]

    return _collect(lines())


def _decoded(line: str) -> Any:
    if len(line) > MAX_LINE_CHARS:
        raise ValueError(f"is longer than {MAX_LINE_CHARS:,} characters")
    return msgspec.json.decode(line)


def read_json(text: str) -> Found:
    """Read a JSON list of objects; the whole objects of one that was cut off are kept."""
    rows: list[Row] = []
    problems: list[str] = []
    start = re.search(r"^[ \t]*\[[ \t]*$|^[ \t]*\[\s*\{", text, re.MULTILINE)
    if start is None:
        return [], ["line 1: no list of results"]
    begin = text.index("[", start.start())
    try:
        items = msgspec.json.decode(_until_list_end(text[begin:]), type=list[msgspec.Raw])
    except MALFORMED as error:
        problems.append(f"line {text.count(chr(10), 0, begin) + 1}: the list is not whole: {str(error)[:120]}")
        return _by_object(text, begin, problems)
    for item in items:
        raw = bytes(item)
        line = text[:begin].count("\n") + 1
        found, faults = _collect([(line, lambda raw=raw: row_of(_fields(msgspec.json.decode(raw))))])  # type: ignore[misc]
        rows += found
        problems += [f"result {len(rows) + len(problems) + 1}, {fault}" for fault in faults]
        if len(rows) >= MAX_ROWS or len(problems) >= MAX_PROBLEMS:
            break
    return rows, problems


def _until_list_end(text: str) -> str:
    """Return the list without what a log has after it."""
    end = re.search(r"^\]\s*$", text, re.MULTILINE)
    return text[: end.start() + 1] if end else text


def _by_object(text: str, begin: int, problems: list[str]) -> Found:
    """Read the objects that llama-bench prints with their braces on lines of their own."""
    number = text.count("\n", 0, begin) + 1
    rows: list[Row] = []
    block: list[str] = []
    first = 0
    for offset, line in enumerate(text[begin:].split("\n")):
        if line in {"  {", "{"}:
            block, first = [line], number + offset
        elif block:
            block.append(line)
            if line.rstrip(",") in {"  }", "}"}:
                body = "\n".join(block).rstrip(",")
                found, faults = _collect([(first, lambda body=body: row_of(_fields(_decoded(body))))])  # type: ignore[misc]
                rows, problems, block = rows + found, problems + faults, []
            elif len(block) > 1000:
                block = []
        if len(rows) >= MAX_ROWS:
            break
    return rows, problems[:MAX_PROBLEMS]


def read_csv(text: str) -> Found:
    """Read a header line with llama-bench's field names, and quoted rows."""
    lines = text.split("\n")
    start = next((index for index, line in enumerate(lines) if line.startswith("build_commit,")), None)
    if start is None:
        return [], ["line 1: no header of llama-bench's csv"]

    names = lines[start].strip().split(",")

    def found() -> Iterator[tuple[int, Callable[[], Row]]]:
        for number, line in enumerate(lines[start + 1 :], start + 2):
            if line.startswith('"'):
                yield number, lambda line=line: row_of(_csv_row(names, line))  # type: ignore[misc]

    return _collect(found())


def _csv_row(names: list[str], line: str) -> dict[str, str]:
    if len(line) > MAX_LINE_CHARS:
        raise ValueError(f"is longer than {MAX_LINE_CHARS:,} characters")
    try:
        values = next(csv.reader(io.StringIO(line), strict=True), [])
    except csv.Error as error:
        raise ValueError(f"is no row of csv: {error}") from None
    if len(values) != len(names):
        raise ValueError(f"has {len(values)} values, expected {len(names)}")
    return dict(zip(names, values, strict=True))


def read_sql(text: str) -> Found:
    """Read INSERT statements."""

    def found() -> Iterator[tuple[int, Callable[[], Row]]]:
        for number, line in enumerate(text.split("\n"), 1):
            if line.lstrip().startswith("INSERT INTO"):
                yield number, lambda line=line: row_of(_sql_row(line))  # type: ignore[misc]

    return _collect(found())


def _sql_row(line: str) -> dict[str, str]:
    match = _INSERT.match(line) if len(line) <= MAX_LINE_CHARS else None
    if match is None:
        raise ValueError("is no INSERT INTO llama_bench with its values on one line")
    names = [name.strip() for name in match[1].split(",")]
    values = _sql_values(match[2])
    if len(values) != len(names):
        raise ValueError(f"has {len(values)} values, expected {len(names)}")
    return dict(zip(names, values, strict=True))


def _sql_values(text: str) -> list[str]:
    """Return the quoted values of a list, in which two quotes stand for one."""
    values, at = [], 0
    while at < len(text):
        if text[at] != "'":
            raise ValueError("has a value without quotes")
        parts, begin = [], at + 1
        while True:
            end = text.find("'", begin)
            if end < 0:
                raise ValueError("has a value without an end")
            parts.append(text[begin:end])
            if text[end + 1 : end + 2] != "'":
                break
            begin = end + 2
        values.append("'".join(parts))
        at = end + 1
        if at < len(text) and not text.startswith(", ", at):
            raise ValueError("has values that no comma parts")
        at += 2
    return values


def read_markdown(text: str) -> Found:
    """Read tables with the columns model, test and t/s, whatever others they have."""
    builds = [f"{m[1]} ({m[2]})" for line in text.split("\n") if (m := _BUILD.match(line.strip()))]
    build = builds[-1] if builds else ""

    def found() -> Iterator[tuple[int, Callable[[], Row]]]:
        names: list[str] = []
        for number, line in enumerate(text.split("\n"), 1):
            if not line.lstrip().startswith("|"):
                continue
            cells = [cell.strip() for cell in line.strip()[:MAX_LINE_CHARS].strip("|").split("|")]
            if "test" in cells and "t/s" in cells:
                names = cells
            elif names and not set("".join(cells)) <= set("-: "):
                yield number, lambda names=names, cells=cells: _markdown_row(names, cells, build)  # type: ignore[misc]

    return _collect(found())


def _markdown_row(names: list[str], cells: list[str], build: str) -> Row:
    if len(cells) != len(names):
        raise ValueError(f"has {len(cells)} cells, expected {len(names)}")
    given = dict(zip(names, cells, strict=True))
    rate = _RATE.match(given["t/s"])
    if rate is None:
        raise ValueError(f"t/s is {given['t/s'][:40]!r}, expected e.g. 51.20 ± 0.04")
    prompt, generate, depth = parse_test(given["test"])
    fields: dict[str, Any] = {_NAMES.get(name, name): value for name, value in given.items()}
    fields |= {"n_prompt": prompt, "n_gen": generate, "n_depth": depth, "avg_ts": rate[1], "stddev_ts": rate[2]}
    fields |= {"model_size": _scaled(given.get("size", ""), _SIZE), "model_n_params": 0}
    fields["model_n_params"] = _scaled(given.get("params", ""), _PARAMETERS)
    row = row_of({name: value for name, value in fields.items() if value is not None})
    return msgspec.structs.replace(row, build=build or row.build, gpu=given.get("device", row.gpu))


_SCALES = {"MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "M": 10**6, "B": 10**9, "T": 10**12}


def _scaled(text: str, pattern: re.Pattern[str]) -> int:
    match = pattern.match(text)
    try:
        return int(float(match[1]) * _SCALES[match[2]]) if match else 0
    except ValueError:
        return 0


FORMATS: dict[str, Callable[[str], Found]] = {
    "jsonl": read_jsonl,
    "json": read_json,
    "csv": read_csv,
    "md": read_markdown,
    "sql": read_sql,
}
"""Readers by the name that -o takes."""
