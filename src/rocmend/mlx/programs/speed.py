"""Time one model, with whatever ``mlx.core`` this Python imports; prints a JSON line for each figure.

    python -m rocmend.mlx src/rocmend/mlx/programs/speed.py --shape llama-3.1-8b --depths 0,8192
    python src/rocmend/mlx/programs/speed.py --shape llama-3.1-8b --depths 0,8192
    python -m rocmend.mlx src/rocmend/mlx/programs/speed.py --model FOLDER

``benchmarks/mlx/speed.py`` runs it in a child process, ``rocmend bench mlx`` measures with its parts. It imports
nothing of rocmend unless ``mlx.core`` is rocmend's, so that another Python's MLX can be timed with the same code. The
weights of a shape are random, 4 bits in groups of 64, computed on in bfloat16. A prompt and a generation of random
tokens go through ``mlx_lm.generate.generate_step``, behind ``depth`` tokens that are in the cache already.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
import time
from importlib import metadata
from pathlib import Path
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
    "tiny": _QWEN | {  # to try the program
        "model_type": "qwen3", "hidden_size": 128, "num_hidden_layers": 2, "intermediate_size": 256,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1024,
        "tie_word_embeddings": True,
    },
}  # fmt: skip


# what configurations call the number of experts that a token goes through
_CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk", "top_k_experts")


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


def load(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a model of a folder or of the hub, its weights in memory, and its configuration."""
    from mlx_lm import utils

    folder = Path(name)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(name, allow_patterns=["*.json", "model*.safetensors", "*.py"]))
    model, config = utils.load_model(folder)
    return model, config | (config.get("text_config") or {})


def bytes_of_a_token(model: Any, config: dict[str, Any]) -> int | None:
    """Return the bytes of weights that one token needs: of experts the chosen part, of the embedding one row.

    None where there are experts and the configuration does not say how many of them a token needs.
    """
    total = 0.0
    parameters = mlx.utils.tree_flatten(model.parameters())
    headed = any("lm_head" in name for name, _ in parameters)  # otherwise the embedding is read whole, as the head
    chosen = next((config[key] for key in _CHOSEN if config.get(key)), None)
    for name, value in parameters:
        part = 1.0
        if "switch_mlp" in name or ".switch_glu." in name:
            if chosen is None:
                return None
            part = chosen / value.shape[0]
        elif headed and any(one in name for one in ("embed_tokens", "wte.", "tok_embeddings", "word_embeddings")):
            part = 1 / value.shape[0]
        total += value.nbytes * part
    return round(total)


def bytes_of_the_cache(cache: Any) -> int:
    """Return the bytes that a cache holds, without the room for more that buffers ``[B, H, room, D]`` have."""
    total = 0
    for one in cache:
        if hasattr(one, "caches"):
            total += bytes_of_the_cache(one.caches)
            continue
        length = getattr(one, "offset", None)
        for _, value in mlx.utils.tree_flatten(one.state):
            if isinstance(value, mx.array):  # offsets stand there too
                roomy = isinstance(length, int) and value.ndim == 4 and value.shape[2] > length
                total += value.nbytes * length // value.shape[2] if roomy else value.nbytes
    return total


def run(model: Any, prompt: Any, cache: Any, generate: int) -> tuple[float, float, bool]:
    """Return tokens a second of the prompt and of generation, and whether the last logarithms are all finite."""
    start = time.perf_counter()
    first, count = 0.0, 0
    last = None
    for token, logarithms in generating.generate_step(prompt, model, max_tokens=generate, prompt_cache=cache):
        int(token)
        last = logarithms
        count += 1
        if count == 1:
            first = time.perf_counter()
    end = time.perf_counter()
    # one token may have no weight at all, but none has a weight that is no number
    finite = last is not None and not bool(mx.any(mx.isnan(last)).item())
    return prompt.size / (first - start), (count - 1) / (end - first), finite


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
    best = float("inf")
    if "gpu" in str(mx.default_device()):
        source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
        target = torch.empty_like(source)
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        for _ in range(10):
            events[0].record()
            target.copy_(source)
            events[1].record()
            torch.cuda.synchronize()
            best = min(best, events[0].elapsed_time(events[1]) / 1e3)
    else:
        source = torch.zeros(1 << 28, dtype=torch.uint8)
        target = torch.ones_like(source)
        for _ in range(5):
            start = time.perf_counter()
            target.copy_(source)
            best = min(best, time.perf_counter() - start)
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


def about() -> dict[str, Any]:
    """Return what computes: the device, its target and the versions; of rocmend's ``mlx.core`` alone."""
    import torch

    from rocmend.kernels.target import of_device

    gpu = "gpu" in str(mx.default_device())
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    for package in ("rocmend", "triton", "mlx", "mlx-lm"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if torch.version.hip:
        versions["hip"] = torch.version.hip
    return {
        "name": torch.cuda.get_device_name() if gpu else platform.processor() or platform.machine(),
        "target": of_device(torch.device("cuda" if gpu else "cpu")).name,
        "versions": versions,
    }


def executed() -> dict[str, Any]:
    """Return how rocmend's ``mlx.core`` computed what this thread asked for, and why not faster where it did not."""
    import torch

    from rocmend.mlx import accelerated
    from rocmend.mlx.execute import device_graph, settings
    from rocmend.mlx.execute.planner import planner

    entries = list(planner().entries.values())
    why = ""
    if not settings.captures():
        why = f"the executor is {settings.chosen()}"
    elif not device_graph.can(torch.device("cuda" if "gpu" in str(mx.default_device()) else "cpu")):
        why = "the device has no graphs"
    return {
        "executor": settings.chosen(),
        "accelerated": accelerated.native is not None,
        "why_not_accelerated": accelerated.reason,
        "plans": planner().made,
        "planned_runs": planner().runs,
        "captures": sum(entry.tries for entry in entries if not entry.unfit),
        "replays": sum(entry.replays for entry in entries),
        "why_not_captured": [why] if why else sorted({entry.unfit for entry in entries if entry.unfit}),
    }


def main() -> None:
    """Time the model that is named."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = made.add_mutually_exclusive_group(required=True)
    which.add_argument("--shape", choices=sorted(CONFIGS), help="a built-in shape, random weights")
    which.add_argument("--model", help="a folder, or a model name on the hub")
    made.add_argument("--depths", default="0", help="tokens in the cache, e.g. 0,2048,32768")
    made.add_argument("--prompt", type=int, default=512)
    made.add_argument("--generate", type=int, default=128)
    made.add_argument("--reps", type=int, default=4)
    made.add_argument("--steps", type=int, default=200, help="decode steps whose time on the CPU is taken")
    made.add_argument("--layers", type=int, default=0, help="of a smaller model of the same shape; 0: all")
    asked = made.parse_args()
    ours = mx.__name__.startswith("rocmend")
    start = time.perf_counter()
    if asked.shape:
        config = CONFIGS[asked.shape] | ({"num_hidden_layers": asked.layers} if asked.layers else {})
        model = build(config)
    else:
        model, config = load(asked.model)
    say(
        what="model", model=asked.shape or asked.model, core=mx.__name__, version=getattr(mx, "__version__", ""),
        device=str(mx.default_device()), built_s=time.perf_counter() - start,
        weight_bytes=bytes_of_a_token(model, config), copy_gb_s=copy_gb_s() if ours else None,
        about=about() if ours else {},
    )  # fmt: skip
    prompt = mx.random.randint(0, 1000, (asked.prompt,))
    mx.eval(prompt)
    for depth in (int(one) for one in asked.depths.split(",")):
        cache = filled(model, depth)
        before = bytes_of_the_cache(cache) if depth else 0
        for rep in range(asked.reps):
            prompt_rate, rate, finite = run(model, prompt, cache, asked.generate)
            after = bytes_of_the_cache(cache)
            share = asked.generate / 2 / (asked.prompt + asked.generate)  # in the middle of the generation
            say(
                what="speed", depth=depth, rep=rep, prompt=asked.prompt, generate=asked.generate,
                prompt_tok_s=prompt_rate, generate_tok_s=rate, finite=finite,
                cache_bytes=round(after - (after - before) * share), peak_gb=mx.get_peak_memory() / 1e9,
            )  # fmt: skip
            if caches.can_trim_prompt_cache(cache) and isinstance(getattr(cache[0], "offset", None), int):
                caches.trim_prompt_cache(cache, cache[0].offset - depth)
            elif rep + 1 < asked.reps:
                cache = filled(model, depth)
    say(what="steps", **steps(model, asked.steps))
    if ours:
        say(what="executed", **executed())


if __name__ == "__main__":
    main()
