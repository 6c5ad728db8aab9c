"""How many kernels a layer launches for one token, on GPUs that are not there: launches are recorded only."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from rocmend.mlx import activate

activate()
pytest.importorskip("mlx_lm")
caches: Any = pytest.importorskip("mlx_lm.models.cache")

from rocmend.kernels import executor
from rocmend.kernels.executor import Recorder
from rocmend.kernels.target import by_name
from rocmend.mlx import core, kernel_use, programs
from rocmend.mlx.execute import settings
from rocmend.mlx.execute.planner import planner

mx: Any = core
pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore")]
LAYERS = 2


@pytest.fixture(scope="module")
def program() -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("speed_program", Path(programs.__path__[0]) / "speed.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def launches(model: Any, target: str, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return the kernels of one token by name, once its step is planned."""
    monkeypatch.setenv("ROCMEND_MLX_FUSE", "1")
    for asks in ("fits", "on_gpu"):
        monkeypatch.setattr(kernel_use, asks, lambda _: True)
    planner().forget()
    cache, recorder = caches.make_prompt_cache(model), Recorder(by_name(target))
    with settings.use("plan"), executor.using(recorder):
        for _ in range(4):
            recorder.launches.clear()
            mx.eval(model(mx.array([[5]]), cache=cache)[:, -1, :])
    planner().forget()
    return Counter(launch.kernel.__name__ for launch in recorder.launches)


@pytest.mark.parametrize("target", ["gfx1151", "gfx1201", "gfx942", "gfx906"])
def test_a_dense_layer_of_4_bits_is_six_launches(program: Any, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Norm and query, key, value; heads; attention; its product; norm and gate, up; the last product."""
    model = program.build(program.CONFIGS["tiny"] | {"num_hidden_layers": LAYERS, "vocab_size": 128})
    found = launches(model, target, monkeypatch)
    # Before the layers a row of the embedding is dequantized; the last norm is part of the logits' product.
    assert found == {"gemv_kernel": 4 * LAYERS + 1, "heads_kernel": LAYERS, "split_kernel": LAYERS, "chunks_kernel": 1}


def test_a_mixture_s_router_takes_its_norm_along(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    config = program.CONFIGS["qwen3-30b-a3b"] | {
        "hidden_size": 128, "num_hidden_layers": LAYERS, "intermediate_size": 128, "moe_intermediate_size": 64,
        "num_experts": 8, "num_experts_per_tok": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 32, "vocab_size": 128,
    }  # fmt: skip
    found = launches(program.build(config), "gfx1151", monkeypatch)
    assert not any("held" in name for name in found)
    assert sum(found.values()) == 9 * LAYERS + 2
