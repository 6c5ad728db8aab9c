"""How a machine's facts are laid out."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from rocmend.cli.views.overview import machine_pictures
from rocmend.core.records import CollectorStatus
from rocmend.core.units import count_text, size_text
from rocmend.machine.facts import Machine
from rocmend.machine.root import natural_key
from rocmend.report.document import Block, Document, Pairs, Section, Tone, table

_MAX_VALUE_CHARS = 200


def machine_document(machine: Machine) -> Document:
    """Lay out every fact with its source, what could not be read, and how the collectors ended."""
    keys = sorted(machine.facts, key=natural_key)
    pictures = machine_pictures(machine)
    blocks: list[Block] = [Section("In figures", pictures)] if pictures else []
    for group, members in groupby(keys, key=_group):
        rows = tuple(
            (key.removeprefix(f"{group}."), value_text(key, machine.facts[key].value), machine.facts[key].source)
            for key in members
        )
        blocks.append(Section(group, (Pairs(rows),), folded=True))
    gaps = [[key, gap.reason] for key, gap in sorted(machine.gaps.items())]
    if gaps:
        blocks.append(Section("Not known", (table(["fact", "why"], gaps),)))
    failed = [run for run in machine.collectors if run.status is not CollectorStatus.OK]
    if failed:
        rows_failed = [[run.name, run.status.value, run.reason] for run in failed]
        blocks.append(Section("Collectors that did not finish", (table(["collector", "ended", "why"], rows_failed),)))
    summary = f"{count_text(len(keys), 'fact')}, {count_text(len(gaps), 'gap')}, read {machine.captured_at}"
    tone = Tone.WARNING if failed else Tone.PLAIN
    target = machine.hypothetical_target
    title = f"{machine.name}, with {target} in place of its GPUs" if target else machine.name
    return Document(title, summary, tone, tuple(blocks))


def _group(key: str) -> str:
    parts = key.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 and parts[1].isdigit() else parts[0]


def value_text(key: str, value: Any) -> str:
    """Return a fact's value in a few words: sizes in units, lists joined, long texts cut."""
    text = _value_text(key, value)
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}…"


def _value_text(key: str, value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_value_text("", item) for item in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name}={_value_text(name, item)}" for name, item in value.items()) or "none"
    return _number_text(key, value) if isinstance(value, int | float) else str(value)


def _number_text(key: str, value: float) -> str:
    if key.endswith("_bytes") and value >= 1024:
        return f"{value:,} bytes ({size_text(value)})"
    if key.endswith(".mes_version") and isinstance(value, int):
        return f"{value:#x}"  # as everybody writes it
    return f"{value:g}" if isinstance(value, float) else str(value)
