"""How a benchmark on several hosts is laid out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from rocmend.bench.fleet.messages import Health, Message, Ran
from rocmend.bench.fleet.state import Fleet, HostRun, Quarantined, State
from rocmend.bench.records import BenchRun, Measured
from rocmend.cli.views.bench import escaped
from rocmend.cli.views.bench_figures import interval_text
from rocmend.cli.views.bench_sensors import mark, sensor_notes
from rocmend.core.units import count_text, time_text
from rocmend.report.document import Block, Card, Cell, Code, Document, Section, Text, Tone, table

_TONES = {
    State.MEASURED: Tone.GOOD,
    State.INCOMPLETE: Tone.WARNING,
    State.SKIPPED: Tone.WARNING,
    State.FAILED: Tone.ERROR,
}


def fleet_document(fleet: Fleet, runs: Mapping[str, BenchRun]) -> Document:
    """Lay out what hosts did.

    Args:
        fleet: What became of each.
        runs: Their runs in the store, by group.
    """
    counts = {state: sum(host.state is state for host in fleet.hosts) for state in State}
    told = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    bad = sum(bool(host.quarantine) for host in fleet.hosts)
    text = f"{count_text(len(fleet.hosts), 'host')}: {told}."
    if bad:
        text += f" {bad} not healthy after the run, and now in quarantine."
    tone = Tone.GOOD if fleet.clean else Tone.WARNING if counts[State.MEASURED] and not bad else Tone.ERROR
    rows = [_row(host) for host in fleet.hosts]
    blocks: list[Block] = [table(["host", "state", "figures", "health", "device", "time"], _filled(rows, fleet, runs))]
    blocks += [_card(host) for host in fleet.hosts if host.reason or host.quarantine]
    blocks += _figures(fleet, runs)
    blocks += [block for run in runs.values() for block in sensor_notes(run)]
    if notes := _notes(fleet):
        blocks.append(Section("Notes", (Text("\n".join(notes)),), folded=len(notes) > 6))
    groups = [run for host in fleet.hosts for run in host.runs]
    if groups:
        lines = [shlex.join(["rocmend", "report", *groups, "-o", "fleet.html"])]
        if len(groups) > 1:
            lines.append(shlex.join(["rocmend", "compare", *groups[:2], "--across-devices"]))
        blocks.append(Section("Next", (Code("\n".join(lines), "sh"),)))
    footer = (
        f"Run {fleet.id}."
        if fleet.clean
        else f"Run {fleet.id}: the same command with --resume {fleet.id} goes on with it."
    )
    return Document(f"rocmend bench {shlex.join(fleet.words)}", text, tone, tuple(blocks), footer)


def _row(host: HostRun) -> list[str | Cell]:
    figures = f"{host.figures} of {host.expected}" if host.expected else ""
    return [
        host.host,
        Cell(host.state.value, _TONES[host.state]),
        figures,
        _health(host),
        "",
        time_text(host.time_ms) if host.time_ms else "",
    ]


def _filled(rows: list[list[str | Cell]], fleet: Fleet, runs: Mapping[str, BenchRun]) -> list[list[str | Cell]]:
    for row, host in zip(rows, fleet.hosts, strict=True):
        names = dict.fromkeys(
            item.subject.device_name
            for group in host.runs
            if group in runs
            for item in runs[group].results
            if item.subject.device_name
        )
        row[4] = ", ".join(names)
    return rows


def _health(host: HostRun) -> Cell:
    if host.quarantine:
        return Cell("not healthy after", Tone.ERROR)
    if any(one.problems for one in host.health):
        return Cell("not healthy before", Tone.ERROR)
    when = {one.when for one in host.health}
    if {"before", "after"} <= when:
        return Cell("good before and after", Tone.GOOD)
    return Cell("good before, not known after" if when else "", Tone.MUTED)


def _card(host: HostRun) -> Card:
    blocks = [Text(escaped(host.reason))] if host.reason else []
    if host.quarantine:
        name = shlex.quote(host.host)
        blocks.append(Text(f"Its figures are marked, and later fleets leave it out: {escaped(host.quarantine)}."))
        blocks.append(Text(f"When it is healthy again: `rocmend bench hosts --release {name}`."))
    tone = Tone.ERROR if host.quarantine else _TONES[host.state]
    return Card(host.host, tone, "quarantine" if host.quarantine else host.state.value, blocks=tuple(blocks))


def _notes(fleet: Fleet) -> list[str]:
    """Return what is to be known about the runs, what holds for several hosts together."""
    found: dict[str, list[str]] = {}
    for host in fleet.hosts:
        for note in dict.fromkeys((*host.notes, *(note for one in host.health for note in one.notes))):
            found.setdefault(note, []).append(host.host)
    everywhere = len(fleet.hosts)
    return [
        f"- {'all hosts' if 1 < everywhere == len(hosts) else ', '.join(map(escaped, hosts))}: {escaped(note)}"
        for note, hosts in found.items()
    ]


def _figures(fleet: Fleet, runs: Mapping[str, BenchRun]) -> list[Block]:
    """Lay out the figures of all hosts side by side: a table for each unit."""
    columns = {group: _column(host, group) for host in fleet.hosts for group in host.runs if group in runs}
    found: dict[tuple[str, str], dict[str, Measured]] = {}
    for group in columns:
        for item in runs[group].results:
            found.setdefault((item.case.id, item.setting.id), {})[group] = item
    made: list[Block] = []
    for unit in dict.fromkeys(item.case.unit for by in found.values() for item in by.values()):
        rows: list[list[str | Cell]] = [
            [_label(by), *(_cell(by.get(group)) for group in columns)]
            for by in found.values()
            if next(iter(by.values())).case.unit == unit
        ]
        made.append(table(["case", *columns.values()], rows, f"{unit}, with 95 % intervals"))
    return made


def _column(host: HostRun, group: str) -> str:
    gpu = group.partition("-gpu")[2].partition("-")[0]
    return f"{host.host} GPU {gpu}" if gpu else host.host


def _label(by: Mapping[str, Measured]) -> str:
    item = next(iter(by.values()))
    name = item.case.title or item.case.id.removeprefix(f"{item.case.suite}/")
    return name if item.setting.id == "default" else f"{name}, {item.setting.id}"


def _cell(item: Measured | None) -> Cell:
    if item is None:
        return Cell("", Tone.MUTED)
    if item.summary is None:
        return Cell(item.verdict.value, Tone.MUTED)
    return Cell(f"{interval_text(item)}{mark(item)}")


def hosts_document(quarantined: Sequence[Quarantined], fleets: Sequence[Fleet]) -> Document:
    """Lay out the hosts that are left out, and the newest runs."""
    blocks: list[Block] = []
    if quarantined:
        rows = [[one.host, one.since[:16].replace("T", " "), one.reason] for one in quarantined]
        blocks.append(Section("In quarantine", (table(["host", "since (UTC)", "why"], rows),)))
    if fleets:
        lines: list[list[str | Cell]] = [
            [
                fleet.id,
                shlex.join(fleet.words),
                host.host,
                Cell(host.state.value, _TONES[host.state]),
                " ".join(host.runs),
            ]
            for fleet in fleets
            for host in fleet.hosts
        ]
        blocks.append(Section("Runs", (table(["fleet", "benchmark", "host", "state", "runs in the store"], lines),)))
    text = f"{count_text(len(quarantined), 'host')} in quarantine." if quarantined else "No host is in quarantine."
    footer = "`rocmend bench hosts --release HOST` lets one be measured again." if quarantined else ""
    return Document("Hosts", text, Tone.WARNING if quarantined else Tone.GOOD, tuple(blocks), footer)


def exclusive_document(messages: Sequence[Message], folder: Path) -> Document:
    """Lay out a benchmark that this machine ran alone."""
    rows: list[list[str | Cell]] = []
    for message in messages:
        if isinstance(message, Health):
            said = "; ".join(message.problems) or "good"
            notes = f" ({'; '.join(message.notes)})" if message.notes else ""
            tone = Tone.ERROR if message.problems else Tone.GOOD
            rows.append([message.gpu, f"health {message.when}", Cell(f"{said}{notes}", tone)])
        elif isinstance(message, Ran):
            told = f"{message.figures} of {message.expected} figures"
            told += f": {message.reason}" if message.reason else ""
            rows.append([message.gpu, "run", Cell(told, Tone.GOOD if message.code == 0 else Tone.WARNING)])
    bad = any(isinstance(one, Health) and one.problems for one in messages)
    ran = [one for one in messages if isinstance(one, Ran)]
    figures, expected = sum(one.figures for one in ran), sum(one.expected for one in ran)
    text = f"{figures} of {count_text(expected, 'figure')} measured."
    text += " This machine is not healthy." if bad else ""
    tone = Tone.ERROR if bad or not figures else Tone.GOOD if figures == expected else Tone.WARNING
    stores = [folder / (f"gpu-{one.gpu}" if one.gpu else "gpu") for one in ran]
    code = "\n".join(shlex.join(["rocmend", "report", "--store", str(store)]) for store in stores)
    blocks: list[Block] = [table(["GPU", "what", "result"], rows)]
    if code:
        blocks.append(Section("Next", (Code(code, "sh"),)))
    return Document("Measured alone", text, tone, tuple(blocks))
