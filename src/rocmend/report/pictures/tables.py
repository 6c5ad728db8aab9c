"""The figures of a picture as a table: for Markdown, and below each drawing."""

from __future__ import annotations

from rocmend.report.document import Bars, Cell, Picture, Plot, Ranges, Stacks, Table, Timeline, Topology, table
from rocmend.report.pictures.scale import written


def table_of(block: Picture) -> Table:
    """Return a picture's figures as a table."""
    match block:
        case Bars():
            return table(["", "value"], [[bar.label, Cell(bar.text, bar.tone)] for bar in block.bars], block.caption)
        case Ranges():
            ranges: list[list[str | Cell]] = [
                [one.label, Cell(one.text, one.tone), one.low_text, one.high_text] for one in block.ranges
            ]
            return table(["", "value", "least", "most"], ranges, block.caption)
        case Stacks():
            parts: list[list[str | Cell]] = [
                [stack.label, part.label, Cell(part.text, part.tone)] for stack in block.stacks for part in stack.parts
            ]
            marks: list[list[str | Cell]] = [[mark.label, "", Cell(mark.text, mark.tone)] for mark in block.marks]
            return table(["", "part", "size"], [*parts, *marks], block.caption)
        case Topology():
            devices: list[list[str | Cell]] = [
                [device.label, host.label, Cell(device.text, device.tone)]
                for host in block.hosts
                for device in host.devices
            ]
            caption = (
                f"{block.caption}: {block.fabric}" if block.caption and block.fabric else block.caption or block.fabric
            )
            return table(["device", "attached to", "link"], devices, caption)
        case Timeline():
            return _timeline(block)
        case Plot():
            return _plot(block)


def _timeline(block: Timeline) -> Table:
    rows = [
        [row.label, span.name, f"{span.begin:.3g}", f"{span.end - span.begin:.3g}", row.ending if last else ""]
        for row in block.rows
        for number, span in enumerate(row.spans, 1)
        for last in (number == len(row.spans),)
    ]
    rows += [[row.label, "", "", "", row.ending] for row in block.rows if not row.spans]
    return table(["run", "phase", f"began at ({block.unit})", f"took ({block.unit})", "ended"], rows, block.caption)


def _plot(block: Plot) -> Table:
    points = [(series.name, point) for series in block.series for point in series.points]
    named = any(point.text for _, point in points)
    ranged = any(point.interval for _, point in points)
    rows = []
    for name, point in points:
        row = [name, *([point.text] if named else []), written(point.x, block.x), written(point.y, block.y)]
        if ranged:
            row.append(" to ".join(f"{end:.4g}" for end in point.interval))
        rows.append(row)
    heads = ["series", *(["point"] if named else []), block.x.title, block.y.title]
    return table([*heads, *(["interval"] if ranged else [])], rows, block.caption)
