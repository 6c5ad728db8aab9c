"""Captured steps: what is copied, what is read where it is, which integers come from memory, and when a graph holds.

A stand-in takes the place of a device's graph: it calls the captured work again, with the tensors it was captured with.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from tests.mlx.again import Again

from rocmend.mlx import evaluate
from rocmend.mlx.array import array, leaf, record
from rocmend.mlx.core import fast
from rocmend.mlx.dtypes import float32
from rocmend.mlx.execute import device_graph, settings
from rocmend.mlx.execute.planner import Planner, planner
from rocmend.mlx.node import current
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.skipif(not triton.knobs.runtime.interpret, reason="triton was imported without its interpreter"),
]

HEADS, SIZE, LENGTH = 2, 16, 12


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Planner]:
    monkeypatch.setenv("ROCMEND_MLX_FUSE", "1")
    monkeypatch.setattr(device_graph, "can", lambda _: True)
    monkeypatch.setattr(device_graph, "make", Again)
    monkeypatch.setattr(device_graph, "memory", lambda _: 1 << 30)
    monkeypatch.setattr(Again, "count", 0)
    current.state.tape = []
    planner().forget()
    with settings.use("graph"):
        yield planner()
    planner().forget()


def normal(seed: int, *shape: int) -> array:
    return leaf(torch.randn(shape, generator=torch.Generator().manual_seed(seed)), float32)


class Decoder:
    """One attention layer with a cache: what a decode step of a model records."""

    def __init__(self, length: int = LENGTH) -> None:
        self.weight = ops.multiply(normal(1, SIZE, SIZE), 0.2)
        evaluate.evaluate([self.weight], wait=True)
        self.keys = leaf(torch.zeros(1, HEADS, length, SIZE), float32)
        self.values = leaf(torch.zeros(1, HEADS, length, SIZE), float32)
        self.offset = 0

    def step(self, x: array) -> Any:
        q = ops.matmul(x, self.weight)
        k = fast.rope(q, SIZE, traditional=False, base=100.0, scale=1.0, offset=self.offset)
        at = self.offset
        self.keys[..., at : at + 1, :] = k
        self.values[..., at : at + 1, :] = ops.add(k, x)
        self.offset += 1
        keys, values = self.keys[..., : self.offset, :], self.values[..., : self.offset, :]
        return ops.add(fast.scaled_dot_product_attention(k, keys, values, scale=0.3), ops.multiply(x, 0.5))


def ran(decoder: Decoder, x: array, steps: int) -> list[Any]:
    found = []
    for _ in range(steps):
        x = decoder.step(x)
        evaluate.evaluate([x], wait=False)
        found.append(x._n.data.clone())
    return found


@pytest.mark.slow
def test_a_captured_step_computes_what_the_interpreter_does(fresh: Planner) -> None:
    with settings.use("interpreter"):
        expected = ran(Decoder(), normal(2, 1, HEADS, 1, SIZE), 10)
    found = ran(Decoder(), normal(2, 1, HEADS, 1, SIZE), 10)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert fresh.last is not None
    assert len(fresh.last.captures) == 1
    assert fresh.last.replays >= 5


def test_results_are_not_overwritten_by_later_steps(fresh: Planner) -> None:
    decoder, x, kept = Decoder(), normal(2, 1, HEADS, 1, SIZE), []
    for _ in range(9):
        x = decoder.step(x)
        evaluate.evaluate([x], wait=False)
        kept.append((x, x._n.data.clone()))
    assert fresh.last is not None
    assert fresh.last.captures
    for one, then in kept:
        assert torch.equal(one._n.data, then)


def test_another_cache_is_another_capture_and_both_are_right() -> None:
    with settings.use("interpreter"):
        expected = ran(Decoder(), normal(2, 1, HEADS, 1, SIZE), 8)
    first = ran(Decoder(), normal(2, 1, HEADS, 1, SIZE), 8)
    held = Decoder()
    second = ran(held, normal(2, 1, HEADS, 1, SIZE), 8)
    for found in (first, second):
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_longer_cache_does_not_end_capturing(fresh: Planner) -> None:
    decoder = Decoder(length=6)
    x = normal(2, 1, HEADS, 1, SIZE)
    twin = Decoder(length=40)
    for number in range(24):
        if decoder.offset == decoder.keys.shape[2]:
            for name in ("keys", "values"):
                more = ops.zeros((1, HEADS, 6, SIZE))
                setattr(decoder, name, ops.concatenate([getattr(decoder, name), more], axis=2))
        out = decoder.step(x)
        evaluate.evaluate([out], wait=False)
        with settings.use("interpreter"):
            other = twin.step(x)
            evaluate.evaluate([other], wait=False)
        torch.testing.assert_close(out._n.data, other._n.data, rtol=1e-4, atol=1e-5, msg=f"step {number}")
        x = leaf(out._n.data.clone(), float32)
    assert max(len(entry.captures) for entry in fresh.entries.values()) >= 3
    assert not any("shape" in entry.unfit for entry in fresh.entries.values())


def test_integers_that_part_are_noticed() -> None:
    decoder, x = Decoder(), normal(2, 1, HEADS, 1, SIZE)
    twin = Decoder()
    for number in range(9):
        if number == 7:
            decoder.offset = twin.offset = 2  # not one further: the offset goes back, all of its uses with it
        out = decoder.step(x)
        evaluate.evaluate([out], wait=False)
        with settings.use("interpreter"):
            other = twin.step(x)
            evaluate.evaluate([other], wait=False)
        torch.testing.assert_close(out._n.data, other._n.data, rtol=1e-4, atol=1e-5)


def test_a_cache_is_let_go_with_its_last_handle(fresh: Planner) -> None:
    decoder = Decoder()
    x = normal(2, 1, HEADS, 1, SIZE)
    ran(decoder, x, 8)
    assert fresh.last is not None
    assert fresh.last.captures
    where = weakref.ref(decoder.keys._n)
    del decoder
    current.state.tape = []
    gc.collect()
    assert where() is None


def test_weights_that_are_gone_take_their_captures_along(fresh: Planner) -> None:
    decoder = Decoder()
    ran(decoder, normal(2, 1, HEADS, 1, SIZE), 8)
    fresh.trim()
    assert any(entry.captures for entry in fresh.entries.values())
    del decoder
    current.state.tape = []
    for entry in fresh.entries.values():
        for capture in entry.captures:
            del capture.graph.work  # which keeps the weights; a device's graph does not
    fresh.trim()
    assert not any(entry.captures for entry in fresh.entries.values())


def test_captures_that_are_used_once_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocmend.mlx.execute.planner.TRIES", 2)
    weight = normal(5, 4, 4)
    for number in range(40):
        if number % 3 == 0:
            weight = normal(number, 4, 4)
        out = weight
        for _ in range(5):
            out = ops.matmul(weight, out)
        evaluate.evaluate([out], wait=False)
    assert Again.count <= 2 + 40 // 16 + 1


def test_a_step_of_few_operations_is_not_captured() -> None:
    weight = normal(5, 4, 4)
    for _ in range(5):
        evaluate.evaluate([ops.matmul(weight, weight)], wait=False)
    assert Again.count == 0


MEETING = Primitive("MeetingOfATest", lambda _node, x: x + 1, meets=True)


def test_a_step_in_which_other_processes_take_part_is_not_captured(fresh: Planner) -> None:
    x = weight = normal(5, 4, 4)
    for _ in range(6):
        for _ in range(5):
            x = ops.matmul(weight, x)
        x = record(MEETING, (x._n,), x.shape, x.dtype, None, None, x._n.stream)
        evaluate.evaluate([x], wait=False)
    assert Again.count == 0
    assert fresh.last is not None
    assert "other processes" in fresh.last.unfit


def first_steps(count: int, *, keep: bool) -> list[Any]:
    """Return what the first step of several generations computes, each with a cache of its own, and the step after."""
    found, caches = [], []
    for number in range(count):
        decoder = Decoder()
        x = normal(7 + number, 1, HEADS, 1, SIZE)
        for _ in range(2):
            x = decoder.step(x)
            evaluate.evaluate([x, decoder.keys, decoder.values], wait=False)
            found += [x._n.data.clone(), decoder.keys._n.data.clone(), decoder.values._n.data.clone()]
        if keep:
            caches.append(decoder)
    return found


@pytest.mark.parametrize("keep", [False, True])
def test_first_steps_with_another_cache_each_time_are_captured(fresh: Planner, *, keep: bool) -> None:
    with settings.use("interpreter"):
        expected = first_steps(8, keep=keep)
    found = first_steps(8, keep=keep)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    captures = [capture for entry in fresh.entries.values() for capture in entry.captures]
    assert captures
    if keep:  # what was let go may leave its place to the next cache, which then need not be copied
        assert any(capture.moving for capture in captures)


def test_a_step_that_goes_on_with_its_cache_is_not_copied(fresh: Planner) -> None:
    first_steps(6, keep=True)
    decoder = Decoder()
    ran(decoder, normal(2, 1, HEADS, 1, SIZE), 9)
    assert fresh.last is not None
    fitting = fresh.last.captures[-1]
    assert not fitting.moving


def test_large_results_come_at_the_same_place_once_nobody_holds_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    from rocmend.mlx.execute.outgoing import LARGE, Outgoing

    results = [torch.zeros(LARGE // 4), torch.zeros(4)]
    outgoing = Outgoing(results, most=LARGE)
    first = outgoing.take()
    where = first[0].data_ptr()
    view = first[0][8:]
    del first
    second = outgoing.take()
    assert second[0].data_ptr() != where  # a view of the first holds it
    del view
    again = outgoing.take()
    assert again[0].data_ptr() != second[0].data_ptr()
    kept = again[0].data_ptr()
    del again
    assert outgoing.take()[0].data_ptr() == kept
    assert not Outgoing(results, most=LARGE - 1).places
    monkeypatch.delattr(torch._C, "_storage_Use_Count")
    assert not Outgoing(results, most=LARGE).places


def test_integers_of_more_than_32_bits_are_not_captured() -> None:
    for start in (1 << 40, 1 << 41, 1 << 42):
        out = ops.arange(start, start + 3)
        for _ in range(5):
            out = ops.multiply(out, 1)
        evaluate.evaluate([out], wait=False)
        assert out._n.data.tolist() == [start, start + 1, start + 2]
    assert Again.count == 0
