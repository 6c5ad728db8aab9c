"""Heads into the cache: what is written and what is left alone, and what does not fit."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.core.errors import UsageError
from rocmend.kernels import heads_into_cache
from rocmend.kernels.select import prefer

pytestmark = [pytest.mark.cpu]


def _operands(tokens: int = 1) -> list[Any]:
    generator = torch.Generator().manual_seed(3)
    shapes = [(1, 4, tokens, 16), (1, 2, tokens, 16), (1, 2, tokens, 16), (1, 2, 8, 16), (1, 2, 8, 16)]
    return [torch.randn(shape, generator=generator) for shape in shapes]


@pytest.mark.parametrize("tier", ["triton", "reference"])
@pytest.mark.parametrize("in_memory", [False, True])
def test_writes_its_places_of_the_caches_and_no_others(tier: str, in_memory: bool) -> None:
    queries, keys, values, key_cache, value_cache = _operands(2)
    before = key_cache.clone(), value_cache.clone()
    offset = torch.tensor([5], dtype=torch.int32) if in_memory else 5
    with prefer(tier):
        out, first, second = heads_into_cache(queries, keys, values, key_cache, value_cache, 16, offset=offset)
    assert first is key_cache
    assert second is value_cache
    assert out.shape == queries.shape
    assert torch.equal(value_cache[:, :, 5:7], values)
    # A rotation leaves the length of a head as it is.
    torch.testing.assert_close(key_cache[:, :, 5:7].norm(dim=-1), keys.norm(dim=-1))
    assert not torch.equal(key_cache[:, :, 5:7], keys)
    for cache, old in zip((key_cache, value_cache), before, strict=True):
        assert torch.equal(cache[:, :, :5], old[:, :, :5])
        assert torch.equal(cache[:, :, 7:], old[:, :, 7:])


def test_says_what_does_not_fit() -> None:
    given = _operands()
    with pytest.raises(UsageError, match="offset from 0 to 7, got 8"):
        heads_into_cache(*given, 16, offset=8)
    with pytest.raises(UsageError, match="even dims"):
        heads_into_cache(*given, 18, offset=0)
    with pytest.raises(UsageError, match="one of base and freqs"):
        heads_into_cache(*given, 16, offset=0, base=None)
    with pytest.raises(UsageError, match="query_weight of shape"):
        heads_into_cache(*given, 16, offset=0, query_weight=torch.ones(8))
    with pytest.raises(UsageError, match="one type"):
        heads_into_cache(given[0].half(), *given[1:], 16, offset=0)
    with pytest.raises(UsageError, match="value_cache of shape"):
        heads_into_cache(*given[:4], given[4][:, :1], 16, offset=0)
    with pytest.raises(UsageError, match="without a gradient"):
        heads_into_cache(given[0].requires_grad_(), *given[1:], 16, offset=0)
