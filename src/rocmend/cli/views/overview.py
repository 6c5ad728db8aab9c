"""A machine at a glance: verdicts as tiles, and what is better seen than read as pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rocmend.core.records import Finding
from rocmend.core.units import count_text, size_text
from rocmend.doctor.areas import Area, AreaState
from rocmend.machine.facts import Machine
from rocmend.report.document import (
    Bar,
    Bars,
    Block,
    Device,
    Host,
    Range,
    Ranges,
    Stack,
    Stacks,
    Tile,
    Tiles,
    Tone,
    Topology,
)

_STATE = {
    AreaState.OK: (Tone.GOOD, "OK"),
    AreaState.ATTENTION: (Tone.WARNING, "Warning"),
    AreaState.PROBLEM: (Tone.ERROR, "Problem"),
    AreaState.UNKNOWN: (Tone.MUTED, "Unknown"),
}
_BUSY_PERCENT = 10
_PCIE = {2.5: "1.0", 5.0: "2.0", 8.0: "3.0", 16.0: "4.0", 32.0: "5.0", 64.0: "6.0"}
"""Generation by transfer rate a lane, GT/s. Source: PCI Express Base Specification 6.0, 1.2"""


def area_tiles(areas: Sequence[Area], findings: Sequence[Finding]) -> Tiles:
    """Lay out the verdicts; each leads to the gravest finding about it."""
    titles = {finding.entry_id: finding.title for finding in reversed(findings)}
    return Tiles(tuple(_tile(area, titles) for area in areas))


def _tile(area: Area, titles: dict[str, str]) -> Tile:
    tone, word = _STATE[area.state]
    first, *rest = (*area.findings, "")
    note = "" if area.state is AreaState.OK else titles.get(first, "").partition(": ")[0]  # the rest is below
    more = len([ref for ref in rest if ref])
    return Tile(area.name, word, area.text, tone, first, f"{note} (and {more} more)" if more else note)


def machine_pictures(machine: Machine) -> tuple[Block, ...]:
    """Draw memory and links, a save area that is too small, and the clocks of a GPU at work."""
    if machine.hypothetical_target:
        return ()
    drawn = (_save_area(machine), _memory(machine), _clocks(machine), _links(machine))
    return tuple(block for block in drawn if block is not None)


def _grouped(machine: Machine, keys: Sequence[str], needed: int) -> list[tuple[str, list[Any]]]:
    """Return the values of these facts of the GPUs, equal ones together: ``GPU 0``, or ``GPUs 0 to 7``.

    Args:
        machine: Where they are.
        keys: After ``gpu.N.``.
        needed: How many of them, from the first, have to be known.
    """
    groups: dict[str, tuple[list[int], list[Any]]] = {}
    for index in machine.indices("gpu"):
        values = [machine.value(f"gpu.{index}.{key}") for key in keys]
        if all(value is not None for value in values[:needed]):
            groups.setdefault(repr(values), ([], values))[0].append(index)
    return [(_named(indices), values) for indices, values in groups.values()]


def _named(indices: Sequence[int]) -> str:
    if len(indices) == 1:
        return f"GPU {indices[0]}"
    together = indices[-1] - indices[0] == len(indices) - 1
    return f"GPUs {indices[0]} to {indices[-1]}" if together else f"GPUs {', '.join(map(str, indices))}"


def _save_area(machine: Machine) -> Bars | None:
    bars: list[Bar] = []
    for name, (present, needed, enough) in _grouped(
        machine, ("cwsr_size_bytes", "cwsr_required_bytes", "cwsr_sufficient"), 2
    ):
        tone, word = (Tone.ERROR, "too small") if enough is False else (Tone.GOOD, "enough")
        bars.append(Bar(f"Needed by {name}", needed, size_text(needed)))
        bars.append(Bar(f"Present for {name}", present, f"{size_text(present)}, {word}", tone))
    if all(bar.tone is not Tone.ERROR for bar in bars):
        return None  # equal bars say no more than the check that passed
    return Bars(tuple(bars), "Save area for interrupted kernels")


def _memory(machine: Machine) -> Stacks | None:
    total = machine.value("memory.total_bytes")
    keys = ("vram_total_bytes", "memory_ceiling_bytes", "is_apu", "vram_used_bytes")
    stacks: list[Stack] = []
    for name, (vram, ceiling, is_apu, used) in _grouped(machine, keys, 2):
        if is_apu and total:
            mapped = max(min(ceiling - vram, total), 0)
            parts = (
                Bar("VRAM (carve-out)", vram, size_text(vram)),
                Bar("GTT: system memory that the GPU can use", mapped, size_text(mapped)),
                Bar("system memory for the CPU alone", total - mapped, size_text(total - mapped)),
            )
            stacks.append(Stack(f"{name} and CPU share {size_text(vram + total)}", parts))
        elif is_apu is False:
            taken = min(used or 0, vram)
            free = Bar("free", vram - taken, size_text(vram - taken))
            stacks.append(Stack(f"VRAM of {name}: {size_text(vram)}", (Bar("used", taken, size_text(taken)), free)))
    wanted, fits = machine.value("ask.model_bytes"), machine.value("model.fits")
    tone, word = {True: (Tone.GOOD, ", fits"), False: (Tone.ERROR, ", does not fit")}.get(fits, (Tone.PLAIN, ""))
    marks = (Bar("The model", wanted, f"{size_text(wanted)}{word}", tone),) if wanted else ()
    return Stacks(tuple(stacks), marks, "Memory") if stacks else None


def _clocks(machine: Machine) -> Ranges | None:
    ranges: list[Range] = []
    says = False  # the clocks of an idle GPU do not
    for what, key in (("Shader clock", "sclk"), ("Memory clock", "mclk")):
        for name, (now, most, busy, idle) in _grouped(
            machine, (f"{key}_mhz", f"{key}_max_mhz", "busy_percent", "idle_clocks"), 2
        ):
            stuck = idle is True and key == "sclk"
            says = says or stuck or (busy or 0) >= _BUSY_PERCENT
            state = "" if busy is None or key != "sclk" else f", {busy} % busy"
            text = f"{now} MHz{state}" + (", stuck low" if stuck else "")
            tone = Tone.WARNING if stuck else Tone.PLAIN
            ranges.append(Range(f"{what}, {name}", 0, most, now, "0", f"{most} MHz", text, tone))
    return Ranges(tuple(ranges), "Clocks when this was read") if says else None


def _links(machine: Machine) -> Topology | None:
    indices = machine.indices("gpu")
    if len(indices) < 2:
        return None
    hosts: dict[int, list[Device]] = {}
    for index in indices:
        node = machine.value(f"gpu.{index}.numa_node")
        hosts.setdefault(-1 if node is None else node, []).append(_device(machine, index))
    laid = tuple(
        Host(f"NUMA node {node}" if node >= 0 else "Host", tuple(devices)) for node, devices in sorted(hosts.items())
    )
    counts = {machine.value(f"gpu.{index}.xgmi_links") for index in indices}
    linked = [count for count in counts if count]
    fabric = f"Each GPU has {count_text(linked[0], 'XGMI link')} to the others." if len(counts) == 1 and linked else ""
    return Topology(laid, fabric, "GPUs, NUMA nodes and links")


def _device(machine: Machine, index: int) -> Device:
    def number(key: str, read: Callable[[str], float]) -> float | None:
        text = str(machine.value(f"gpu.{index}.{key}") or "").split(" ")[0]
        return read(text) if text.replace(".", "", 1).isdigit() else None

    width, widest = number("link_width", float), number("link_width_max", float)
    speed = number("link_speed", float)
    generation = f"PCIe {_PCIE.get(speed, f'{speed:g} GT/s')}" if speed else "PCIe"
    narrow = bool(width and widest and width < widest)
    lanes = f" x{width:g}" + (f" of x{widest:g}" if narrow else "") if width else ""
    return Device(f"GPU {index}", f"{generation}{lanes}", Tone.WARNING if narrow else Tone.PLAIN)
