"""Devices, streams, threads and memory."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from rocmend.mlx import core as mx
from rocmend.mlx import device
from rocmend.mlx.node import current

pytestmark = pytest.mark.cpu


def in_thread(work: Any) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def test_devices_are_compared_by_type_and_index() -> None:
    assert mx.Device(mx.cpu) == mx.cpu
    assert mx.cpu == mx.Device(mx.cpu)
    assert mx.Device(mx.gpu, 1) != mx.gpu
    assert (str(mx.Device(mx.cpu)), repr(mx.gpu)) == ("Device(cpu, 0)", "DeviceType.gpu")
    with pytest.raises(TypeError, match="device type"):
        mx.Device("cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("call", [mx.set_default_device, mx.default_stream, mx.new_stream, mx.device_info])
def test_a_gpu_that_is_not_there(call: Any) -> None:
    assert not mx.is_available(mx.gpu)
    assert mx.device_count(mx.gpu) == 0
    with pytest.raises(ValueError, match="sees no such device"):
        call(mx.gpu)


def test_contexts_are_left_as_they_were_entered() -> None:
    before = mx.default_device()
    outer, inner = mx.new_stream(mx.cpu), mx.new_stream(mx.cpu)
    with mx.stream(outer):
        with mx.stream(inner):
            assert mx.default_stream(mx.cpu) == inner
            assert (mx.array(1) + 1)._n.stream == inner
        assert mx.default_stream(mx.cpu) == outer
    assert mx.default_device() == before
    assert mx.default_stream(mx.cpu) not in (inner, outer)
    assert mx.add(1, 2, stream=inner)._n.stream == inner
    with pytest.raises(TypeError, match="stream"):
        mx.stream(3)


def test_a_stream_belongs_to_the_thread_that_made_it() -> None:
    mine, each = mx.new_stream(mx.cpu), mx.new_thread_local_stream(mx.cpu)

    def foreign() -> str:
        try:
            with mx.stream(mine):
                return "entered"
        except RuntimeError as error:
            return str(error)

    def own() -> tuple[Any, list[int]]:
        with mx.stream(each):
            return mx.default_stream(mx.cpu), mx.arange(3).tolist()

    assert "no Stream(cpu" in in_thread(foreign)
    stream, values = in_thread(own)
    assert values == [0, 1, 2]
    assert own()[0] != stream
    assert own()[0] == own()[0]


def test_a_shared_stream_is_used_by_any_thread() -> None:
    shared = mx.new_thread_unsafe_stream(mx.cpu)
    assert shared not in (mx.default_stream(mx.cpu), mx.new_thread_unsafe_stream(mx.cpu))

    def foreign() -> tuple[Any, list[int]]:
        with mx.stream(shared):
            return mx.default_stream(mx.cpu), mx.arange(3).tolist()

    assert in_thread(foreign) == (shared, [0, 1, 2])
    with pytest.raises(TypeError, match="new_thread_unsafe_stream"):
        mx.new_thread_unsafe_stream(3)


def test_what_is_known_of_a_device() -> None:
    info = mx.device_info(mx.cpu)
    assert info["device_name"]
    assert info["architecture"]
    assert int(info["memory_size"]) > 2**20
    assert mx.device_count(mx.cpu) == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU's memory is counted by torch")
def test_memory_in_use_is_counted_once_a_buffer() -> None:
    gc.collect()
    before = mx.get_active_memory()
    a = mx.ones((64, 1024))
    b = a.T
    mx.eval(a, b)
    assert mx.get_active_memory() - before == a.nbytes
    assert mx.get_peak_memory() >= a.nbytes
    assert mx.get_array_buffer_size(a, [b, 3]) == a.nbytes
    del a, b
    assert mx.get_active_memory() == before
    mx.reset_peak_memory()
    assert mx.get_peak_memory() == 0
    assert mx.get_cache_memory() == 0
    with pytest.raises(ValueError, match="evaluated"):
        mx.get_array_buffer_size(mx.ones(3) + 1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU's memory is counted by torch")
def test_what_nobody_can_ask_for_holds_no_memory() -> None:
    def leaves_it() -> None:
        a = mx.zeros((1 << 18,))
        mx.eval(a)
        quotient, rest = mx.divmod(a, a)
        del quotient, rest

    gc.collect()
    before = mx.get_active_memory()
    for drop in (mx.synchronize, mx.clear_cache, mx.reset_peak_memory, mx.get_active_memory):
        leaves_it()
        drop()
        assert not current.state.tape
    assert mx.get_active_memory() == before
    kept = mx.ones((4,)) + 1
    mx.synchronize()
    assert current.state.tape
    assert kept.tolist() == [2] * 4


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU's memory is counted by torch")
def test_what_is_read_counts_towards_the_peak(tmp_path: Path) -> None:
    file = str(tmp_path / "x.npy")
    mx.save(file, mx.zeros((1 << 18,)))
    gc.collect()
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    x = mx.load(file)
    mx.eval(x)
    # tensors that no evaluation was asked for, and that others in this process hold, may or may not be in it
    assert x.nbytes <= mx.get_peak_memory() <= before + x.nbytes
    y = mx.load(file) * 2
    del x
    mx.eval(y)
    assert y.nbytes <= mx.get_peak_memory() <= before + y.nbytes


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU's memory is counted by torch")
def test_the_peak_does_not_count_what_was_in_between() -> None:
    gc.collect()
    x = mx.zeros((1 << 18,))
    mx.eval(x)
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    y = mx.abs(mx.stop_gradient(mx.abs(x)).reshape(2, -1).T)
    del x
    mx.eval(y)
    assert mx.get_peak_memory() == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU's memory is counted by torch")
def test_what_gc_freeze_hides_is_counted() -> None:
    """Servers freeze before they fork."""
    x = mx.ones((1 << 18,))
    mx.eval(x)
    gc.freeze()
    try:
        assert mx.get_active_memory() >= x.nbytes
        mx.reset_peak_memory()
        frozen = mx.get_active_memory()
        y = mx.ones((1 << 18,))
        mx.eval(y)
        assert y.nbytes <= mx.get_peak_memory() <= frozen + y.nbytes
        size = x.nbytes
        del x, y
        assert mx.get_active_memory() == frozen - size
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("setter", [mx.set_memory_limit, mx.set_cache_limit, mx.set_wired_limit])
def test_limits_give_back_what_was_set_before(setter: Any) -> None:
    before = setter(1000)
    assert setter(2000) == 1000
    assert (mx.ones(3) + 1).tolist() == [2, 2, 2]  # a limit is a guideline
    assert setter(before) == 2000
    with pytest.raises(ValueError, match="expected a limit"):
        setter(-1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU's memory is counted by torch")
def test_the_peak_is_counted_at_evaluations() -> None:
    mx.reset_peak_memory()
    base = mx.zeros((8,)) + 1
    mx.eval(base)
    before = mx.get_peak_memory()
    a, b = mx.zeros((1 << 22,)), mx.ones((1 << 22,))
    mx.eval(a, b)
    mx.eval(a.reshape(2, -1))  # the same buffer
    size = a.nbytes
    assert mx.get_peak_memory() - before >= 2 * size
    del a, b
    mx.eval(mx.ones((1 << 21,)))
    assert mx.get_peak_memory() - before < 3 * size
    mx.reset_peak_memory()
    mx.eval(mx.ones((1 << 21,)))
    assert size // 2 <= mx.get_peak_memory() < 2 * size


def test_the_memory_limit_is_told() -> None:
    before = mx.get_memory_limit()
    assert before > 2**20
    mx.set_memory_limit(1000)
    try:
        assert mx.get_memory_limit() == 1000
    finally:
        mx.set_memory_limit(before)


def test_metal_and_cuda_are_not_here() -> None:
    assert not mx.metal.is_available()
    assert not mx.cuda.is_available()
    with pytest.raises(NotImplementedError, match="no Metal"):
        mx.metal.start_capture("trace")


def test_each_process_of_a_host_calls_its_own_gpu_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.delenv("ROCMEND_MLX_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(device, "_default", [])
    device.own_gpu.cache_clear()
    try:
        places = [device.Device(device.gpu, index).torch for index in range(4)]
        assert places == [torch.device("cuda", number) for number in (2, 3, 0, 1)]
        assert device.begin_thread() == device.Device(device.gpu, 0)
        assert chosen == [2]  # a thread begins with torch's first GPU
    finally:
        device.own_gpu.cache_clear()


@pytest.mark.parametrize(("local", "together"), [("", "2"), ("1", ""), ("1", "1"), ("one", "2"), ("3", "8")], ids=str)
def test_where_nothing_says_which_gpu_it_is_the_first(
    monkeypatch: pytest.MonkeyPatch, local: str, together: str
) -> None:
    monkeypatch.setenv("LOCAL_RANK", local)
    monkeypatch.setenv("WORLD_SIZE", together)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    device.own_gpu.cache_clear()
    try:
        assert device.own_gpu() == 0
        assert device.Device(device.gpu, 1).torch == torch.device("cuda", 1)
    finally:
        device.own_gpu.cache_clear()
