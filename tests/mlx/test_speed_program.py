"""What ``rocmend bench mlx`` measures with: what it counts as read, and a model of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from rocmend.mlx import activate

activate()
pytest.importorskip("mlx_lm")
import mlx.utils

from rocmend.mlx import core
from rocmend.mlx.programs import speed

mx: Any = core
pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore")]
TINY = speed.CONFIGS["tiny"]
EXPERTS = TINY | {
    "model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "decoder_sparse_step": 1,
    "mlp_only_layers": [], "moe_intermediate_size": 64, "norm_topk_prob": True,
}  # fmt: skip


def sizes(model: Any) -> dict[str, int]:
    return {name: value.nbytes for name, value in mlx.utils.tree_flatten(model.parameters())}


def test_a_token_reads_a_tied_embedding_whole_and_one_row_of_another() -> None:
    tied = speed.build(TINY)
    assert speed.bytes_of_a_token(tied, TINY) == sum(sizes(tied).values())
    config = TINY | {"tie_word_embeddings": False}
    model = speed.build(config)
    found = sizes(model)
    embedding = sum(size for name, size in found.items() if "embed_tokens" in name)
    assert embedding > 0
    assert speed.bytes_of_a_token(model, config) == round(sum(found.values()) - embedding * (1 - 1 / 1024))


def test_a_token_reads_the_experts_that_it_goes_through() -> None:
    model = speed.build(EXPERTS)
    found = sizes(model)
    experts = sum(size for name, size in found.items() if "switch_mlp" in name)
    assert experts > 0
    assert speed.bytes_of_a_token(model, EXPERTS) == sum(found.values()) - experts * 3 // 4
    unknown = {name: value for name, value in EXPERTS.items() if name != "num_experts_per_tok"}
    assert speed.bytes_of_a_token(model, unknown) is None


def test_a_cache_counts_by_what_it_holds() -> None:
    model = speed.build(TINY)
    cache = speed.filled(model, 24)
    of_a_token = 2 * 2 * TINY["num_key_value_heads"] * TINY["head_dim"] * TINY["num_hidden_layers"]
    assert speed.bytes_of_the_cache(cache) == 24 * of_a_token
    prompt, rate, finite = speed.run(model, mx.array([1, 2, 3]), cache, 4)
    assert prompt > 0
    assert rate > 0
    assert finite
    assert speed.bytes_of_the_cache(cache) in {(24 + 3 + 3) * of_a_token, (24 + 3 + 4) * of_a_token}


def test_what_is_no_number_is_found() -> None:
    model = speed.build(TINY)
    model.model.norm.weight = model.model.norm.weight * float("nan")
    assert not speed.run(model, mx.array([1, 2, 3]), speed.filled(model, 0), 2)[2]


def test_a_model_of_a_folder_is_the_one_that_was_saved(tmp_path: Path) -> None:
    model = speed.build(TINY)
    mx.save_safetensors(str(tmp_path / "model.safetensors"), dict(mlx.utils.tree_flatten(model.parameters())))
    config = TINY | {"quantization": {"group_size": 64, "bits": 4}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    loaded, found = speed.load(str(tmp_path))
    assert found["hidden_size"] == TINY["hidden_size"]
    assert sizes(loaded) == sizes(model)
    tokens = mx.array([[1, 5, 9]])
    assert mx.array_equal(loaded(tokens), model(tokens)).item()
