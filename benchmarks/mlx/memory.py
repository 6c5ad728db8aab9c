r"""How much memory building, loading, quantizing and converting a model takes, through mlx_lm's own functions.

    python benchmarks/mlx/memory.py --weights-gb 0.6 [--oracle PYTHON]
    systemd-run --user --scope -p MemoryMax=16G -p MemorySwapMax=0 \
        python benchmarks/mlx/memory.py --weights-gb 12 --limit-gb 16

A Llama with random weights in bfloat16 is written to a folder. Each stage is a fresh process, whose memory is read from
``/proc`` while it runs; what it takes above what it had after its imports is its peak. Pages of mapped files are told
apart: the kernel takes them back whenever it needs room. ``later`` quantizes weights that were computed before, in
bfloat16. ``--oracle`` names a Python with the real ``mlx``, which runs the same stages. Exit code 1: a stage failed or
was stopped at the limit, or took more than ``--most`` times what it ideally needs (with ``--oracle``: and more than
that times real MLX's peak).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STAGES = ("build", "later", "load", "quantize", "convert", "cast", "generate")
NEEDS = {
    "build": "quantized", "later": "bfloat16", "load": "bfloat16", "quantize": "quantized", "convert": "quantized",
    "cast": "bfloat16", "generate": "quantized",
}  # fmt: skip
HIDDEN, WIDE, VOCABULARY, KEYS = 1024, 4096, 8192, 512
FULL_FROM_GB = 4.0  # from here on the sizes of Llama-3.1-8B
COLUMNS = (
    ("stage", 9), ("mlx", 9), ("peak MB", 9), ("ideal", 8), ("times", 7), ("of W", 7), ("mapped", 8), ("mx peak", 9),
    ("base", 6), ("s", 8),
)  # fmt: skip
_SIZES = re.compile(r"^(RssAnon|RssFile|RssShmem):\s+(\d+) kB", re.MULTILINE)


# -- the model ---------------------------------------------------------------------------------------------------------


def config_of(weights_gb: float) -> dict[str, Any]:
    """Return the configuration of a Llama whose weights take about so many GB (1e9 bytes) in bfloat16."""
    hidden, wide, vocabulary, keys = HIDDEN, WIDE, VOCABULARY, KEYS
    if weights_gb >= FULL_FROM_GB:
        hidden, wide, vocabulary, keys = 4096, 14336, 128256, 1024
    layer = 2 * hidden * hidden + 2 * hidden * keys + 3 * hidden * wide
    layers = max(1, round((weights_gb * 5e8 - 2 * vocabulary * hidden) / layer))
    return {
        "model_type": "llama", "hidden_size": hidden, "num_hidden_layers": layers, "intermediate_size": wide,
        "num_attention_heads": hidden // 128, "num_key_value_heads": keys // 128, "rms_norm_eps": 1e-5,
        "vocab_size": vocabulary, "rope_theta": 5e5, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    }  # fmt: skip


def shapes_of(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a configuration's weights by name."""
    hidden, wide, words = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    keys = config["num_key_value_heads"] * 128
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (words, hidden)}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        for name, rows in (("q", hidden), ("k", keys), ("v", keys), ("o", hidden)):
            found[f"{at}.self_attn.{name}_proj.weight"] = (rows, hidden)
        found[f"{at}.mlp.gate_proj.weight"] = found[f"{at}.mlp.up_proj.weight"] = (wide, hidden)
        found[f"{at}.mlp.down_proj.weight"] = (hidden, wide)
        found[f"{at}.input_layernorm.weight"] = found[f"{at}.post_attention_layernorm.weight"] = (hidden,)
    found["model.norm.weight"] = (hidden,)
    found["lm_head.weight"] = (words, hidden)
    return found


def elements(shape: tuple[int, ...]) -> int:
    """Return the number of elements of a shape."""
    count = 1
    for size in shape:
        count *= size
    return count


def write_model(folder: Path, config: dict[str, Any], shard_bytes: int) -> None:
    """Write a model with random weights, one tensor after another."""
    import numpy as np

    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    words = {f"w{k}": k for k in range(config["vocab_size"])}
    plain = {"type": "WordLevel", "vocab": words, "unk_token": "w0"}
    split = {"type": "WhitespaceSplit"}
    (folder / "tokenizer.json").write_text(
        json.dumps({"version": "1.0", "added_tokens": [], "pre_tokenizer": split, "model": plain})
    )
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    shards: list[dict[str, tuple[int, ...]]] = [{}]
    room = shard_bytes
    for name, shape in shapes_of(config).items():
        size = 2 * elements(shape)
        if size > room and shards[-1]:
            shards.append({})
            room = shard_bytes
        shards[-1][name] = shape
        room -= size
    random = np.random.default_rng(0)
    for number, shard in enumerate(shards, 1):
        header, at = {}, 0
        for name, shape in shard.items():
            size = 2 * elements(shape)
            header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with (folder / f"model-{number:05d}-of-{len(shards):05d}.safetensors").open("wb") as out:
            out.write(len(text).to_bytes(8, "little") + text)
            for shape in shard.values():
                left = elements(shape)
                while left:
                    some = min(left, 1 << 22)
                    values = (random.random(some, dtype=np.float32) - 0.5) / 16
                    out.write((values.view(np.uint32) >> 16).astype(np.uint16).tobytes())
                    left -= some


# -- a stage, in its own process ---------------------------------------------------------------------------------------


def resident() -> dict[str, int]:
    """Return the resident bytes of this process, by kind."""
    return sizes_of(os.getpid())


def sizes_of(process: int) -> dict[str, int]:
    """Return the resident bytes of a process, by kind; nothing where it is gone."""
    try:
        text = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return {}
    return {name: int(size) << 10 for name, size in _SIZES.findall(text)}


def stage(name: str, folder: Path, target: Path) -> None:
    """Do one stage, and print what it took."""
    import importlib

    import mlx.core
    import mlx.nn
    import mlx_lm
    from mlx_lm import utils
    from transformers import AutoTokenizer

    mx: Any = mlx.core
    config = json.loads((folder / "config.json").read_text())
    module = importlib.import_module("mlx_lm.models.llama")
    AutoTokenizer.from_pretrained(str(folder))  # imports a good deal
    mx.random.seed(0)
    mx.eval(mx.quantize(mx.random.normal((64, 64)).astype(mx.bfloat16)), mx.ones((8, 8)) @ mx.ones((8, 8)))
    print(json.dumps({"base": resident()}), flush=True)
    mx.reset_peak_memory()
    start = time.perf_counter()
    model: Any = None
    if name in ("build", "later"):
        model = module.Model(module.ModelArgs.from_dict(config))
        model.set_dtype(mx.bfloat16)
        if name == "later":
            mx.eval(model.parameters())
        mlx.nn.quantize(model, group_size=64, bits=4)
        mx.eval(model.parameters())
    elif name == "load":
        model, _ = utils.load_model(folder)
    elif name == "quantize":
        model, _ = utils.load_model(folder, lazy=True)
        mlx.nn.quantize(model, group_size=64, bits=4)
        mx.eval(model.parameters())
    elif name == "convert":
        mlx_lm.convert(str(folder), str(target), quantize=True)
    elif name == "cast":
        mlx_lm.convert(str(folder), str(target.with_name("float16")), dtype="float16")
    else:
        model, tokenizer = mlx_lm.load(str(target))
        mlx_lm.generate(model, tokenizer, prompt=" ".join(["w1"] * 64), max_tokens=8)
    print(json.dumps({
        "seconds": round(time.perf_counter() - start, 1), "mlx_peak": mx.get_peak_memory(),
        "mlx_active": mx.get_active_memory(),
    }), flush=True)  # fmt: skip


# -- watching it -------------------------------------------------------------------------------------------------------


def watched(command: list[str], limit: float) -> dict[str, Any]:
    """Run a stage and return what it printed and the most that it took."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore", "TOKENIZERS_PARALLELISM": "false"}
    most = {"held": 0, "mapped": 0}
    stopped = False
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment) as child,
    ):
        while child.poll() is None:
            sizes = sizes_of(child.pid)
            held = sizes.get("RssAnon", 0) + sizes.get("RssShmem", 0)
            most["held"] = max(most["held"], held)
            most["mapped"] = max(most["mapped"], sizes.get("RssFile", 0))
            if held > limit:
                stopped = True
                child.kill()
            time.sleep(0.004)
        out = child.stdout.read() if child.stdout is not None else ""
        errors.seek(0)
        said = errors.read()
    found: dict[str, Any] = {"ok": child.returncode == 0, "stopped": stopped}
    for line in out.splitlines():
        with contextlib.suppress(ValueError):
            found |= json.loads(line)
    base = found.pop("base", {})
    found["peak"] = max(0, most["held"] - base.get("RssAnon", 0) - base.get("RssShmem", 0))
    found["base"] = base.get("RssAnon", 0)
    found["mapped"] = max(0, most["mapped"] - base.get("RssFile", 0))
    if child.returncode and not stopped:
        print(said[-2000:], file=sys.stderr)
    return found


def main() -> int:
    """Run the stages and print a table."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--weights-gb", type=float, default=0.6, help="of the weights in bfloat16, 1e9 bytes")
    made.add_argument("--limit-gb", type=float, default=16.0, help="a process that takes more is stopped")
    made.add_argument("--most", type=float, default=1.15, help="times what is ideally needed")
    made.add_argument("--oracle", help="a Python with the real mlx and mlx_lm")
    made.add_argument("--stages", default=",".join(STAGES))
    made.add_argument("--folder", type=Path, help="where models are written; by default a temporary folder")
    made.add_argument("--json", action="store_true", help="a line of JSON for each stage, in place of the table")
    made.add_argument("--stage", help=argparse.SUPPRESS)
    asked = made.parse_args()
    if asked.stage:
        stage(asked.stage, asked.folder / "bfloat16", asked.folder / "quantized")
        return 0
    with tempfile.TemporaryDirectory(dir=asked.folder) as made_folder:
        return compared(asked, Path(made_folder))


def ideal_of(name: str, config: dict[str, Any]) -> int:
    """Return the bytes that a stage ideally needs: its result, and the largest weight twice in float32."""
    sizes = [elements(shape) for shape in shapes_of(config).values()]
    result = 2 * sum(sizes) if NEEDS[name] == "bfloat16" else round(sum(sizes) * (4 + 2 * 16 / 64) / 8)
    return result + 2 * 4 * max(sizes)


def compared(asked: argparse.Namespace, folder: Path) -> int:
    """Run the stages in a folder and print a line for each."""
    config = config_of(asked.weights_gb)
    total = 2 * sum(elements(shape) for shape in shapes_of(config).values())
    if not asked.json:
        print(f"weights {total / 1e6:.0f} MB in bfloat16, {config['num_hidden_layers']} layers")
        print("".join(f"{title:>{width}}" for title, width in COLUMNS), flush=True)
    pythons = {"rocmend": [sys.executable, "-m", "rocmend.mlx", __file__]}
    if asked.oracle:
        pythons["real"] = [asked.oracle, __file__]
    for which in pythons:
        write_model(folder / which / "bfloat16", config, 5 << 30)
    failed = False
    for name in asked.stages.split(","):
        ideal = ideal_of(name, config)
        peaks = {}
        for which, python in pythons.items():
            found = watched([*python, "--stage", name, "--folder", str(folder / which)], asked.limit_gb * 1e9)
            found |= {"stage": name, "mlx": which, "weights": total, "ideal": ideal}
            print(json.dumps(found) if asked.json else line_of(found), flush=True)
            peaks[which] = found["peak"]
            failed |= which == "rocmend" and not found["ok"]
        failed |= peaks["rocmend"] > asked.most * max(ideal, peaks.get("real", 0))
    return 1 if failed else 0


def line_of(found: dict[str, Any]) -> str:
    """Return a line of the table."""
    mb = {key: round(found.get(key, 0) / 1e6) for key in ("peak", "ideal", "mapped", "mlx_peak", "base")}
    shares = [f"{found['peak'] / found[key]:.2f}" for key in ("ideal", "weights")]
    cells = [found["stage"], found["mlx"], mb["peak"], mb["ideal"], *shares, mb["mapped"], mb["mlx_peak"], mb["base"]]
    cells.append(found.get("seconds", ""))
    verdict = "" if found["ok"] else "  STOPPED AT THE LIMIT" if found["stopped"] else "  FAILED"
    return "".join(f"{cell:>{width}}" for cell, (_, width) in zip(cells, COLUMNS, strict=True)) + verdict


if __name__ == "__main__":
    sys.exit(main())
