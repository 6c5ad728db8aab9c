"""NVIDIA GPUs in a compose file.

## What it does

Finds reservations of devices with `driver: nvidia`, `runtime: nvidia` and `gpus: all` in compose files.

## Why it matters

They require NVIDIA's container runtime. Without it, the service does not start.

## Use instead

The devices of AMD's driver, `/dev/kfd` and `/dev/dri`, and the groups that may use them. In the generated compose
file the reservation is commented out, and the service gets the devices.

## Fix safety

A suggestion: all GPUs of the machine are given, as compose has no number of them for AMD's driver. Choose some with
`/dev/dri/renderD…`, or install AMD's container toolkit.

## References

- <https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html>
- <https://docs.docker.com/compose/how-tos/gpu-support/>
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.yaml import Entry
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_GIVEN = ("devices:", "  - /dev/kfd", "  - /dev/dri", "group_add:", "  - video", "  - render")


_MOST_ENTRIES = 1000
"""Of a service that is rewritten."""


@rule(
    "DP09",
    "NVIDIA GPUs in a compose file",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.SUGGEST,
    triggers=(b"nvidia", b"gpus"),
    paths=paths(Kind.COMPOSE),
    sources=("https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html",),
    valid=("services:\n  a:\n    image: b\n    devices:\n      - /dev/kfd\n    # runtime: nvidia\n",),
    invalid=(
        Case(
            "services:\n  a:\n    image: b\n    deploy:\n      resources:\n        reservations:\n          devices:\n"
            "            - driver: nvidia\n              count: 1\n              capabilities: [gpu]\n    ports:\n"
            '      - "80:80"\n',
            "services:\n  a:\n    image: b\n    devices:\n      - /dev/kfd\n      - /dev/dri\n    group_add:\n"
            "      - video\n"
            "      - render\n    # ROCm: the devices above\n    # deploy:\n      # resources:\n"
            "        # reservations:\n"
            "          # devices:\n            # - driver: nvidia\n              # count: 1\n"
            '              # capabilities: [gpu]\n    ports:\n      - "80:80"\n',
            "docker-compose.yml",
        ),
        Case(
            "services:\n  a:\n    runtime: nvidia\n    image: b\n",
            "services:\n  a:\n    devices:\n      - /dev/kfd\n      - /dev/dri\n    group_add:\n      - video\n"
            "      - render\n    # ROCm: the devices above\n    # runtime: nvidia\n    image: b\n",
            "compose.yaml",
        ),
        Case(
            "services:\n  a:\n    deploy:\n      replicas: 2\n      resources:\n        reservations:\n"
            "          devices:\n"
            "            - driver: nvidia\n",
            "services:\n  a:\n    devices:\n      - /dev/kfd\n      - /dev/dri\n    group_add:\n      - video\n"
            "      - render\n    deploy:\n      replicas: 2\n      # ROCm: the devices above\n      # resources:\n"
            "        # reservations:\n          # devices:\n            # - driver: nvidia\n",
            "compose.yaml",
        ),
        Case("services:\n  a:\n    gpus: all\n    devices:\n      - /dev/snd\n", None, "compose.yaml"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield what asks for NVIDIA GPUs."""
    for entry in file.yaml:
        reserved = entry.key == "driver" and entry.value == "nvidia" and "reservations" in entry.keys
        runtime = entry.key == "runtime" and entry.value == "nvidia" and len(entry.keys) == 3
        asked = entry.key == "gpus" and len(entry.keys) == 3
        if not (reserved or runtime or asked):
            continue
        start = entry.start if entry.start < entry.end else entry.key_start
        yield rewrite(
            file,
            (min(entry.key_start, start), max(entry.end, entry.key_start + 1)),
            "The service requires NVIDIA's container runtime.",
            _edits(file, entry),
            remedy="Give the service the devices /dev/kfd and /dev/dri, and the groups video and render.",
            outcome=Outcome.SUGGEST,
        )


def _edits(file: TextFile, asks: Entry) -> tuple[Edit, ...]:
    """Return edits that give the service AMD's devices and make comments of what asks for NVIDIA's."""
    held = _service(file, asks)
    if not 0 < len(held) <= _MOST_ENTRIES:
        return ()
    above = [one for one in held if one.line <= asks.line <= one.last and asks.keys[: len(one.keys)] == one.keys]
    own = [one for one in above if len(one.keys) == 3 and one.keys[0] == "services"]
    service = asks.keys[:2]
    taken = {one.key for one in held if one.keys[:2] == service and len(one.keys) == 3}
    if not own or taken & {"devices", "group_add"}:
        return ()
    removed = _outermost(held, above)
    newline = file.lines.newline
    indent = " " * own[0].indent
    head = file.lines.all[own[0].line].start
    given = "".join(f"{indent}{line}{newline}" for line in _GIVEN)
    edits = [Edit(head, head, given.encode())]
    for number in range(removed.line, removed.last + 1):
        line = file.lines.all[number]
        blank = file.lines.indent(line.start)
        at = line.start + len(blank)
        reason = f"# ROCm: the devices above{newline}{blank}" if number == removed.line else ""
        edits.append(Edit(at, at, f"{reason}# ".encode()))
    if edits[0].start == edits[1].start:
        return ()
    return tuple(edits)


def _service(file: TextFile, asks: Entry) -> list[Entry]:
    """Return the entries of the service that one belongs to."""
    lines = _lines(file)
    at = bisect_right(lines, asks.line) - 1
    back = range(at, max(-1, at - _MOST_ENTRIES), -1)
    first = next((number for number in back if len(file.yaml[number].keys) <= 2), at - _MOST_ENTRIES)
    if first < 0:
        return []
    return list(file.yaml[first : bisect_right(lines, max(file.yaml[first].last, asks.line))])


@lru_cache(maxsize=2)
def _lines(file: TextFile) -> list[int]:
    return [one.line for one in file.yaml]


def _outermost(entries: list[Entry], above: list[Entry]) -> Entry:
    """Return the largest block around what asks for GPUs that holds nothing else."""
    chosen = above[-1]
    for one in reversed(above):
        inner = [
            other for other in entries if one.line <= other.line <= one.last and other.keys[: len(one.keys)] == one.keys
        ]
        beside = [other for other in inner if not _of_chain(other, above, one)]
        if len(one.keys) < 3 or beside:
            break
        chosen = one
    return chosen


def _of_chain(other: Entry, above: list[Entry], one: Entry) -> bool:
    """Tell whether an entry is a block around the one that asks for GPUs, or part of its reservation."""
    if other in above:
        return True
    reserved = next((entry for entry in above if entry.key == "devices" and "reservations" in entry.keys), None)
    within = reserved is not None and other.keys[: len(reserved.keys)] == reserved.keys
    return within or (one.key in {"runtime", "gpus"} and other.line == one.line)
