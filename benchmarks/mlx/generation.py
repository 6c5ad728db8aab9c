"""Small models on rocmend's ``mlx.core`` and on real MLX, side by side.

    python benchmarks/mlx/generation.py --oracle PYTHON-WITH-MLX [--device cpu|gpu] [CASE]...

Tokens must be equal; logits and losses are compared by their greatest difference relative to the greatest value. Logits
in bfloat16 (``bfloat16/…``, ``quantized/…``) have twins of the same weights in float32 (``wide-…``). The twins tell
whether both compute the same. In bfloat16 both round, each in its own way: ours may not be further from float32 than
real MLX's. Exit code 1: something differs.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve().parent / "small_models.py"
# Greatest difference relative to the greatest value; seen for float32: 2e-6.
TOLERANCES = {"wide-bfloat16": 2**-16, "wide-quantized": 2**-16, "lora": 1e-3}
ROUNDED = ("bfloat16/", "quantized/")
LEEWAY = 1.25
"""How much further from float32 than real MLX's our logits in bfloat16 may be, in the mean: roundings are chance.

Seen for llama, at logits of up to 4: both 0.013 with weights in bfloat16; with quantized ones real MLX 0.03 to 0.06, as
on a CPU it adds up such products in bfloat16, term by term, and ours 0.02, added up in float32 and rounded once. Where
roundings change which experts are chosen, either is further away (deepseek_v3: real MLX 0.6, ours 0.3).
"""


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


def distance(values: Any, exact: Any) -> float:
    """Return the root of the mean square of differences."""
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(values, exact, strict=True)) / len(exact))


def rounding(theirs: Any, ours: Any, exact: Any) -> str:
    """Return by how much ours is further from what is exact than theirs; empty if it is not."""
    for one in (ours, exact):
        if isinstance(one, dict):
            return str(one["error"])
    far, allowed = distance(ours, exact), LEEWAY * distance(theirs, exact)
    return "" if far <= allowed else f"is {far:.2g} from float32 in the mean, real MLX {allowed / LEEWAY:.2g}"


def main() -> int:
    """Compare and print a line for each case."""
    parser = argparse.ArgumentParser(description="Compare generation with real MLX.")
    parser.add_argument("--oracle", required=True, help="a Python that has mlx_lm and mlx with a back end")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("cases", nargs="*", help="all by default")
    options = parser.parse_args()
    asked = list(
        dict.fromkeys([*options.cases, *(f"wide-{name}" for name in options.cases if name.startswith(ROUNDED))])
    )
    theirs = results([options.oracle], asked)
    ours = results([sys.executable, "-m", "rocmend.mlx", "--device", options.device], asked)
    wrong = 0
    for name, expected in theirs.items():
        if isinstance(expected, dict):
            print(f"{name}: real MLX cannot: {expected['error']}")
            continue
        if name.startswith(ROUNDED):
            text = rounding(expected, ours[name], theirs[f"wide-{name}"])
        else:
            text = difference(name, expected, ours[name])
        wrong += bool(text)
        print(f"{name}: {text or 'agrees'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
