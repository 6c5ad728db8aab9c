"""Small models of mlx_lm's own classes with random weights, and what they generate. Runs on any ``mlx.core``.

    python -m rocmend.mlx benchmarks/mlx/small_models.py [CASE]...     # prints the results as JSON
    python benchmarks/mlx/small_models.py [CASE]...                    # the same on the mlx that is installed

The shapes are those of the real configurations, shrunk; what makes a family special (grouped heads, sliding windows,
experts, latent attention, recurrent layers) is kept. Weights depend on their names and shapes only.
"""

from __future__ import annotations

import importlib
import json
import sys
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import mlx.core
import mlx.nn
import mlx.optimizers
import mlx.utils
import numpy as np
from mlx_lm.models import cache as caches
from mlx_lm.tuner.utils import linear_to_lora_layers

mx: Any = mlx.core
generating: Any = importlib.import_module("mlx_lm.generate")  # the package has a function of that name
nn: Any = mlx.nn
optim: Any = mlx.optimizers

VOCABULARY = 320
PROMPT = [(7 * i * i + 3 * i + 11) % VOCABULARY for i in range(19)]
_COMMON = {"vocab_size": VOCABULARY, "rms_norm_eps": 1e-6, "max_position_embeddings": 4096}
_DENSE = _COMMON | {
    "hidden_size": 128, "num_hidden_layers": 3, "intermediate_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": _DENSE | {
        "model_type": "llama", "rope_theta": 500000.0, "tie_word_embeddings": False, "head_dim": 32,
        "rope_scaling": {
            "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    },
    "qwen3": _DENSE | {"model_type": "qwen3", "head_dim": 64, "rope_theta": 1e6, "tie_word_embeddings": True},
    "qwen3_moe": _DENSE | {
        "model_type": "qwen3_moe", "head_dim": 64, "rope_theta": 1e6, "tie_word_embeddings": False, "num_experts": 8,
        "num_experts_per_tok": 2, "decoder_sparse_step": 1, "mlp_only_layers": [], "moe_intermediate_size": 64,
        "norm_topk_prob": True,
    },
    "gemma2": _DENSE | {"model_type": "gemma2", "head_dim": 64, "query_pre_attn_scalar": 64.0},
    "gemma3": _DENSE | {
        "model_type": "gemma3_text", "head_dim": 256, "num_key_value_heads": 1, "query_pre_attn_scalar": 256,
        "sliding_window": 16, "sliding_window_pattern": 2, "num_hidden_layers": 4,
    },
    "mistral": _DENSE | {
        "model_type": "mistral", "head_dim": 32, "rope_theta": 1e6, "tie_word_embeddings": False,
    },
    "phi3": _DENSE | {"model_type": "phi3", "num_key_value_heads": 4, "original_max_position_embeddings": 4096},
    "mamba2": {
        "model_type": "mamba2", "num_heads": 8, "head_dim": 32, "vocab_size": VOCABULARY, "hidden_size": 128,
        "intermediate_size": 256, "state_size": 16, "num_hidden_layers": 3, "layer_norm_epsilon": 1e-5,
        "conv_kernel": 4, "n_groups": 2, "use_bias": False, "use_conv_bias": True, "tie_word_embeddings": True,
        "time_step_limit": [0.0, 1e6], "time_step_rank": 8,
    },
    "qwen3_next": _DENSE | {
        "model_type": "qwen3_next", "num_hidden_layers": 4, "linear_num_value_heads": 4, "linear_num_key_heads": 2,
        "linear_key_head_dim": 32, "linear_value_head_dim": 32, "linear_conv_kernel_dim": 4, "num_experts": 8,
        "num_experts_per_tok": 2, "decoder_sparse_step": 1, "shared_expert_intermediate_size": 64,
        "mlp_only_layers": [], "moe_intermediate_size": 64, "rope_theta": 1e6, "partial_rotary_factor": 0.25,
        "head_dim": 64, "norm_topk_prob": True, "full_attention_interval": 2,
    },
    "deepseek_v3": _DENSE | {
        "model_type": "deepseek_v3", "num_key_value_heads": 4, "moe_intermediate_size": 64, "n_shared_experts": 1,
        "n_routed_experts": 8, "routed_scaling_factor": 2.5, "kv_lora_rank": 64, "q_lora_rank": 96,
        "qk_rope_head_dim": 32, "v_head_dim": 32, "qk_nope_head_dim": 32, "n_group": 2, "topk_group": 1,
        "num_experts_per_tok": 2, "first_k_dense_replace": 1,
        "rope_scaling": {
            "type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 4096,
        },
    },
    "gpt_oss": _COMMON | {
        "model_type": "gpt_oss", "num_hidden_layers": 4, "num_local_experts": 8, "num_experts_per_tok": 2,
        "hidden_size": 128, "intermediate_size": 128, "head_dim": 32, "num_attention_heads": 4,
        "num_key_value_heads": 2, "sliding_window": 16, "rope_theta": 150000,
        "rope_scaling": {
            "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
            "original_max_position_embeddings": 4096,
        },
    },
}  # fmt: skip
_MODULES = {"mistral": "llama"}  # mlx_lm's own mapping
QUANTIZATIONS = [(bits, group, "affine") for bits in (2, 3, 4, 5, 6, 8) for group in (32, 64)] + [
    (4, 128, "affine"), (4, 32, "mxfp4"), (8, 32, "mxfp8"), (4, 16, "nvfp4"),
]  # fmt: skip


def _weight(name: str, shape: tuple[int, ...], *, tied: bool = False) -> Any:
    """Return weights that depend on name and shape: norms around 1, matrices that keep the size of what they map.

    Embeddings that are the output's weights too (``tied``) are small, as real models begin with: large ones make each
    token follow itself, whatever the layers compute.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if len(shape) < 2:
        center = 1.0 if "norm" in name else 0.0
        return (center + 0.1 * rng.standard_normal(shape)).astype(np.float32)
    wide = (0.02 if tied else 1.0) if "embed" in name else shape[-1] ** -0.5
    return (wide * 1.2 * rng.standard_normal(shape)).astype(np.float32)


def build(family: str, dtype: Any = None) -> Any:
    """Return a model of a family with its weights."""
    config = CONFIGS[family]
    kind = config["model_type"]
    module = importlib.import_module(f"mlx_lm.models.{_MODULES.get(kind, kind)}")
    model = module.Model(module.ModelArgs.from_dict(config))
    parameters = mlx.utils.tree_flatten(model.parameters())
    tied = not any("lm_head" in name for name, _ in parameters)
    weights = [
        (name, mx.array(_weight(name, tuple(x.shape), tied=tied), dtype=dtype or mx.float32)) for name, x in parameters
    ]
    model.load_weights(weights)
    model.eval()
    mx.eval(model.parameters())
    return model


def _tokens(steps: Any) -> list[int]:
    return [int(step[0]) for step in steps]


def greedy(family: str) -> list[int]:
    """64 tokens in float32."""
    return _tokens(generating.generate_step(mx.array(PROMPT), build(family), max_tokens=64))


def logits(family: str, bits: int = 0, group: int = 0, mode: str = "affine", *, wide: bool = False) -> list[float]:
    """Logits after the prompt in bfloat16, or of the same weights in float32; quantized where bits are given."""
    model = build(family, mx.bfloat16)
    if bits:
        nn.quantize(model, group_size=group, bits=bits, mode=mode)
    if wide:
        model.set_dtype(mx.float32)
    found: list[float] = model(mx.array(PROMPT)[None])[0, -1].astype(mx.float32).tolist()
    return [round(value, 6) for value in found]


def quantized_tokens(family: str) -> list[int]:
    """24 tokens of float32 activations on 4-bit weights."""
    model = build(family)
    nn.quantize(model, group_size=32, bits=4)
    return _tokens(generating.generate_step(mx.array(PROMPT), model, max_tokens=24))


def prompt_cache(family: str) -> list[int]:
    """A conversation of three turns over one cache, saved to a file and loaded between the last two."""
    import tempfile
    from pathlib import Path

    model = build(family)
    cache = caches.make_prompt_cache(model)
    found = _tokens(generating.generate_step(mx.array(PROMPT), model, max_tokens=12, prompt_cache=cache))
    found += _tokens(generating.generate_step(mx.array([5, 6, 7]), model, max_tokens=12, prompt_cache=cache))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "cache.safetensors")
        caches.save_prompt_cache(path, cache)
        loaded = caches.load_prompt_cache(path)
        found += _tokens(generating.generate_step(mx.array([9]), model, max_tokens=12, prompt_cache=loaded))
    return found


def rotating_cache(family: str) -> list[int]:
    """Tokens with a cache that holds 16 positions."""
    return _tokens(generating.generate_step(mx.array(PROMPT), build(family), max_tokens=48, max_kv_size=16))


def quantized_cache(family: str) -> list[int]:
    """Tokens with keys and values kept in 8 bits."""
    steps = generating.generate_step(mx.array(PROMPT), build(family), max_tokens=32, kv_bits=8, kv_group_size=32)
    return _tokens(steps)


def in_pieces(family: str) -> list[int]:
    """Tokens after a prompt that was processed four tokens at a time."""
    steps = generating.generate_step(mx.array(PROMPT), build(family), max_tokens=24, prefill_step_size=4)
    return _tokens(steps)


def batch(family: str) -> list[list[int]]:
    """Tokens of four prompts of different lengths, three at a time."""
    generator = generating.BatchGenerator(
        build(family), max_tokens=20, completion_batch_size=3, prefill_batch_size=2, prefill_step_size=8
    )
    uids = generator.insert([PROMPT, PROMPT[:7], PROMPT[3:5], PROMPT[::-1]])
    found: dict[int, list[int]] = {uid: [] for uid in uids}
    while responses := generator.next_generated():
        for response in responses:
            found[response.uid].append(int(response.token))
    return [found[uid] for uid in uids]


def speculative(family: str) -> list[int]:
    """Tokens of a model whose draft model is the same one with coarse weights."""
    draft = build(family)
    nn.quantize(draft, group_size=32, bits=3)
    steps = generating.speculative_generate_step(
        mx.array(PROMPT), build(family), draft, num_draft_tokens=3, max_tokens=48
    )
    return _tokens(steps)


def lora(family: str, rate: float = 1e-5) -> list[float]:
    """Losses of 20 steps of fine-tuning adapters on a quantized model, with rank, scale and optimizer as mlx_lm's.

    The default rate is mlx_lm's too; a hundred times that is more than these models stand: real MLX's own losses then
    part by tenths when one weight changes by its last bit.
    """
    model = build(family)
    nn.quantize(model, group_size=32, bits=4)
    model.freeze()
    linear_to_lora_layers(model, 2, {"rank": 8, "scale": 20.0, "dropout": 0.0})
    adapters = [
        (name, mx.array(_weight(name, tuple(x.shape)) * (0.0 if name.endswith("lora_b") else 1.0)))
        for name, x in mlx.utils.tree_flatten(model.trainable_parameters())
    ]
    model.load_weights(adapters, strict=False)
    model.train()
    optimizer = optim.Adam(learning_rate=rate)
    batches = [mx.array([[(i * (j + 3) + k) % VOCABULARY for i in range(17)] for k in range(2)]) for j in range(4)]

    def loss(model: Any, tokens: Any) -> Any:
        return nn.losses.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:], reduction="mean")

    step = nn.value_and_grad(model, loss)
    found = []
    for at in range(20):
        value, gradients = step(model, batches[at % 4])
        optimizer.update(model, gradients)
        mx.eval(model.parameters(), optimizer.state, value)
        found.append(round(float(value), 6))
    return found


CASES: dict[str, Callable[[], Any]] = {f"greedy/{family}": partial(greedy, family) for family in CONFIGS}
EXPERTS = ("qwen3_moe", "qwen3_next", "deepseek_v3", "gpt_oss")
"""Families whose experts real MLX multiplies on a CPU in float32 or quantized only."""
_LOGITS: dict[str, tuple[Any, ...]] = {f"bfloat16/{family}": (family,) for family in CONFIGS if family not in EXPERTS}
_LOGITS |= {f"quantized/{mode}-{bits}-{group}": ("llama", bits, group, mode) for bits, group, mode in QUANTIZATIONS}
_LOGITS |= {f"quantized/{family}": (family, 4, 32) for family in EXPERTS}
for _name, _case in _LOGITS.items():
    CASES[_name] = partial(logits, *_case)
    CASES[f"wide-{_name}"] = partial(logits, *_case, wide=True)
CASES |= {
    f"{name}/{family}": partial(case, family)
    for name, case, families in (
        ("quantized-tokens", quantized_tokens, ("llama", "qwen3_moe", "gpt_oss")),
        ("prompt-cache", prompt_cache, ("llama", "gemma3", "mamba2", "qwen3_next")),
        ("rotating-cache", rotating_cache, ("llama", "qwen3_moe")),
        ("quantized-cache", quantized_cache, ("llama",)),
        ("in-pieces", in_pieces, ("qwen3", "gpt_oss", "qwen3_next")),
        ("batch", batch, ("llama", "gemma3", "mamba2")),
        ("speculative", speculative, ("llama",)),
        ("lora", lora, ("llama", "qwen3_moe")),
        ("lora-fast", partial(lora, rate=1e-4), ("llama", "qwen3_moe")),
    )
    for family in families
}


def main() -> None:
    """Print the results of the cases asked for, or of all."""
    results: dict[str, Any] = {}
    for name in sys.argv[1:] or CASES:
        try:
            results[name] = CASES[name]()
        except Exception as error:  # noqa: BLE001  told, and the others go on
            results[name] = {"error": f"{type(error).__name__}: {error}"[:400]}
        sys.stderr.write(".")
        sys.stderr.flush()
    sys.stderr.write("\n")
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
