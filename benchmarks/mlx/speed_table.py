"""Write a result of ``speed.py`` as a page of the documentation, with its plot beside it.

python benchmarks/mlx/speed_table.py result.json docs/reference/mlx-speed.md
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

TARGETS = {"qwen3-0.6b": (2.0, 2.0), "llama-3.1-8b": (2.0, 2.0), "qwen3-30b-a3b": (5.0, 2.0)}  # prompt, generation
COLOURS = {"rocmend": "#c8102e", "mlx": "#4285f4"}

HEAD = """# How fast MLX programs run

On {gpu}, {date}: torch {torch}, triton {triton}, Python {python}.
It says nothing of an AMD GPU: no record from one is here. The commands below make one on a machine that has one.

Models of the shapes named, with random weights of 4 bits in groups of 64, computed on in bfloat16, through the
unmodified `mlx_lm.generate.generate_step`: a prompt of {prompt} tokens, then {generate} generated ones, behind `depth`
tokens in the cache. Each figure is the median of the repetitions behind the first, which compiles. {beside}
The floor is what must be read for a token (the weights it needs, the cache) over the measured copy bandwidth,
{copy:,.0f} GB/s.

```console
$ python benchmarks/mlx/speed.py --out result.json --models {models} --depths {depths}{oracle}
$ python benchmarks/mlx/speed_table.py result.json docs/reference/mlx-speed.md
```

![Tokens a second over the depth of the cache](mlx-speed.png)

| model | depth | | rocmend, tok/s | MLX, tok/s | times | target | of the floor |
|---|--:|---|--:|--:|--:|---|--:|
"""


NOT_COMPARED = "MLX's own back end was not measured."


def speeds(run: dict[str, Any]) -> dict[int, tuple[float, float, int]]:
    """Return by depth the median prompt and generation rates, and the bytes of the cache."""
    found: dict[int, list[dict[str, Any]]] = {}
    for line in run["lines"]:
        if line["what"] == "speed":
            found.setdefault(line["depth"], []).append(line)
    return {
        depth: (
            statistics.median([one["prompt_tok_s"] for one in (lines[1:] or lines)]),
            statistics.median([one["generate_tok_s"] for one in (lines[1:] or lines)]),
            lines[0]["cache_bytes"],
        )
        for depth, lines in found.items()
    }


def told(times: float | None, target: float, depth: int) -> str:
    """Return whether a target is reached; targets hold for an empty cache."""
    if times is None or depth:
        return ""
    return f"≥ {target:g} times: {'reached' if times >= target else '**missed**'}"


def page(result: dict[str, Any]) -> str:
    """Return the page."""
    runs = {(run["backend"], run["model"]): run for run in result["runs"]}
    models = list(dict.fromkeys(run["model"] for run in result["runs"]))
    compared = any(run["backend"] == "mlx" for run in result["runs"])
    first = next(line for run in result["runs"] for line in run["lines"] if line["what"] == "speed")
    copies = [line["copy_gb_s"] for run in result["runs"] for line in run["lines"] if line.get("copy_gb_s")]
    copy = copies[0] if copies else float("nan")
    depths = list(dict.fromkeys(line["depth"] for run in result["runs"] for line in run["lines"] if "depth" in line))
    text = HEAD.format(
        **{"gpu": "the CPU", "torch": "?", "triton": "?"} | result["versions"], date=result["date"],
        prompt=first["prompt"], generate=first["generate"], copy=copy, depths=",".join(map(str, depths)),
        models=",".join(models), oracle=" --oracle PYTHON-WITH-MLX" if compared else "",
        beside="Beside it stands MLX's own CUDA back end in the same run." if compared else NOT_COMPARED,
    )  # fmt: skip
    notes = [f"* {note}" for note in result.get("notes", ())]
    for model in models:
        ours, theirs = runs.get(("rocmend", model)), runs.get(("mlx", model))
        mine, other = speeds(ours) if ours else {}, speeds(theirs) if theirs else {}
        about: dict[str, Any] = next((line for line in (ours or {"lines": []})["lines"] if line["what"] == "model"), {})
        for depth, (prompt, rate, cache) in mine.items():
            for index, kind in enumerate(("prompt", "generation")):
                value = (prompt, rate)[index]
                beside = other[depth][index] if depth in other else None
                times = value / beside if beside else None
                floor = ""
                if kind == "generation" and copies:
                    floor = f"{rate * (about['weight_bytes'] + cache) / copy / 1e9:.0%}"
                places = 0 if kind == "prompt" else 1
                row = [
                    model, f"{depth:,}", kind, f"{value:,.{places}f}",
                    "" if beside is None else f"{beside:,.{places}f}",
                    "" if times is None else f"{times:.2f}", told(times, TARGETS[model][index], depth), floor,
                ]  # fmt: skip
                text += f"| {' | '.join(row)} |\n"
        for run in [one for one in (ours, theirs) if one]:
            if run["failed"]:
                notes.append(f"* {run['backend']}, {model}: {run['failed'].splitlines()[0][:200]}")
            notes.extend(
                f"* {run['backend']}, {model}: a decode step takes {line['record_ms']:.2f} ms to record and "
                f"{line['hand_over_ms']:.2f} ms to hand over, on the CPU."
                for line in run["lines"]
                if line["what"] == "steps"
            )
    return text + "\n" + "\n".join(notes) + "\n"


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw generation and prompt rates over the depth of the cache, with the floor as a line."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    models = list(dict.fromkeys(run["model"] for run in result["runs"]))
    figure, grid = plt.subplots(len(models), 2, figsize=(10, 2.6 * len(models)), squeeze=False)
    copies = [line["copy_gb_s"] for run in result["runs"] for line in run["lines"] if line.get("copy_gb_s")]
    for row, model in zip(grid, models, strict=True):
        for run in result["runs"]:
            if run["model"] != model:
                continue
            by_depth = sorted(speeds(run).items())
            xs = [depth for depth, _ in by_depth]
            for axes, index in zip(row, (0, 1), strict=True):
                axes.plot(
                    xs,
                    [rates[index] for _, rates in by_depth],
                    "o-",
                    color=COLOURS[run["backend"]],
                    label=run["backend"],
                )
            about = next((line for line in run["lines"] if line["what"] == "model"), None)
            if run["backend"] == "rocmend" and copies and about:
                floor = [copies[0] * 1e9 / (about["weight_bytes"] + rates[2]) for _, rates in by_depth]
                row[1].plot(xs, floor, "--", color="#9aa0a6", label="floor")
        for axes, kind in zip(row, ("prompt", "generation"), strict=True):
            axes.set_title(f"{model}: {kind}", fontsize=9)
            axes.set_ylabel("tokens / s", fontsize=8)
            axes.set_ylim(bottom=0)
            axes.tick_params(labelsize=7)
            axes.legend(fontsize=7, frameon=False)
    for axes in grid[-1]:
        axes.set_xlabel("tokens in the cache", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Write the page that is named, and the plot."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    result = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    target = Path(sys.argv[2])
    target.write_text(page(result), encoding="utf-8")
    draw(result, target.with_suffix(".png"))


if __name__ == "__main__":
    main()
