"""The order in which a tape is computed: as recorded, or value by value where that needs far less memory."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from rocmend.mlx import core as mlx_core
from rocmend.mlx.execute import order, plan
from rocmend.mlx.execute.planner import planner

mx: Any = mlx_core
pytestmark = pytest.mark.cpu


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, int, int]]:
    """Whether each tape was computed as recorded, its peak as recorded, and as computed."""
    planner().forget()
    monkeypatch.setattr(order, "WORTH_BYTES", 1 << 16)
    seen = []

    def watched(nodes: Any, wanted: Any, roots: Any, kept: Any) -> list[int]:
        found = order.order_of(nodes, wanted, roots, kept)
        recorded = [place for place, needed in enumerate(wanted) if needed]
        before, now = (order.peak_of(nodes, some, frozenset(kept)) for some in (recorded, found))
        seen.append((found == recorded, before, now))
        return found

    monkeypatch.setattr(plan, "order_of", watched)
    return seen


def _quantized(layers: int) -> list[Any]:
    weights = [mx.random.normal((128, 256), key=mx.random.key(seed)) for seed in range(layers)]
    return [mx.quantize(weight, 64, 4) for weight in weights]


def test_weights_are_made_and_quantized_one_after_another(orders: list[tuple[bool, int, int]]) -> None:
    layers = 24
    made = _quantized(layers)
    mx.eval(made)
    as_recorded, before, now = orders[0]
    quantized = sum(part.nbytes for parts in made for part in parts)
    assert not as_recorded
    assert before > layers * 128 * 256 * 4  # all weights at once
    assert now < quantized + 4 * 128 * 256 * 4  # what stays, and what one layer needs
    for seed, parts in enumerate(made):
        alone = mx.quantize(mx.random.normal((128, 256), key=mx.random.key(seed)), 64, 4)
        assert all(mx.array_equal(one, other).item() for one, other in zip(parts, alone, strict=True))


def test_a_step_that_is_no_smaller_in_another_order_stays_as_recorded(orders: list[tuple[bool, int, int]]) -> None:
    x = mx.zeros((64, 512))
    for _ in range(8):
        x = mx.sin(x @ mx.ones((512, 512))) + x
    mx.eval(x)
    assert orders[-1][0]


def test_an_order_with_slice_updates_gives_the_same(orders: list[tuple[bool, int, int]]) -> None:
    cache = mx.zeros((64, 1024))
    rows = [mx.random.normal((8, 1024), key=mx.random.key(k)) for k in range(8)]
    for k, row in enumerate(rows):
        cache[8 * k : 8 * k + 8] = row * 2
    sums = [mx.sum(row) for row in rows]
    mx.eval(cache, *sums)
    assert mx.array_equal(cache, mx.concatenate(rows) * 2).item()
    assert all(mx.array_equal(mx.sum(row), total).item() for row, total in zip(rows, sums, strict=True))
    assert orders
