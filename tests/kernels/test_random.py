"""Random numbers and dropout against values of MLX, bit by bit where MLX's own derivation is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import rocmend.kernels as rk
from rocmend.core.errors import UsageError
from rocmend.kernels import select
from rocmend.kernels.ops.memory.dropout.reference import philox

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "order.json").read_text(encoding="utf-8"))[
    "random"
]
TYPES = ("float32", "float16", "bfloat16")
TIERS = ("triton", "reference")
SEED = 12345678901234


def words(x: Any) -> list[Any]:
    """Return unsigned bits."""
    kind, mask = (torch.int32, 0xFFFFFFFF) if x.element_size() == 4 else (torch.int16, 0xFFFF)
    found: list[Any] = (x.view(kind).to(torch.int64) & mask).tolist()
    return found


@pytest.mark.parametrize("tier", TIERS)
def test_bits_are_those_of_mlx(tier: str) -> None:
    key = rk.random_key(SEED)
    assert words(key) == GOLDEN["key"]
    with select.prefer(tier):
        for count in (1, 2, 3, 5):
            assert words(rk.random_split(key, count)) == GOLDEN[f"split-{count}"]
        assert rk.bernoulli(key, (21,), 0.4).tolist() == GOLDEN["bernoulli"]
        # A stream of bytes is the stream of words, cut at the end.
        whole = rk.random_bits(key, (3,)).view(torch.uint8)
        assert rk.random_bits(key, (9,), width=1).tolist() == whole[:9].tolist()


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", TYPES)
def test_numbers_are_those_of_mlx(name: str, tier: str) -> None:
    key, dtype = rk.random_key(SEED), getattr(torch, name)
    with select.prefer(tier):
        for size in (1, 2, 7, 8):
            assert words(rk.uniform(key, (size,), -3.0, 7.0, dtype=dtype)) == GOLDEN[f"uniform-{name}-{size}"]
        # MLX's own logarithm and erfinv differ from these in the last places of the type.
        near = {"float32": 4e-6, "float16": 4e-3, "bfloat16": 3e-2}[name]
        normal = rk.normal(key, (9,), 1.5, 2.0, dtype=dtype).double()
        assert (normal - torch.tensor(GOLDEN[f"normal-{name}"]).double()).abs().max() < near
        gumbel = rk.gumbel(key, (9,), dtype=dtype).double()
        assert (gumbel - torch.tensor(GOLDEN[f"gumbel-{name}"]).double()).abs().max() < near


def test_categorical_is_that_of_mlx() -> None:
    with select.prefer("reference"):
        assert rk.categorical(rk.random_key(SEED), torch.zeros(4, 10)).tolist() == GOLDEN["categorical"]


def test_dropout_draws_the_mask_of_mlx_and_draws_it_again() -> None:
    key = rk.random_key(SEED)
    x = torch.ones(21, requires_grad=True)
    with select.prefer("triton"):
        out = rk.dropout_mlx(x, 0.6, key)
        out.sum().backward()
    assert (out != 0).tolist() == GOLDEN["bernoulli"]
    assert x.grad is not None
    assert torch.equal(x.grad, out.detach())
    assert out.max().item() == pytest.approx(2.5)


def test_philox_is_the_published_one() -> None:
    """Known answers of the authors' own test: https://github.com/DEShawResearch/random123 (kat_vectors)."""
    found = philox(0, torch.zeros(1, dtype=torch.int64))
    assert [f"{int(word):08x}" for word in found[0]] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


def test_dropout_by_philox() -> None:
    x = torch.randn(1001, requires_grad=True)
    state = torch.tensor([7, 3], dtype=torch.int64)
    with select.prefer("triton"):
        out = rk.dropout_philox(x, 0.25, state)
        out.backward(torch.ones_like(out))
        later = rk.dropout_philox(x, 0.25, torch.tensor([7, 4], dtype=torch.int64))
    assert x.grad is not None
    assert torch.equal(x.grad != 0, out != 0)
    assert 0.2 < (out == 0).double().mean() < 0.3
    # The offset counts four elements.
    assert torch.equal((out != 0)[4:], (later != 0)[:-4])
    assert rk.dropout_philox(x, 0.0, state) is x


@pytest.mark.parametrize(
    "call",
    [
        lambda key: rk.random_bits(key, (3,), width=8),
        lambda key: rk.random_bits(key.to(torch.int64), (3,)),
        lambda key: rk.random_bits(key, (-1,)),
        lambda key: rk.uniform(key, (3,), dtype=torch.float64),
        lambda key: rk.dropout_mlx(torch.ones(3), 1.0, key),
        lambda key: rk.dropout_mlx(torch.ones(3), 0.5, key.expand(2, 2)),
        lambda key: rk.dropout_philox(torch.ones(3), 0.5, key),
        lambda key: rk.dropout_mlx(torch.ones(3).double(), 0.5, key),
    ],
)
def test_what_does_not_fit_is_said(call: Any) -> None:
    with pytest.raises(UsageError, match="expected"):
        call(rk.random_key(0))
