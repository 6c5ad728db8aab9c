"""Time mlx_lm on rocmend's ``mlx.core`` beside another Python's MLX, in one run on one machine.

    python benchmarks/mlx/speed.py --out result.json                          # three models, rocmend alone
    python benchmarks/mlx/speed.py --out result.json --oracle PYTHON          # and the MLX that PYTHON has
    python benchmarks/mlx/speed.py --out result.json --models qwen3-0.6b --depths 0,2048,8192,32768
    python benchmarks/mlx/speed_table.py result.json docs/reference/mlx-speed.md

Each model runs in a process of its own with a time limit; what it printed until then counts. Weights are random.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CHILD = HERE.parents[1] / "src" / "rocmend" / "mlx" / "programs" / "speed.py"
MODELS = ("qwen3-0.6b", "llama-3.1-8b", "qwen3-30b-a3b")


def timed(command: list[str], limit_s: float, environment: dict[str, str]) -> tuple[list[dict[str, Any]], str]:
    """Run a child; return the lines that it printed, and why it ended early, if it did."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(command, stdout=out, stderr=errors, env=environment, start_new_session=True)
        why = ""
        try:
            code = child.wait(limit_s)
            why = f"exit status {code}" if code else ""
        except subprocess.TimeoutExpired:
            why = f"no end within {limit_s:.0f} s"
            os.killpg(child.pid, 15)
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, 9)
                child.wait()
        out.seek(0)
        errors.seek(0)
        lines = [json.loads(line) for line in out if line.startswith("{") and line.rstrip().endswith("}")]
        return lines, f"{why}: {errors.read()[-500:].strip()}" if why else ""


def versions() -> dict[str, str]:
    """Return what the figures depend on."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    try:
        import torch
        import triton
    except ImportError:
        return found
    found |= {"torch": torch.__version__, "triton": triton.__version__}
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def main() -> None:
    """Run what is asked for and write the result after each child."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--out", type=Path, required=True, help="the result, JSON")
    made.add_argument("--models", default=",".join(MODELS))
    made.add_argument("--depths", default="0")
    made.add_argument("--prompt", default="512")
    made.add_argument("--generate", default="128")
    made.add_argument("--reps", default="4")
    made.add_argument("--layers", default="0", help="layers of smaller models, to try the script")
    made.add_argument("--oracle", default="", help="a Python that has MLX with a back end")
    made.add_argument("--limit", type=float, default=600.0, help="seconds for a child")
    asked = made.parse_args()
    result: dict[str, Any] = {"schema": 1, "date": time.strftime("%Y-%m-%d"), "versions": versions(), "runs": []}
    source = HERE.parents[1] / "src"
    ours = os.environ | {"PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])}
    backends = [("rocmend", [sys.executable, "-m", "rocmend.mlx"], ours)]
    if asked.oracle:
        backends.append(("mlx", [asked.oracle], dict(os.environ)))
    for model in asked.models.split(","):
        for name, start, environment in backends:
            command = [
                *start, str(CHILD), "--shape", model, "--depths", asked.depths, "--prompt", asked.prompt,
                "--generate", asked.generate, "--reps", asked.reps, "--layers", asked.layers,
            ]  # fmt: skip
            began = time.perf_counter()
            lines, why = timed(command, asked.limit, environment)
            result["runs"].append({"backend": name, "model": model, "lines": lines, "failed": why})
            asked.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            speeds = [line for line in lines if line["what"] == "speed" and line["depth"] == 0]
            best = max((line["generate_tok_s"] for line in speeds), default=0.0)
            prompt = max((line["prompt_tok_s"] for line in speeds), default=0.0)
            print(f"{model:16} {name:8} prompt {prompt:9,.0f}  generate {best:7,.1f} tok/s  "
                  f"{time.perf_counter() - began:5.0f} s  {why}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
