"""Recorded calls in C as graphs of the driver: when they are, what they are told, and what happens where it refuses."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from tests.kernels.native_driver import CONFIG, STREAM, Driver, Graphs, adding, driving, kernels

from rocmend.kernels import allocate, native
from rocmend.kernels import launch as launcher
from rocmend.kernels.launch import launch
from rocmend.kernels.native import replay as native_replay
from rocmend.kernels.plan_cache import cached

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(native.module() is None, reason="no C compiler here")]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    yield from driving(monkeypatch)


@pytest.fixture
def graphs(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Graphs:
    """Have calls of two launches made as graphs."""
    driver.told = driver.told._replace(graphs=driver.graph.functions)
    monkeypatch.setattr(native_replay, "MIN_GRAPH_LAUNCHES", 2)
    return driver.graph


def test_several_launches_are_one_graph(driver: Driver, graphs: Graphs) -> None:
    compute = adding(*kernels(driver))
    x, others = torch.zeros(16), [torch.zeros(16) for _ in range(3)]
    for _ in range(2):
        compute((x, x), 9)
    outs = [compute((x, other), 9)[0] for other in others]
    assert not driver.launches
    assert [stream for stream, _ in graphs.launched] == [STREAM] * 3
    for (_, (first, second)), other, out in zip(graphs.launched, others, outs, strict=True):
        assert (first.function, first.grid, first.threads, first.shared) == (7, (3, 2, 1), 128, 1024)
        assert first.values[:2] == (x.data_ptr() + 16, 0)
        assert second.values[:3] == (first.values[2], other.data_ptr(), out.data_ptr())
    compute.calls.clear()
    gc.collect()
    assert graphs.destroyed == 2


def test_only_parameters_that_changed_are_set(driver: Driver, graphs: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = kernels(driver)

    @cached
    def compute(x: Any, y: Any) -> Any:
        out = allocate.empty((4,), dtype=torch.float32, device=x.device)
        launch(first, (1,), (x, None, y, 3, 0.5), {}, CONFIG)
        launch(second, (1,), (y.view(torch.int32), y, out, 1), {}, CONFIG)
        return out

    streams = [10]
    monkeypatch.setattr(launcher, "stream_of", lambda _index: streams[-1])
    x, other, y = torch.zeros(16), torch.zeros(16), torch.zeros(16)
    for _ in range(2):
        compute((x, y))
    graphs.set.clear()
    outs = [compute((one, y)) for one in (x, x, other, other)]  # each has memory of its own
    assert graphs.set == [1, 2, 2, 1, 2, 2]
    assert [nodes[0].values[0] for _, nodes in graphs.launched] == [one.data_ptr() for one in (x, x, other, other)]
    assert [nodes[1].values[2] for _, nodes in graphs.launched] == [one.data_ptr() for one in outs]
    streams.append(11)
    outs.append(compute((other, y)))
    assert graphs.set[6:] == [1, 2]


def test_a_graph_is_made_as_if_no_thread_captured(driver: Driver, graphs: Graphs) -> None:
    """What the driver refuses while any stream is captured is done in its relaxed mode (2), which ends behind it."""
    compute = adding(*kernels(driver))
    for _ in range(4):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert graphs.modes == [("create", 2), ("instantiate", 2), ("launch", 2), ("launch", 0)]
    assert graphs.mode == 0
    graphs.modes.clear()
    launcher.forget()
    gc.collect()
    assert graphs.modes == [("destroy", 2)] * 2
    assert graphs.mode == 0


def test_a_stream_that_is_captured_gets_launches(driver: Driver, graphs: Graphs) -> None:
    compute = adding(*kernels(driver))
    x = torch.zeros(16)
    graphs.capturing = 1
    for _ in range(3):
        compute((x, x), 9)
    assert (len(driver.launches), graphs.launched) == (2, [])
    graphs.capturing = 0
    compute((x, x), 9)
    assert (len(driver.launches), len(graphs.launched)) == (2, 1)


def test_each_stream_has_a_graph_of_its_own(driver: Driver, graphs: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    streams: list[int] = [STREAM]
    monkeypatch.setattr(launcher, "stream_of", lambda _index: streams[-1])
    compute = adding(*kernels(driver))
    x = torch.zeros(16)
    for _ in range(2):
        compute((x, x), 9)
    for stream in (10, 11, 10, 12, 13, 11, 14, 10):
        streams.append(stream)
        compute((x, x), 9)
    assert [stream for stream, _ in graphs.launched] == [10, 11, 10, 12, 13, 11, 10]
    assert graphs.runnables == [2, 3, 2, 4, 5, 3, 2]
    assert [one.stream for one in driver.launches] == [14, 14]


@pytest.mark.parametrize(("stream", "priority"), [(STREAM, -1), (2, 0)])
def test_streams_that_a_graph_does_not_suit_get_launches(
    driver: Driver, graphs: Graphs, monkeypatch: pytest.MonkeyPatch, stream: int, priority: int
) -> None:
    monkeypatch.setattr(launcher, "stream_of", lambda _index: stream)
    graphs.priority = priority
    compute = adding(*kernels(driver))
    for _ in range(4):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert (len(driver.launches), graphs.launched) == (4, [])


def test_a_driver_that_makes_no_graph_gets_launches(driver: Driver, graphs: Graphs) -> None:
    compute = adding(*kernels(driver))
    x = torch.zeros(16)
    graphs.refused = 1
    for _ in range(4):
        compute((x, x), 9)
    assert (len(driver.launches), graphs.launched) == (4, [])


def test_graphs_of_a_process_are_so_many_at_most(driver: Driver, graphs: Graphs) -> None:
    """Each takes memory of the GPU: the others get launches, until some are freed."""
    gc.collect()
    compute = adding(*kernels(driver))
    given = torch.zeros(16), torch.zeros(16)
    most, more = 256, 4
    for number in range(most + more):
        for _ in range(3):
            compute(given, number)
    assert (len(graphs.launched), len(driver.launches)) == (most, 2 * more)
    launcher.forget()
    gc.collect()
    for _ in range(3):
        compute(given, 9)
    assert (len(graphs.launched), len(driver.launches)) == (most + 1, 2 * more)


def test_a_single_launch_that_may_begin_early_is_in_no_graph(
    driver: Driver, graphs: Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There it would wait for the end of what is in front of it; of several, the first one does."""
    monkeypatch.setattr(native_replay, "MIN_GRAPH_LAUNCHES", 1)
    first, second = kernels(driver, launch_pdl=True)

    @cached
    def alone(x: Any) -> Any:
        out = allocate.empty((16,), dtype=torch.float32, device=x.device)
        launch(first, (1,), (x, None, out, 3, 0.5), {}, CONFIG)
        return out

    for _ in range(3):
        alone((torch.zeros(16),))
    assert (len(driver.launches), graphs.launched) == (1, [])
    assert driver.launches[0].attributes == ((6, 1),)
    compute = adding(first, second)
    for _ in range(3):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert (len(driver.launches), len(graphs.launched)) == (1, 1)
    assert graphs.edges == [(1, 2, 0x010001)]


@pytest.mark.parametrize(("early", "edge"), [(True, 0x010001), (False, 0)])
def test_a_second_launch_that_may_begin_early_has_an_edge_that_says_so(
    driver: Driver, graphs: Graphs, early: bool, edge: int
) -> None:
    first, second = kernels(driver)
    second.launcher["launch_pdl"] = early
    compute = adding(first, second)
    for _ in range(3):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert len(graphs.launched) == 1
    assert graphs.edges == [(1, 2, edge)]


def test_a_graph_that_the_driver_refuses_is_an_error(driver: Driver, graphs: Graphs) -> None:
    compute = adding(*kernels(driver))
    x = torch.zeros(16)
    for _ in range(3):
        compute((x, x), 9)
    driver.code = 700
    with pytest.raises(RuntimeError, match="700"):
        compute((x, x), 9)
    assert len(graphs.launched) == 2
