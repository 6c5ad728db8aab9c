"""The published results of kyuz0's toolboxes: a JSON object with ``meta``, and ``points`` or ``runs``.

Source: https://github.com/kyuz0/amd-strix-halo-toolboxes/tree/main/docs (``results.json`` and others).
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from rocmend.bench.importers.importer import Document, Entry, Importer, Read
from rocmend.bench.llama.output import MAX_PROBLEMS, MAX_ROWS
from rocmend.bench.llama.rows import MAX_SAMPLES, parse_test, row_of
from rocmend.core.documents import MALFORMED
from rocmend.core.verdict import Verdict

_BEGIN = re.compile(r'\A\s*\{\s*"meta"\s*:\s*\{')
_FACTS = ("image", "image_digest", "host", "host_profile", "kernel", "cpu_info")


class _Whole(msgspec.Struct):
    meta: dict[str, Any]
    points: list[msgspec.Raw] = []
    runs: list[msgspec.Raw] = []


def _recognizes(document: Document) -> bool:
    known = ('"toolboxes"', '"llamacpp_builds"')
    return _BEGIN.search(document.head) is not None and any(name in document.head for name in known)


def _read(document: Document) -> Read:
    try:
        whole = msgspec.json.decode(document.text, type=_Whole)
    except MALFORMED as error:
        return [], [f"line 1: is no list of points: {str(error)[:200]}"]
    listed = whole.meta.get("toolboxes")
    boxes = {str(box.get("id")): box for box in listed if isinstance(box, dict)} if isinstance(listed, list) else {}
    entries: list[Entry] = []
    problems: list[str] = []
    for number, raw in enumerate((whole.points or whole.runs)[:MAX_ROWS], 1):
        try:
            fields = msgspec.json.decode(raw, type=dict[str, Any])
            entries.append(_entry(fields, boxes) if whole.points else _run(fields))
        except (ValueError, *MALFORMED) as error:
            problems.append(f"result {number}: {str(error)[:200]}")
        if len(problems) >= MAX_PROBLEMS:
            break
    return entries, problems


def _run(run: dict[str, Any]) -> Entry:
    """Return the result, or the failure, of a run without its repetitions."""
    model = str(run.get("model_clean") or run.get("model") or "unknown")[:200]
    label = f"{str(run.get('env', ''))[:100]}{' fa1' if run.get('fa') is True else ''}"
    if run.get("error") is True:
        kind = str(run.get("error_type"))[:100]
        verdict = Verdict.HANG if kind == "hang" else Verdict.CRASH
        return Entry(None, model, label, verdict, f"published as: {kind} error")
    prompt, generate, depth = parse_test(str(run.get("test", ""))[:100])
    built = run.get("build")
    build = {key: str(built.get(key, ""))[:60] for key in ("hash", "number")} if isinstance(built, dict) else {}
    fields = {
        "n_prompt": prompt,
        "n_gen": generate,
        "n_depth": depth,
        "avg_ts": run.get("tps_mean"),
        "stddev_ts": run.get("tps_std"),
        "backends": run.get("backend") or "",
        "build_commit": build.get("hash", ""),
        "build_number": build.get("number", ""),
    }
    return Entry(row_of(fields), model, label)


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
