"""Small models on rocmend's ``mlx.core`` and on real MLX, side by side.

    python benchmarks/mlx/generation.py --oracle PYTHON-WITH-MLX [--device cpu|gpu] [CASE]...
    python benchmarks/mlx/generation.py --oracle PYTHON-WITH-MLX --record tests/mlx/recorded_generation.json

Tokens must be equal; logits and losses are compared by their greatest difference relative to the greatest value. Logits
in bfloat16 (``bfloat16/…``, ``quantized/…``) have twins of the same weights in float32 (``wide-…``). The twins tell
whether both compute the same. In bfloat16 both round, each in its own way: ours may not be further from float32 than
real MLX's. Exit code 1: something differs.

``--record`` compares nothing: it writes what the oracle gives into a file, for the cases that the file has, or for
those that are named.
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
# Greatest difference relative to the greatest value; seen for float32: 2e-6, for losses 3e-7.
TOLERANCES = {"wide-bfloat16": 2**-16, "wide-quantized": 2**-16, "lora": 1e-5, "lora-fast": 1e-5}
ROUNDED = ("bfloat16/", "quantized/")
LOGITS = 64
"""How many logits of a case are recorded."""
VERSIONS = """
import importlib.metadata as m, json
print(json.dumps({name: m.version(name.replace("_", "-")) for name in ("mlx", "mlx_lm")}))
"""
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


def record(path: Path, oracle: str, cases: list[str]) -> None:
    """Write an oracle's results of cases, or of those that a file has, into that file; 64 logits of each."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    ran = subprocess.run([oracle, "-c", VERSIONS], stdout=subprocess.PIPE, check=True)
    kept |= json.loads(ran.stdout)
    for name, found in results([oracle], cases or list(kept["results"])).items():
        if isinstance(found, dict):
            raise SystemExit(f"{name}: real MLX cannot: {found['error']}")
        kept["results"][name] = found[:LOGITS] if name.startswith("bfloat16/") else found
    head = ", ".join(f"{json.dumps(key)}: {json.dumps(kept[key])}" for key in kept if key != "results")
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in kept["results"].items())
    path.write_text(f'{{\n {head},\n "results": {{\n{lines}\n }}\n}}\n', encoding="utf-8")


def main() -> int:
    """Compare and print a line for each case."""
    parser = argparse.ArgumentParser(description="Compare generation with real MLX.")
    parser.add_argument("--oracle", required=True, help="a Python that has mlx_lm and mlx with a back end")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--record", type=Path, help="write what the oracle gives into this file, and compare nothing")
    parser.add_argument("cases", nargs="*", help="all by default; of --record, those of the file")
    options = parser.parse_args()
    if options.record:
        record(options.record, options.oracle, options.cases)
        return 0
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
