"""Generate many tokens and tell whether time, memory or caches grow.

    python -m rocmend.mlx benchmarks/mlx/endurance.py --steps 10000

A small Qwen3 with random weights and a rotating cache, so that a step costs the same at the end as at the beginning.
Exit code 1: something grew.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import statistics
import sys
import time
from typing import Any

import mlx.core
import mlx.nn
import psutil  # type: ignore[import-untyped]
from mlx_lm.models import cache as caches

from rocmend.mlx.execute.planner import planner

mx: Any = mlx.core

CONFIG = {
    "model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 4, "intermediate_size": 128, "rms_norm_eps": 1e-6,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 256, "rope_theta": 1e6,
    "tie_word_embeddings": True, "max_position_embeddings": 40960, "rope_scaling": None,
}  # fmt: skip


def main() -> int:
    """Run, and print what was seen in each tenth."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--steps", type=int, default=10_000)
    made.add_argument("--window", type=int, default=64, help="tokens that the rotating cache holds")
    asked = made.parse_args()
    module = importlib.import_module("mlx_lm.models.qwen3")
    mx.random.seed(0)
    model = module.Model(module.ModelArgs.from_dict(CONFIG))
    mlx.nn.quantize(model, group_size=32, bits=4)
    cache = caches.make_prompt_cache(model, max_kv_size=asked.window)
    token = mx.array([5])
    process = psutil.Process()
    tenths = []
    for _ in range(10):
        times = []
        for _ in range(max(1, asked.steps // 10)):
            start = time.perf_counter()
            following = mx.argmax(model(token[None], cache=cache)[:, -1, :], axis=-1)
            mx.async_eval(following)
            token.item()
            token = following
            times.append(time.perf_counter() - start)
        gc.collect()
        tenths.append({
            "step_ms": round(statistics.median(times) * 1e3, 3),
            "resident_mb": round(process.memory_info().rss / 1e6, 1),
            "active_mb": round(mx.get_active_memory() / 1e6, 2), "objects": len(gc.get_objects()),
            "plans": len(planner().entries), "plans_made": planner().made,
        })  # fmt: skip
        sys.stdout.write(json.dumps(tenths[-1]) + "\n")
        sys.stdout.flush()
    first, last = tenths[2], tenths[-1]  # behind the cache's first turn
    allowed = {"step_ms": 1.5, "resident_mb": 1.02, "active_mb": 1.01, "objects": 1.01, "plans": 1.0}
    grew = [name for name, times in allowed.items() if last[name] > first[name] * times]
    sys.stdout.write(json.dumps({"steps": asked.steps, "grew": grew}) + "\n")
    return 1 if grew else 0


if __name__ == "__main__":
    sys.exit(main())
