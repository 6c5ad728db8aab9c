"""Time one model, with whatever ``mlx.core`` this Python imports; prints a JSON line for each figure.

    python -m rocmend.mlx benchmarks/mlx/speed_child.py llama-3.1-8b --depths 0,8192
    python benchmarks/mlx/speed_child.py llama-3.1-8b --depths 0,8192

Weights are random, 4 bits in groups of 64, computed on in bfloat16: nothing is downloaded. A prompt of 512 tokens and
128 generated ones go through ``mlx_lm.generate.generate_step``, behind ``depth`` tokens that are in the cache already.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from typing import Any

import mlx.core
import mlx.nn
import mlx.utils
from mlx_lm.models import cache as caches

mx: Any = mlx.core
generating: Any = importlib.import_module("mlx_lm.generate")  # the package has a function of that name

_QWEN = {
    "rms_norm_eps": 1e-6, "vocab_size": 151936, "rope_theta": 1e6, "head_dim": 128, "max_position_embeddings": 40960,
    "rope_scaling": None,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "qwen3-0.6b": _QWEN | {
        "model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "intermediate_size": 3072,
        "num_attention_heads": 16, "num_key_value_heads": 8, "tie_word_embeddings": True,
    },
    "llama-3.1-8b": {
        "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "vocab_size": 128256,
        "rope_theta": 5e5, "tie_word_embeddings": False,
    },
    "qwen3-30b-a3b": _QWEN | {
        "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "intermediate_size": 6144,
        "num_attention_heads": 32, "num_key_value_heads": 4, "tie_word_embeddings": False, "num_experts": 128,
        "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], "moe_intermediate_size": 768,
        "norm_topk_prob": True,
    },
}  # fmt: skip


def say(**values: Any) -> None:
    """Print a line."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def build(config: dict[str, Any]) -> Any:
    """Return a quantized model with random weights."""
    module = importlib.import_module(f"mlx_lm.models.{config['model_type']}")
    mx.random.seed(0)
    model = module.Model(module.ModelArgs.from_dict(config))
    model.set_dtype(mx.bfloat16)
    mlx.nn.quantize(model, group_size=64, bits=4)
    mx.eval(model.parameters())
    return model


def bytes_of_a_token(model: Any, config: dict[str, Any]) -> int:
    """Return the bytes of weights that one token needs: of experts the chosen part, of the embedding one row."""
    total = 0.0
    for name, value in mlx.utils.tree_flatten(model.parameters()):
        part = 1.0
        if "switch_mlp" in name:
            part = config["num_experts_per_tok"] / config["num_experts"]
        elif "embed_tokens" in name and not config["tie_word_embeddings"]:
            part = 1 / config["vocab_size"]
        total += value.nbytes * part
    return round(total)


def bytes_of_the_cache(config: dict[str, Any], depth: int) -> int:
    """Return the bytes of keys and values of ``depth`` tokens."""
    size = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    return int(config["num_hidden_layers"] * 2 * config["num_key_value_heads"] * size * 2 * depth)


def run(model: Any, prompt: Any, cache: Any, generate: int) -> tuple[float, float]:
    """Return tokens a second of the prompt and of generation."""
    start = time.perf_counter()
    first, count = 0.0, 0
    for token, _ in generating.generate_step(prompt, model, max_tokens=generate, prompt_cache=cache):
        int(token)
        count += 1
        if count == 1:
            first = time.perf_counter()
    end = time.perf_counter()
    return prompt.size / (first - start), (count - 1) / (end - first)


def filled(model: Any, depth: int) -> Any:
    """Return a cache that holds ``depth`` random tokens."""
    cache = caches.make_prompt_cache(model)
    for start in range(0, depth, 2048):
        model(mx.random.randint(0, 1000, (1, min(2048, depth - start))), cache=cache)
        mx.eval([one.state for one in cache])
    return cache


def copy_gb_s() -> float | None:
    """Return the bandwidth of a copy on the device that ``mlx.core`` computes on, read and write counted."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    best = float("inf")
    for _ in range(10):
        events[0].record()
        target.copy_(source)
        events[1].record()
        torch.cuda.synchronize()
        best = min(best, events[0].elapsed_time(events[1]) / 1e3)
    return 2 * source.numel() / best / 1e9


def steps(model: Any, count: int) -> dict[str, float]:
    """Return the median milliseconds of a decode step's recording and of handing it over, with nothing waited for."""
    cache = filled(model, 16)
    token = mx.array([5])
    recorded, handed = [], []
    for _ in range(count):
        start = time.perf_counter()
        logits = model(token[None], cache=cache)[:, -1, :]
        following = mx.argmax(logits - mx.logsumexp(logits, keepdims=True), axis=-1)
        middle = time.perf_counter()
        mx.async_eval(following)
        end = time.perf_counter()
        recorded.append(middle - start)
        handed.append(end - middle)
        token.item()
        token = following
    middle_of = sorted(recorded)[count // 2], sorted(handed)[count // 2]
    return {"record_ms": middle_of[0] * 1e3, "hand_over_ms": middle_of[1] * 1e3}


def main() -> None:
    """Time the model that is named."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("model", choices=sorted(CONFIGS))
    made.add_argument("--depths", default="0", help="tokens in the cache, e.g. 0,2048,32768")
    made.add_argument("--prompt", type=int, default=512)
    made.add_argument("--generate", type=int, default=128)
    made.add_argument("--reps", type=int, default=4)
    made.add_argument("--layers", type=int, default=0, help="of a smaller model of the same kind; 0: all")
    asked = made.parse_args()
    config = dict(CONFIGS[asked.model])
    if asked.layers:
        config["num_hidden_layers"] = asked.layers
    start = time.perf_counter()
    model = build(config)
    say(
        what="model", model=asked.model, core=mx.__name__, version=getattr(mx, "__version__", ""),
        device=str(mx.default_device()), built_s=time.perf_counter() - start,
        weight_bytes=bytes_of_a_token(model, config),
        copy_gb_s=copy_gb_s() if mx.__name__.startswith("rocmend") else None,
    )  # fmt: skip
    prompt = mx.random.randint(0, 1000, (asked.prompt,))
    mx.eval(prompt)
    for depth in (int(one) for one in asked.depths.split(",")):
        cache = filled(model, depth)
        for rep in range(asked.reps):
            prompt_rate, rate = run(model, prompt, cache, asked.generate)
            caches.trim_prompt_cache(cache, cache[0].offset - depth)
            say(
                what="speed", depth=depth, rep=rep, prompt=asked.prompt, generate=asked.generate,
                prompt_tok_s=prompt_rate, generate_tok_s=rate,
                cache_bytes=bytes_of_the_cache(config, depth + asked.prompt + asked.generate // 2),
                peak_gb=mx.get_peak_memory() / 1e9,
            )  # fmt: skip
    say(what="steps", **steps(model, 200))


if __name__ == "__main__":
    main()
