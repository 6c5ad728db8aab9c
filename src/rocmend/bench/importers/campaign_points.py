"""The published results of kyuz0's toolboxes over the depth of the context: a JSON object with ``meta`` and ``points``.

Source: https://github.com/kyuz0/amd-strix-halo-toolboxes/blob/main/docs/toolbox-performance-results.json.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from rocmend.bench.importers.importer import Document, Entry, Importer, Read
from rocmend.bench.llama.output import MAX_PROBLEMS, MAX_ROWS
from rocmend.bench.llama.rows import MAX_SAMPLES, row_of
from rocmend.core.documents import MALFORMED

_BEGIN = re.compile(r'\A\s*\{\s*"meta"\s*:\s*\{')
_FACTS = ("image", "image_digest", "host", "host_profile", "kernel", "cpu_info")


class _Whole(msgspec.Struct):
    meta: dict[str, Any]
    points: list[msgspec.Raw]


def _recognizes(document: Document) -> bool:
    return _BEGIN.search(document.head) is not None and '"toolboxes"' in document.head


def _read(document: Document) -> Read:
    try:
        whole = msgspec.json.decode(document.text, type=_Whole)
    except MALFORMED as error:
        return [], [f"line 1: is no list of points: {str(error)[:200]}"]
    listed = whole.meta.get("toolboxes")
    boxes = {str(box.get("id")): box for box in listed if isinstance(box, dict)} if isinstance(listed, list) else {}
    entries: list[Entry] = []
    problems: list[str] = []
    for number, raw in enumerate(whole.points[:MAX_ROWS], 1):
        try:
            entries.append(_entry(msgspec.json.decode(raw, type=dict[str, Any]), boxes))
        except (ValueError, *MALFORMED) as error:
            problems.append(f"point {number}: {str(error)[:200]}")
        if len(problems) >= MAX_PROBLEMS:
            break
    return entries, problems


def _entry(point: dict[str, Any], boxes: dict[str, dict[str, Any]]) -> Entry:
    samples, name = point.get("samples"), str(point.get("toolbox", ""))[:100]
    if not isinstance(samples, list) or len(samples) > MAX_SAMPLES:
        raise ValueError("samples is no list of rates")
    prompt, generate = point.get("prompt_tokens", 0), point.get("generation_tokens", 0)
    fields = {
        "n_prompt": prompt,
        "n_gen": generate,
        "n_depth": point.get("starting_depth", 0),
        "avg_ts": point.get("mean"),
        "stddev_ts": point.get("stddev"),
        "n_ubatch": point.get("ubatch", ""),
        "build_commit": point.get("build_commit", ""),
        "gpu_info": point.get("gpu_info", ""),
    }
    if all(isinstance(rate, int | float) and rate > 0 for rate in samples) and isinstance(prompt, int):
        tokens = prompt + (generate if isinstance(generate, int) else 0)
        fields["samples_ns"] = [1e9 * tokens / rate for rate in samples]
    facts = {key: str(boxes.get(name, {}).get(key))[:300] for key in _FACTS if boxes.get(name, {}).get(key)}
    return Entry(row_of(fields), str(point.get("model", "unknown"))[:200], name, facts=facts)


IMPORTER = Importer("campaign-points", "the published results of kyuz0's toolboxes", _recognizes, _read, order=40)
