"""Recorded calls with a library's steps as graphs of the very same addresses: when they are made, used and given up."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.kernels.native_driver import CAPTURED, CONFIG, STREAM, Driver, Kernel, driving
from tests.kernels.native_libraries import Dnn, Products

from rocmend.kernels import launch as launcher
from rocmend.kernels import native
from rocmend.kernels.captured import LibraryCall
from rocmend.kernels.launch import launch
from rocmend.kernels.plan_cache import cached

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(native.module() is None, reason="no C compiler here")]
MOST, TRIED, WORTH = 32, 32, 4
"""As in ``fixed.c``."""


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    for made in driving(monkeypatch):
        made.told = made.told._replace(graphs=made.graph.functions)
        yield made


class _Call:
    """A kernel from x to some memory, and a library from there and y to an output: all of them are given."""

    def __init__(self, driver: Driver, library: Any = None) -> None:
        self.driver = driver
        self.library = library or Products()
        work = self.library.product() if isinstance(self.library, Products) else self.library.plan()
        kernel = Kernel(9, {"a": "*fp32", "b": "*fp32", "BLOCK": "constexpr"})
        driver.sizes[9] = [8, 8]
        called = LibraryCall(work)

        @cached
        def compute(x: Any, y: Any, some: Any, out: Any) -> Any:
            if x.is_meta:
                launch(kernel, (1,), (x, some), {}, CONFIG)
                called.record(some, y, out)
            return out

        self.compute, self.tensors = compute, [torch.zeros(8) for _ in range(4)]
        for _ in range(2):
            self(self.tensors)
        self.forget()

    def __call__(self, tensors: list[Any]) -> None:
        assert self.compute(tuple(tensors)) is tensors[3]

    def forget(self) -> None:
        """Forget what was noted so far."""
        for noted in (self.library.calls, self.driver.launches, self.driver.graph.launched):
            noted.clear()

    def others(self, count: int) -> list[list[Any]]:
        """Return tensors elsewhere."""
        return [[torch.zeros(8), *self.tensors[1:]] for _ in range(count)]


def test_addresses_that_come_again_are_one_graph(driver: Driver) -> None:
    one = _Call(driver)
    for _ in range(5):
        one(one.tensors)
    plain, captured = one.library.calls
    x, y, some, out = [tensor.data_ptr() for tensor in one.tensors]
    assert (plain[3], plain[5], plain[8], plain[15]) == (some, y, out, STREAM)
    assert (captured[3], captured[5], captured[8], captured[15]) == (some, y, out, CAPTURED)
    (first, *rest) = driver.graph.launched
    assert [(launched.stream, launched.values) for launched in first[1]] == [(0, (x, some))]
    for stream, launches in rest:
        assert stream == STREAM
        assert [(launched.stream, launched.values) for launched in launches] == [(CAPTURED, (x, some))]
    assert len(rest) == 4
    assert driver.graph.modes[-6:] == [
        ("instantiate", 2), ("destroy", 2), ("launch", 2), *[("launch", 0)] * 3
    ]  # fmt: skip
    assert driver.graph.mode == 0
    assert not driver.graph.streams


def test_a_call_that_only_a_library_makes_is_one_too(driver: Driver) -> None:
    library = Products()
    called = LibraryCall(library.product())

    @cached
    def compute(x: Any, y: Any, out: Any) -> Any:
        if x.is_meta:
            called.record(x, y, out)
        return out

    tensors = tuple([torch.zeros(8) for _ in range(3)])
    for _ in range(6):
        compute(tensors)
    assert [call[15] for call in library.calls] == [STREAM, STREAM, CAPTURED]  # recorded, seen, captured
    assert len(driver.graph.launched) == 3


def test_each_set_of_addresses_and_each_stream_has_its_own(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    one = _Call(driver)
    sets = one.others(3)
    for tensors in sets * 4:
        one(tensors)
    assert len(driver.graph.fixed) == 3
    assert len(one.library.calls) == 6
    for tensors in sets:
        one(tensors)
        assert driver.graph.launched[-1][1][0].values[0] == tensors[0].data_ptr()
    monkeypatch.setattr(launcher, "stream_of", lambda _index: 43)
    fresh = _Call(driver)
    for _ in range(4):
        fresh(fresh.tensors)
    assert [stream for stream, _ in driver.graph.launched] == [43] * 4
    assert len(driver.graph.fixed) == 4


def test_addresses_that_never_come_again_are_never_captured(driver: Driver) -> None:
    one = _Call(driver)
    sets = one.others(100)
    for tensors in sets:
        one(tensors)
    assert not driver.graph.fixed
    assert [call[15] for call in one.library.calls] == [STREAM] * 100


def test_graphs_that_are_not_used_again_are_given_up(driver: Driver) -> None:
    one = _Call(driver)
    for tensors in one.others(3 * TRIED):
        for _ in range(2):
            one(tensors)
    assert len(driver.graph.fixed) == TRIED
    one.forget()
    for _ in range(5):
        one(one.tensors)
    assert len(one.library.calls) == 5


def test_there_are_only_so_many(driver: Driver) -> None:
    one = _Call(driver)
    sets = one.others(MOST + 2)
    for tensors in sets:
        for _ in range(3 + 2 * WORTH):
            one(tensors)
    assert len(driver.graph.fixed) == MOST + 2
    before = driver.graph.destroyed
    one.forget()
    one(sets[-1])
    assert not one.library.calls
    one(sets[1])  # it made room
    assert [call[15] for call in one.library.calls] == [CAPTURED]
    assert driver.graph.destroyed == before + 2  # a graph, and the runnable one that makes room


@pytest.mark.parametrize(
    "change", [{"kinds": [0, 1]}, {"kinds": []}, {"ending": 900}, {"kinds": [0] * 65}, {"priority": -1}]
)
def test_what_is_more_than_kernels_is_made_step_by_step(driver: Driver, change: dict[str, Any]) -> None:
    one = _Call(driver)
    vars(driver.graph).update(change)
    for _ in range(6):
        one(one.tensors)
    calls = [call[15] for call in one.library.calls]
    assert [stream for stream in calls if stream == STREAM] == [STREAM] * 6
    assert len(calls) == (6 if "priority" in change else 7)  # what was captured is not tried again
    assert not driver.graph.streams


def test_memory_may_be_filled(driver: Driver) -> None:
    one = _Call(driver)
    driver.graph.kinds = [2, 0, 5]
    for _ in range(6):
        one(one.tensors)
    assert len(driver.graph.fixed) == 1


def test_within_a_capture_it_is_made_step_by_step(driver: Driver) -> None:
    one = _Call(driver)
    for _ in range(3):
        one(one.tensors)
    one.forget()
    driver.graph.capturing = 1
    one(one.tensors)
    assert [call[15] for call in one.library.calls] == [STREAM]
    driver.graph.capturing = 0
    one(one.tensors)
    assert len(one.library.calls) == 1


def test_what_a_library_refuses_while_it_is_captured_is_asked_again(driver: Driver) -> None:
    one = _Call(driver)
    one(one.tensors)
    one.library.status = 7
    with pytest.raises(RuntimeError, match="cuBLASLt refused"):
        one(one.tensors)
    one.library.status = 0
    one.forget()
    one(one.tensors)
    assert [call[15] for call in one.library.calls] == [STREAM]


def test_cudnn_is_told_the_stream_again_behind_a_capture(driver: Driver) -> None:
    one = _Call(driver, Dnn())
    for _ in range(4):
        one(one.tensors)
    (other,) = one.others(1)
    one.forget()
    one(other)
    assert ("stream", 21, STREAM) in one.library.calls


def test_all_are_freed_with_the_call(driver: Driver) -> None:
    one = _Call(driver)
    for _ in range(4):
        one(one.tensors)
    before = driver.graph.destroyed
    one.compute.calls.clear()
    del one
    gc.collect()
    assert driver.graph.destroyed == before + 3  # of the kernels and their graph, and of all steps
