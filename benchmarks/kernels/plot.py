"""Draw a result: every figure as a fraction of the floor that the machine's measured ceilings allow.

python -m benchmarks.kernels.plot result.json result.png [--topic norms] [--rank 1]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COLOURS = {"ours": "#c8102e", "torch": "#9aa0a6", "torch.compile": "#5f6368", "mlx": "#4285f4"}
_MORE = ("#34a853", "#fbbc05", "#a142f4", "#24c1e0", "#f538a0")


def bars(result: dict[str, Any], topic: str = "", rank: int = 0) -> list[tuple[str, dict[str, float]]]:
    """Return a label and the fraction of the floor by who computed it, for every bench that was timed."""
    found = []
    for row in result["results"]:
        if not row["gate"]["ok"] or "of_floor" not in row.get("ours", {}):
            continue
        if (topic and row["topic"] != topic) or (rank and row.get("rank", 1) != rank):
            continue
        values = {"ours": row["ours"]["of_floor"]}
        values |= {name: cell["of_floor"] for name, cell in row["peers"].items() if "of_floor" in cell}
        found.append((f"{row['op']}  {row['name']}", values))
    return found


def draw(result: dict[str, Any], path: Path, topic: str = "", rank: int = 0) -> None:
    """Draw a result as horizontal bars."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from PIL import Image  # matplotlib needs it too

    rows = bars(result, topic, rank)
    names = list(dict.fromkeys(name for _, values in rows for name in values))
    colours = dict(zip([name for name in names if name not in COLOURS], _MORE * 9, strict=False)) | COLOURS
    slots = sum(len(values) + 1 for _, values in rows)
    figure, axes = plt.subplots(figsize=(10, max(2.0, 0.17 * slots + 1.2)))
    at, ticks = 0.0, []
    for label, values in rows:
        ticks.append((at + (len(values) - 1) / 2, label))
        for name, value in values.items():
            axes.barh(at, value, height=0.9, color=colours[name])
            axes.text(value + 0.005, at, f"{value:.0%}", va="center", fontsize=6)
            at += 1
        at += 1
    axes.set_yticks([place for place, _ in ticks], [label for _, label in ticks], fontsize=7)
    axes.margins(y=0.003)
    axes.invert_yaxis()
    axes.axvline(1.0, color="black", linewidth=0.6, linestyle=":")
    axes.set_xlabel("fraction of the floor (measured copy bandwidth and matrix-product rate of the same run)")
    axes.set_title(
        f"{result['device']}, Triton {result['versions'].get('triton', '?')}, "
        f"torch {result['versions']['torch']}, {result['date']}",
        fontsize=9,
    )
    handles = [plt.Rectangle((0, 0), 1, 1, color=colours[name]) for name in names]
    axes.legend(handles, names, fontsize=7, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)
    # A third of the size: bars need few colours.
    Image.open(path).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the result that the command line names."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.kernels.plot", description=__doc__)
    made.add_argument("result", type=Path)
    made.add_argument("picture", type=Path)
    made.add_argument("--topic", default="")
    made.add_argument("--rank", type=int, default=0, help="1 for what the kernels are held against")
    asked = made.parse_args(arguments)
    draw(json.loads(asked.result.read_text(encoding="utf-8")), asked.picture, asked.topic, asked.rank)
    return 0


if __name__ == "__main__":
    sys.exit(main())
