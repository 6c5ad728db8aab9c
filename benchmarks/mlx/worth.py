"""Show what kernels that only NVIDIA GPUs run are worth in whole models: with all of them, without each, with none.

    python -m rocmend.mlx benchmarks/mlx/worth.py --shape llama-3.1-8b --out worth-8b.json

One process and one model: one variant after another, the first one again at the end; each one's best repetition
counts. ``portable`` is what an AMD GPU takes. Weights are random.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core
from mlx_lm.models import cache as caches

from rocmend.kernels.without import kernels as kernel_names
from rocmend.kernels.without import switched_off
from rocmend.mlx.execute.planner import planner

mx: Any = mlx.core

SPEED = Path(__file__).resolve().parents[2] / "src" / "rocmend" / "mlx" / "programs" / "speed.py"


def _program() -> Any:
    """Import the program that builds and times models."""
    spec = importlib.util.spec_from_file_location("speed_program", SPEED)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def measured(run: Callable[..., Any], model: Any, prompt: Any, generate: int, reps: int) -> dict[str, float]:
    """Return the best tokens a second of a prompt and of a generation."""
    planner().forget()
    best = {"prompt": 0.0, "generate": 0.0}
    for _ in range(reps):
        first, rest, _ = run(model, prompt, caches.make_prompt_cache(model), generate)
        best = {"prompt": max(best["prompt"], first), "generate": max(best["generate"], rest)}
    return best


def main() -> None:
    """Time all variants of one model."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--shape", default="llama-3.1-8b")
    made.add_argument("--out", type=Path, required=True)
    made.add_argument("--prompt", type=int, default=512)
    made.add_argument("--generate", type=int, default=128)
    made.add_argument("--reps", type=int, default=5)
    made.add_argument("--only", default="", help="kernels to leave out one by one, with commas; all by default")
    asked = made.parse_args()
    program = _program()
    model = program.build(program.CONFIGS[asked.shape])
    prompt = mx.random.randint(0, 1000, (asked.prompt,))
    mx.eval(prompt)
    kernels = tuple(asked.only.split(",")) if asked.only else kernel_names("nvidia")
    variants: dict[str, tuple[str, ...]] = {
        "all": (), "portable": ("nvidia",), **{f"without {name}": (name,) for name in kernels}, "all again": (),
    }  # fmt: skip
    result: dict[str, Any] = {"shape": asked.shape, "about": program.about(), "variants": {}}
    for name, left_out in variants.items():
        with switched_off(*left_out):
            found = measured(program.run, model, prompt, asked.generate, asked.reps)
        result["variants"][name] = found
        asked.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        sys.stdout.write(f"{asked.shape:14} {name:40} prompt {found['prompt']:9,.0f}  "
                         f"generate {found['generate']:7,.1f} tok/s\n")  # fmt: skip
        sys.stdout.flush()


if __name__ == "__main__":
    main()
