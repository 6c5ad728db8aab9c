"""Logs of llama-bench: its table, what it says on standard error, and what went wrong.

Those of kyuz0's toolboxes name model and environment: ``MODEL__ENVIRONMENT[__fa1][__hblt0][__longctx32768].log``. Some
say that a run failed with exit status 0; what counts is what is in them.
Source: https://github.com/kyuz0/amd-strix-halo-toolboxes/tree/main/benchmark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from rocmend.bench.importers.importer import Document, Entry, Importer, Read, entries_of
from rocmend.bench.llama.build import init_devices
from rocmend.bench.llama.output import read_markdown
from rocmend.bench.llama.rows import Row
from rocmend.core.verdict import Verdict
from rocmend.runner.failures import FailureScanner

_NAME = re.compile(r"^(?P<model>.{1,200}?)__(?P<env>[\w.+-]{1,100}?)(?P<more>(?:__\s*[\w.+-]{1,60})*)\.log$")
_SHARD = re.compile(r"-\d{5}-of-\d{5}")
_FAILED = re.compile(
    r"^[^\w\n\[]{0,20}\[(?P<env>[\w.+-]{1,100})\] (?P<model>\S.{0,300}?) failed \(exit -?\d+\)", re.MULTILINE
)
_ABORT = re.compile(r"^\S+\.(?:c|cpp|cu|cuh|h|hip):\d+: \S")
_CONTENT = re.compile(r"^(?:ggml_cuda_init: |ggml_vulkan: |load_backend: loaded )", re.MULTILINE)


def _recognizes(document: Document) -> bool:
    return _CONTENT.search(document.head) is not None or _FAILED.search(document.head) is not None


def _read(document: Document) -> Read:
    model, label = _names(document)
    lines = document.text.split("\n")
    devices = init_devices(lines)
    rows, problems = read_markdown(document.text)
    rows = [_with_device(row, devices[0].name if devices else "") for row in rows]
    entries = [Entry(row, model, label) for row in rows] if label else entries_of(rows, document)
    if failure := _failure(lines):
        facts = {"device": devices[0].name} if devices else {}
        entries.append(Entry(None, model or document.stem, label or document.stem, *failure, facts))
    elif not rows and not problems and ".stderr." not in document.name:
        problems.append("no result, and no failure that is known")
    return entries, problems


def _failure(lines: Sequence[str]) -> tuple[Verdict, str, int] | None:
    """Return how a run failed, what it said and in which line; a stack that ggml prints stands behind its reason."""
    scanner = FailureScanner()
    for line in lines:
        scanner.look(line[:2000])
    if seen := scanner.seen():
        number = next((index for index, line in enumerate(lines, 1) if seen[0].line[:100] in line), 0)
        return seen[0].verdict, f"{seen[0].meaning} {seen[0].line}"[:300], number
    stack = next((index for index, line in enumerate(lines) if "ggml_print_backtrace" in line), None)
    if stack is None:
        return None
    said = next((index for index in range(stack, -1, -1) if _ABORT.match(lines[index][:500])), stack)
    return Verdict.CRASH, lines[said][:300], said + 1


def _names(document: Document) -> tuple[str, str]:
    """Return the model and the environment, from the file's name or from what it says of a failure."""
    match = _NAME.match(document.name)
    if match is not None:
        more = match["more"]
    else:
        match = _FAILED.search(document.text)
        if match is None:
            return "", ""
        more = match["model"].partition("__")[2]
    model = _SHARD.sub("", match["model"].partition("__")[0].strip())
    parts = [part.strip() for part in more.split("__") if part.strip()]
    return model, " ".join((match["env"], *(part for part in parts if not part.startswith("longctx"))))


def _with_device(row: Row, name: str) -> Row:
    return msgspec.structs.replace(row, gpu=row.gpu or name)


IMPORTER = Importer("campaign-log", "a log of llama-bench", _recognizes, _read, order=40)
