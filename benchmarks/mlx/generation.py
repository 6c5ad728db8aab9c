"""Small models on rocmend's ``mlx.core`` and on real MLX, side by side.

    python benchmarks/mlx/generation.py --oracle PYTHON-WITH-MLX [--device cpu|gpu] [CASE]...

Tokens must be equal; logits and losses are compared by their greatest difference relative to the greatest value.
Exit code 1: something differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve().parent / "small_models.py"
TOLERANCES = {"bfloat16": 2**-5, "quantized": 2**-3, "lora": 1e-3}


def results(command: list[str], cases: list[str]) -> dict[str, Any]:
    """Return what a Python computes."""
    ran = subprocess.run([*command, str(PROGRAM), *cases], stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def difference(name: str, theirs: Any, ours: Any) -> str:
    """Return how two results differ; empty if they agree."""
    if isinstance(ours, dict):
        return str(ours["error"])
    tolerance = TOLERANCES.get(name.partition("/")[0])
    if tolerance is None:
        return "" if theirs == ours else f"{ours}, not {theirs}"
    worst = max(abs(a - b) for a, b in zip(theirs, ours, strict=True)) / max(map(abs, theirs))
    return "" if worst <= tolerance else f"differs by {worst:.2g} of the greatest value"


def main() -> int:
    """Compare and print a line for each case."""
    parser = argparse.ArgumentParser(description="Compare generation with real MLX.")
    parser.add_argument("--oracle", required=True, help="a Python that has mlx_lm and mlx with a back end")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("cases", nargs="*", help="all by default")
    options = parser.parse_args()
    theirs = results([options.oracle], options.cases)
    ours = results([sys.executable, "-m", "rocmend.mlx", "--device", options.device], options.cases)
    wrong = 0
    for name, expected in theirs.items():
        if isinstance(expected, dict):
            print(f"{name}: real MLX cannot: {expected['error']}")
            continue
        text = difference(name, expected, ours[name])
        wrong += bool(text)
        print(f"{name}: {text or 'agrees'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
