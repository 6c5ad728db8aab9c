"""How what sensors said during a benchmark is laid out."""

from __future__ import annotations

from collections.abc import Sequence

from rocmend.bench.case import Case
from rocmend.bench.records import BenchRun, Measured
from rocmend.core.units import share_text
from rocmend.report.document import Block, Pairs, Table, Text, Tone, table

MARK = "*"
"""Stands after a figure that is to be read with care."""
MOST_NAMED = 6
_COLUMNS = (
    ("clock_mhz", "GPU MHz"),
    ("memory_clock_mhz", "memory MHz"),
    ("power_w", "W"),
    ("temperature_c", "°C"),
    ("cpu_clock_mhz", "CPU MHz"),
)


def mark(item: Measured) -> str:
    """Return what stands after a figure: a mark where there is something to be known about it."""
    return MARK if notes_of(item) else ""


def notes_of(item: Measured) -> list[str]:
    """Return what is to be known about a figure: sensors, whether its time got steady, whether launches bound it."""
    if item.summary is None:
        return []
    notes = [str(note) for note in item.telemetry.get("notes", ())]
    detail = item.prepared.detail
    if detail.get("steady") is False:
        notes.append("its time still changed when warming up ended")
    if share := detail.get("launch_share"):
        notes.append(
            f"launched by the CPU in {share_text(share)} of its time: this is the speed of launches, not of the GPU"
        )
    return notes


def sensor_notes(run: BenchRun) -> list[Block]:
    """Lay out what is to be known about figures that are marked, alike ones together."""
    groups: dict[str, list[Measured]] = {}
    for item in run.results:
        for note in notes_of(item):
            groups.setdefault(_kind(note), []).append(item)
    lines = []
    for kind, items in groups.items():
        first = next(note for note in notes_of(items[0]) if _kind(note) == kind)
        more = f"; {len(items) - 1} more like it" if len(items) > 1 else ""
        lines.append(f"- {label(items[0].case)} ({items[0].setting.id}): {first}{more}.")
    return [Text(f"\\{MARK} To be read with care:\n\n" + "\n".join(lines), Tone.WARNING)] if lines else []


def every_note(run: BenchRun) -> list[Block]:
    """Lay out the note of each figure that is marked, where ``sensor_notes`` names only the first of several alike."""
    rows = [(f"{label(item.case)} ({item.setting.id})", "; ".join(notes_of(item)), "") for item in run.results]
    rows = [row for row in rows if row[1]]
    return [Text(f"\\{MARK} Each figure that is marked:"), Pairs(tuple(rows))] if len(rows) > 1 else []


def _kind(note: str) -> str:
    """Return what a note is about, without its figures."""
    return note.partition(" by ")[0] if note.startswith("the clock") else note.partition(" in ")[0]


def sensor_table(results: Sequence[Measured], *, settings: bool) -> list[Table]:
    """Lay out clocks, power and temperature, as means and, where they changed, from the lowest block to the highest.

    Args:
        results: What was measured.
        settings: Name the settings.
    """
    columns = [column for column in _COLUMNS if any(column[0] in item.telemetry for item in results)]
    if not columns:
        return []
    rows = []
    for item in results:
        if item.telemetry:
            name = f"{label(item.case)}{f', {item.setting.id}' if settings else ''}"
            rows.append([name, *(_range(item.telemetry.get(field)) for field, _ in columns)])
    return [table(["case", *(title for _, title in columns)], rows, "While it ran")]


def _range(found: dict[str, float] | None) -> str:
    if not found:
        return ""
    low, high = found["low"], found["high"]
    if high - low <= 0.02 * high:
        return f"{found['mean']:,.0f}"
    return f"{found['mean']:,.0f} ({low:,.0f} to {high:,.0f})"


def label(case: Case) -> str:
    """Return what tables call a case."""
    return case.title or case.id.removeprefix(f"{case.suite}/")
