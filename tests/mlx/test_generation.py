"""What small models of mlx_lm's own classes generate, against results recorded with real MLX on a CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

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
