"""What small models of mlx_lm's own classes generate, against results recorded with real MLX on a CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from rocmend.mlx import activate

activate()
pytest.importorskip("mlx_lm")
from benchmarks.mlx import small_models

pytestmark = [pytest.mark.cpu, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded_generation.json").read_text())["results"]


@pytest.mark.parametrize("case", [name for name in RECORDED if not name.startswith(("bfloat16/", "lora"))])
def test_tokens_are_those_of_real_mlx(case: str) -> None:
    assert small_models.CASES[case]() == RECORDED[case]


@pytest.mark.parametrize("case", [name for name in RECORDED if name.startswith("bfloat16/")])
def test_logits_in_bfloat16_are_near_those_of_real_mlx(case: str) -> None:
    expected = RECORDED[case]
    got = small_models.CASES[case]()[: len(expected)]
    # a few steps of bfloat16 at the size of the logits, after all layers
    allowed = 2**-5 * max(map(abs, expected))
    assert max(abs(a - b) for a, b in zip(got, expected, strict=True)) <= allowed


@pytest.mark.parametrize("case", [name for name in RECORDED if name.startswith("lora")])
def test_losses_of_fine_tuning_are_those_of_real_mlx(case: str) -> None:
    """At a rate at which training is stable: at another, the last bit of one weight moves losses by tenths."""
    assert small_models.CASES[case]() == pytest.approx(RECORDED[case], abs=1e-5)


def test_tokens_that_are_compared_say_something() -> None:
    """A model that repeats one token would give it whatever its layers compute."""
    for case, tokens in RECORDED.items():
        if case.startswith("greedy/"):
            assert len(set(tokens)) > 16, case


def _summed_exactly(product: Any) -> Any:
    """Return a product that sums float32 in float64: MKL's own order differs by processor."""

    def made(*given: Any, **named: Any) -> Any:
        tensors = [one for one in given if isinstance(one, torch.Tensor)]
        if any(one.dtype != torch.float32 for one in tensors) or "out" in named:
            return product(*given, **named)
        wide = (one.double() if isinstance(one, torch.Tensor) else one for one in given)
        return product(*wide, **named).float()

    return made


def test_gradients_of_fine_tuning_are_exact_but_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a step's gradients, against those in float64 of the same weights.

    Real MLX 0.32.4's are off by 1.4e-6 of their norm in the mean, at most 1.9e-6. (Its own float64 is no reference:
    exponentials are computed in float32 there.) Ours are off by at most 4e-6 where products are summed exactly, as
    here; with MKL's, by up to 1.3e-5 on one processor.
    """
    for name in ("matmul", "mm", "bmm", "addmm", "baddbmm"):
        monkeypatch.setattr(torch, name, _summed_exactly(getattr(torch, name)))
    import mlx.utils
    import numpy as np
    from mlx_lm.tuner.utils import linear_to_lora_layers

    mx, nn = small_models.mx, small_models.nn

    found: list[dict[str, Any]] = []
    with mx.stream(mx.cpu):
        for dtype in (mx.float32, mx.float64):
            model = small_models.build("llama")
            model.freeze()
            linear_to_lora_layers(model, 2, {"rank": 4, "scale": 1.0, "dropout": 0.0})
            model.load_weights(
                [
                    (name, mx.array(small_models._weight(name, tuple(x.shape))))
                    for name, x in mlx.utils.tree_flatten(model.trainable_parameters())
                ],
                strict=False,
            )
            model.set_dtype(dtype)
            tokens = mx.array([[(3 * i + k) % small_models.VOCABULARY for i in range(17)] for k in range(2)])

            def loss(model: Any, tokens: Any) -> Any:
                return nn.losses.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:], reduction="mean")

            _, gradients = nn.value_and_grad(model, loss)(model, tokens)
            found.append({name: np.array(x, np.float64) for name, x in mlx.utils.tree_flatten(gradients)})
    single, double = found
    off = [np.linalg.norm(single[name] - exact) / np.linalg.norm(exact) for name, exact in double.items()]
    assert len(off) == 28
    assert 1e-9 < max(off) < 1e-5
