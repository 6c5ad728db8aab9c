"""What a model takes, by its configuration, and whether that fits."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.mlx.test_cli import _model

from rocmend.cli import mlx as shared
from rocmend.cli.main import main
from rocmend.cli.mlx_memory import Room, Wish, apu_room, check_fits, wish_of
from rocmend.core.errors import UsageError
from rocmend.core.records import Fact
from rocmend.machine.facts import Machine
from rocmend.mlx.footprint import CACHE_STEP, footprint_of

GIB = 1 << 30
LLAMA: dict[str, Any] = {
    "hidden_size": 4096, "num_hidden_layers": 32, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 128256,
}  # fmt: skip


def test_a_cache_is_counted_by_layers_heads_and_type() -> None:
    model = footprint_of(LLAMA, 5 * GIB)
    assert model.cache(4096) == 4096 * 32 * 2 * 8 * 128 * 2
    assert model.cache(1) == model.cache(CACHE_STEP) == CACHE_STEP * 32 * 2 * 8 * 128 * 2
    assert footprint_of(LLAMA | {"torch_dtype": "float32"}, 0).cache(256) == 2 * model.cache(256)
    assert footprint_of(LLAMA, 0, kv_bits=8).cache(256) == model.cache(256) * (1 + 4 / 64) / 2
    assert footprint_of({"text_config": LLAMA}, 5 * GIB) == model
    latent = footprint_of(LLAMA | {"kv_lora_rank": 512, "qk_rope_head_dim": 64}, 0)
    assert latent.cache(256) == 256 * 32 * 576 * 2
    kinds = ["full_attention", "sliding_attention", "linear_attention", "sliding_attention"] * 8
    mixed = footprint_of(LLAMA | {"layer_types": kinds, "sliding_window": 512}, 0)
    assert mixed.cache(4096) == (8 * 4096 + 16 * 512) * 2 * 8 * 128 * 2
    assert footprint_of(LLAMA | {"layer_types": kinds}, 0).cache(256) == 24 * 256 * 2 * 8 * 128 * 2


def test_a_configuration_that_does_not_tell_gives_no_cache() -> None:
    for config in ({}, {"hidden_size": "4096", "num_hidden_layers": -1}, {**LLAMA, "num_attention_heads": None}):
        model = footprint_of(config, GIB)
        assert model.token is None
        assert model.needed(1 << 20, 2048) == GIB + GIB // 2


def test_the_longest_context_is_the_last_that_fits() -> None:
    model = footprint_of(LLAMA, 5 * GIB)
    longest = model.longest(8 * GIB, 2048)
    assert 0 < longest < 1 << 20
    assert model.needed(longest, 2048) <= 8 * GIB < model.needed(longest + 1, 2048)
    assert model.longest(5 * GIB, 2048) == 0


def test_what_is_asked_for_is_read_from_mlx_lm_s_options() -> None:
    assert wish_of("server", []) == Wish(4096, 2048, 0, 64, 0)
    assert wish_of("chat", ["--max-kv-size", "9000", "--kv-bits=8"], limit=5) == Wish(9000, 2048, 8, 64, 5)
    assert wish_of("generate", ["--prompt", "x" * 300, "-m", "50"]).context == 150
    assert wish_of("generate", ["--max-tokens=7", "--prefill-step-size", "512"]) == Wish(7, 512, 0, 64, 0)
    assert wish_of("generate", ["--max-kv-size", "nine"], context=3).context == 3
    assert wish_of("generate", ["--prompt"]).context == 100


def test_what_does_not_fit_is_told_in_numbers() -> None:
    model, room = footprint_of(LLAMA, 5 * GIB), Room(8 * GIB, "the GPU")
    told = check_fits("m", model, Wish(4096), room)
    assert told.startswith("weights 5 GiB, cache for 4,096 tokens 512 MiB, activations ")
    assert f" of 8 GiB; up to {model.longest(8 * GIB, 2048):,} tokens fit" in told
    with pytest.raises(UsageError, match=r"cache for 40,000 tokens 4\.91 GiB.*8 GiB of the memory of the GPU") as error:
        check_fits("m", model, Wish(40_000), room)
    assert f"at most {model.longest(8 * GIB, 2048):,} tokens" in str(error.value.next_step)
    with pytest.raises(UsageError, match=r"\[--memory-limit\] m needs .* and the limit is 5\.1 GiB") as error:
        check_fits("m", model, Wish(4096, limit=int(5.1 * GIB)), room)
    assert "Raise the limit" in str(error.value.next_step)
    with pytest.raises(UsageError, match="are free"):  # a limit above what there is promises nothing
        check_fits("m", model, Wish(40_000, limit=90 * GIB), room)


def _apu(vram: int, gtt: int) -> Machine:
    values = {"gpu.0.is_apu": False, "gpu.1.is_apu": True, "gpu.1.vram_total_bytes": vram, "gpu.1.gtt_total_bytes": gtt}
    facts = {key: Fact(key, value, "test") for key, value in values.items()}
    return Machine("test", "2026-11-29T00:00:00+00:00", facts, {}, ())


def test_the_memory_of_an_apu_is_its_carve_out_or_the_machine_s() -> None:
    carved = apu_room(_apu(96 * GIB, 15 * GIB), 95 * GIB, 96 * GIB, 20 * GIB)
    assert carved.size == 95 * GIB  # what the machine has free does not limit it
    assert "the firmware set aside (96 GiB)" in carved.where
    shared_ = apu_room(_apu(GIB // 2, 60 * GIB), 59 * GIB, 60 * GIB, 20 * GIB)
    assert shared_.size == 20 * GIB
    assert "GTT, up to 60 GiB" in shared_.where
    unknown = Machine("test", "2026-11-29T00:00:00+00:00", {}, {}, ())
    assert apu_room(unknown, 59 * GIB, 60 * GIB, 20 * GIB) == Room(20 * GIB, "the GPU, which shares the machine's")


def test_the_limit_reaches_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = _model(tmp_path / "m")
    (folder / "config.json").write_text(json.dumps(LLAMA))
    (folder / "tokenizer.json").write_text("{}")
    started: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda _, command: started.append(command))
    monkeypatch.setattr(shared, "need", lambda *_: None)
    monkeypatch.setattr(shared, "free_room", lambda _: Room(64 * GIB, "the machine"))
    command = ["mlx", "serve", "--model", str(folder), "--device", "cpu", "--memory-limit"]
    for limit in ("4GiB", "1GB"):
        with pytest.raises(SystemExit) as left:
            main([*command, limit, "--context", "5000", "--port", "80"])
        assert left.value.code == (0 if limit == "4GiB" else 2)
    assert [sys.executable, "-P", "-m", "rocmend.mlx", "--device", "cpu", "-m", "rocmend.mlx.programs.lm",
            f"--memory-limit={4 * GIB}", "server", "--model", str(folder), "--port", "80"] == started[0]  # fmt: skip
    assert len(started) == 1
    told = capfd.readouterr().err
    assert "cache for 5,000 tokens" in told
    assert "[--memory-limit]" in told
