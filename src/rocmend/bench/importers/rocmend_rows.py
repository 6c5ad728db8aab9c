"""What `rocmend bench llama --format jsonl` wrote, on this machine or another."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from rocmend.bench.importers.importer import Document, Entry, Importer, Read, entries_by_line
from rocmend.bench.llama.output import MAX_LINE_CHARS
from rocmend.bench.llama.rows import Row
from rocmend.bench.records import Measured
from rocmend.core.verdict import Verdict

_BEGIN = re.compile(r'^\{.{0,2000}"case":\{"id":"llama/', re.MULTILINE)


def _recognizes(document: Document) -> bool:
    return _BEGIN.search(document.head.replace('": ', '":')) is not None


def _read(document: Document) -> Read:
    return entries_by_line(document, _entry, 16 * MAX_LINE_CHARS)


def _entry(line: str, number: int) -> Entry:
    whole = msgspec.json.decode(line, type=dict[str, Any])
    measured = msgspec.convert(whole, Measured, strict=False)
    parameters, subject = measured.case.parameters, measured.subject
    model, label = str(parameters["model"])[:200], measured.setting.id[:200]
    figure = measured.figure
    if figure is None:
        verdict = Verdict.INFRA if measured.verdict is Verdict.PASS else measured.verdict
        return Entry(None, model, label, verdict, measured.reason[:300], number, {"device": subject.device_name})
    prompt, generate, depth = (_tokens(parameters, name) for name in ("prompt", "generate", "depth"))
    if not prompt + generate or not 0 < figure < 1e9:
        raise ValueError("holds no figure of a test")
    row = Row(
        prompt=prompt,
        generate=generate,
        depth=depth,
        rate=figure,
        seconds=tuple(second for block in measured.blocks for second in block),
        model_file=model,
        size_bytes=_tokens(parameters, "size_bytes"),
        parameters=_tokens(parameters, "parameters"),
        backends=subject.device,
        gpu=subject.device_name,
        build=subject.versions.get("llama.cpp", ""),
        time=measured.started_at,
    )
    return Entry(row, model, label, line=number, facts={"target": subject.gfx_target})


def _tokens(parameters: dict[str, Any], name: str) -> int:
    value = parameters.get(name, 0)
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{name} is no number")
    return value


IMPORTER = Importer("rocmend-rows", "results of `rocmend bench llama`", _recognizes, _read, order=30)
