"""Turn a result into a page: each figure as a fraction of the floor, its target beside.

python -m benchmarks.kernels.table result.json docs/reference/kernels-speed.md [--later other.json]
    [--mlx twins.json] [--earlier before.json]
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.kernels.ratios import Ratio, verdict
from benchmarks.kernels.reading import NAME as READING
from benchmarks.kernels.run import with_mlx

Row = Mapping[str, Any]
TITLES = {
    "quantized": "Quantized matrix products", "attention_decode": "Attention: one query, a long cache",
    "attention": "Attention: prefill and gradients", "moe": "Mixtures of experts", "norms": "Norms and friends",
    "order": "Copies, gather, sort, scans", "conv": "Convolution", "linear_attention": "Recurrences",
}  # fmt: skip

_METHOD = (
    "The floor of a call is the larger of the bytes that must travel over the measured copy bandwidth, and the "
    "arithmetic over the measured rate of a plain matrix product. A figure is the median over replays of a graph, on "
    "sets of arguments that no cache holds, behind a gate against the reference in float64. MLX's times include its "
    "own scheduling."
)
_IN_TURN = (
    "Where a peer comes within 5 % of a target, ours and the peer are measured again, in turn: each captured up to "
    "twenty times, with arguments and outputs in other places in memory, and replayed in an order that is swapped each "
    "round. The target then shows the median of the ratios and an interval that covers it with 95 %. It is *reached* "
    "or *missed* where the whole interval lies on one side of the target. Where the target lies within the interval, "
    "both are *level* if the interval is at most half a per cent wide; else there is *no verdict*."
)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 160, break_on_hyphens=False)


def together(result: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with the figures of a later run of a part of it in the place of its own, marked with the date."""
    fresh = {(row["op"], row["name"]): {**row, "date": later["date"]} for row in later["results"]}
    rows = [fresh.pop((row["op"], row["name"]), row) for row in result["results"]]
    told = f"* Marked ²: measured on {later['date']} in another run, whose ceilings were "
    told += ", ".join(f"{name.replace('_', ' ')} {value:,.0f}" for name, value in later["ceilings"].items())
    notes = [*result.get("notes", []), f"{told}. Without MLX beside it."]
    return {**result, "results": [*rows, *fresh.values()], "notes": notes}


def earlier(result: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with what only an earlier run has, marked: figures of ours, and of MLX beside ours.

    What a run measured itself is never replaced.
    """
    rest = {(row["op"], row["name"]): row for row in before["results"]}
    rows = [_with_mlx(row, rest.pop((row["op"], row["name"]), None)) for row in result["results"]]
    told = f"* Marked ³: from an earlier run, of {before['date']}; kernels may have changed since."
    notes = list(dict.fromkeys([*result.get("notes", []), *before.get("notes", []), told]))
    return {**result, "results": [*rows, *({**row, "earlier": True} for row in rest.values())], "notes": notes}


def _with_mlx(row: Row, before: Row | None) -> dict[str, Any]:
    """Return a row with MLX's time of an earlier run, if it has none of its own."""
    peers = dict(row.get("peers", {}))
    cell = (before or {}).get("peers", {}).get("mlx", {})
    if "us" in cell and "us" not in peers.get("mlx", {}):
        peers.pop("mlx", None)
        peers["mlx ³"] = cell
    return {**row, "peers": peers}


def with_twins(result: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with what MLX was timed at by itself (``benchmarks.kernels.twins``); no error replaces a time."""
    rows = []
    for row in result["results"]:
        said = found["found"].get(f"{row['op']}/{row['name']}")
        told = {} if said is None or "ours" not in row else {"mlx": with_mlx(row, said)}
        if "us" in row.get("peers", {}).get("mlx", {}) and "us" not in told.get("mlx", {}):
            told = {}
        rows.append({**row, "peers": {**row.get("peers", {}), **told}} if told else row)
    return {**result, "results": rows}


def beside(result: Mapping[str, Any], *others: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with those of other topics, which GPUs of the same kind measured meanwhile or just after."""
    ceilings = "; ".join(
        ", ".join(f"{name.replace('_', ' ')} {value:,.0f}" for name, value in one["ceilings"].items()) for one in others
    )
    told = f"* GPUs of one kind measured some topics each; ceilings of the others: {ceilings}."
    notes = [note for one in (result, *others) for note in one.get("notes", [])]
    joined = {name: [row for one in (result, *others) for row in one[name]] for name in ("results", "not_measured")}
    return {**result, **joined, "notes": [*notes, told]}


def page(result: Mapping[str, Any], picture: str = "", calls: str = "") -> str:
    """Return the page."""
    ceilings = result["ceilings"]
    made_with = ", ".join(
        f"{name} {result['versions'][name]}" for name in ("torch", "triton") if name in result["versions"]
    )
    lines = [
        "# How fast the kernels are",
        "",
        f"One run on {result['device']} ({result['target']}), {result['date']}: {made_with}.",
        "It says nothing of an AMD GPU: no record from one is here.",
        "",
        _wrapped(_METHOD),
        "",
        *((_wrapped(_IN_TURN), "") if any("pair" in cell for row in result["results"] for cell in _cells(row)) else ()),
        "| ceiling | measured |",
        "|---|---|",
        *(f"| {name.replace('_', ' ')} | {value:,.0f} |" for name, value in ceilings.items()),
        "",
        "```console",
        "$ PYTHONPATH=src python -m benchmarks.kernels --out result.json --mlx-site FOLDER",
        "$ python -m benchmarks.kernels.table result.json docs/reference/kernels-speed.md",
        "```",
    ]
    if result.get("notes"):
        lines += ["", *result["notes"]]
    if picture:
        lines += ["", f"![Each figure as a fraction of the floor]({picture})"]
    rows = [row for row in result["results"] if row["gate"]["ok"] and "ours" in row]
    known = {f"{row['op']}/{row['name']}": row for row in rows}
    topics = sorted({row["topic"] for row in rows}, key=lambda one: [*TITLES, one].index(one))
    for topic in topics:
        lines += [
            "",
            f"## {TITLES.get(topic, topic)}",
            "",
            *_table([row for row in rows if row["topic"] == topic], known),
        ]
    wrong = [row for row in result["results"] if not row["gate"]["ok"]]
    if wrong or result["not_measured"]:
        lines += ["", "## Not measured", ""]
        lines += [f"* {row['op']} {row['name']}: {row['gate']['detail'][:200].replace(chr(10), ' ')}" for row in wrong]
        lines += [f"* {name}: the time was up" for name in result["not_measured"]]
    if calls:
        lines += ["", calls.rstrip()]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> list[Mapping[str, Any]]:
    return list(row.get("peers", {}).values())


def _table(rows: Sequence[Row], known: Mapping[str, Row]) -> list[str]:
    lines = [
        "| op | what | µs | ± | rate | of the floor | target | peers: µs (times ours) | call, µs |",
        "|---|---|--:|--:|--:|--:|---|---|--:|",
    ]
    for row in rows:
        ours = row["ours"]
        rate = f"{ours['tflops']:.0f} TFLOPS" if _bound_by_work(row) else f"{ours['gb_s']:,.0f} GB/s"
        part = f"{ours['of_floor']:.0%}" if "of_floor" in ours else ""
        peers = "; ".join(_peer(name, cell, ours["us"]) for name, cell in row.get("peers", {}).items())
        call = f"{ours['call_us']:.1f}" if "call_us" in ours else ""
        name = f"{row['name']} ²" if "date" in row else f"{row['name']} ³" if "earlier" in row else row["name"]
        lines.append(
            f"| {row['op']} | {name} | {ours['us']:,.1f} | {ours['spread']:.0%} | {rate} | {part} "
            f"| {'; '.join(target(goal, row, known) for goal in row['goals'])} | {peers} | {call} |"
        )
    return lines


def _bound_by_work(row: Row) -> bool:
    """Return whether arithmetic bounds the call: it takes longer than the bytes at 200 operations a byte."""
    return bool(row["flops"]) and row["flops"] / max(row["bytes"], 1.0) > 150


def _peer(name: str, cell: Mapping[str, Any], us: float) -> str:
    if "us" not in cell:
        return f"{name}: {cell.get('error', '')[:60].splitlines()[0] if cell.get('error') else 'no figure'}".replace(
            "|", "/"
        )
    return f"{name} {cell['us']:,.1f} ({cell['us'] / us:.2f})"


def target(goal: Sequence[Any], row: Row, known: Mapping[str, Row]) -> str:
    """Say what a figure is held against, and whether it holds."""
    kind, least = str(goal[0]), float(goal[1])
    value = reached(kind, row, known)
    pair = _pair(kind, row)
    kind, _, rest = kind.partition(":")
    said = {
        "of_floor": f"≥ {least:.0%}",
        "tflops": f"≥ {least:.0f} TFLOPS",
        "of_peer": f"≥ {least:.0%} of {rest}'s rate",
        "times": f"≤ {least:.2f} times {rest}",
    }[kind]
    if value is None:
        return f"{said}: no figure to compare"
    if pair is not None:
        found = verdict(least, pair)
        shown = f"{pair.ratio:.1%} ({pair.low:.1%} to {pair.high:.1%})"
        return f"{said}: {shown}, {f'**{found}**' if found == 'missed' else found}"
    holds = value <= least if kind == "times" else value >= least
    shown = f"{value:.0f}" if kind == "tflops" else f"{value:.2f}" if kind == "times" else f"{value:.0%}"
    reading = row.get("peers", {}).get(READING, {})
    if kind == "of_floor" and "of_floor" in reading:
        shown += f" ({READING} {reading['of_floor']:.0%})"
    return f"{said}: {shown}, {'reached' if holds else '**missed**'}"


def reached(kind: str, row: Row, known: Mapping[str, Row]) -> float | None:
    """Return what a goal compares, or None where it was not measured."""
    kind, _, rest = kind.partition(":")
    ours = row["ours"]
    if kind in {"of_floor", "tflops"}:
        return float(ours[kind]) if kind in ours else None
    if kind == "times":
        other = known.get(f"{row['op']}/{rest}")
        return None if other is None else float(ours["us"] / other["ours"]["us"])
    fastest = _fastest(rest, row)
    return None if fastest is None else float(fastest["us"]) / float(ours["us"])


def _fastest(beginning: str, row: Row) -> Mapping[str, Any] | None:
    """Return the figures of the fastest peer whose name begins so."""
    cells = [cell for name, cell in row["peers"].items() if name.startswith(beginning) and "us" in cell]
    return min(cells, key=lambda cell: float(cell["us"]), default=None)


def _pair(kind: str, row: Row) -> Ratio | None:
    """Return what a goal's peer came to in turn with ours; None where it was measured alone."""
    kind, _, rest = kind.partition(":")
    fastest = _fastest(rest, row) if kind == "of_peer" else None
    if fastest is None or "pair" not in fastest:
        return None
    return Ratio(*(float(fastest["pair"][name]) for name in Ratio._fields))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.kernels.table", description=__doc__)
    made.add_argument("result", type=Path)
    made.add_argument("page", type=Path)
    made.add_argument("--picture", default="", help="path of the plot, as the page names it")
    made.add_argument("--append", type=Path, default=None, help="a Markdown file that is put at the end")
    made.add_argument("--later", type=Path, action="append", default=[], help="a later run of a part of it")
    made.add_argument(
        "--earlier", type=Path, action="append", default=[], help="an earlier run: what this one has not, marked"
    )
    made.add_argument(
        "--beside", type=Path, action="append", default=[], help="other topics of the same run, from another GPU"
    )
    made.add_argument("--mlx", type=Path, action="append", default=[], help="what MLX was timed at: of twins")
    made.add_argument("--joined", type=Path, default=None, help="where the result, that beside it and MLX's go as one")
    asked = made.parse_args(arguments)
    result = json.loads(asked.result.read_text(encoding="utf-8"))
    if asked.beside:
        result = beside(result, *(json.loads(path.read_text(encoding="utf-8")) for path in asked.beside))
    for path in asked.mlx:
        result = with_twins(result, json.loads(path.read_text(encoding="utf-8")))
    if asked.joined:
        asked.joined.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for path in asked.earlier:
        result = earlier(result, json.loads(path.read_text(encoding="utf-8")))
    for path in asked.later:
        result = together(result, json.loads(path.read_text(encoding="utf-8")))
    more = asked.append.read_text(encoding="utf-8") if asked.append else ""
    asked.page.write_text(page(result, asked.picture, more), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
