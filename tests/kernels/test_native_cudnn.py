"""Plans of cuDNN's back end: what is described to it, which of its answers is taken, and what becomes of the rest."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import native
from rocmend.kernels.native import cudnn
from rocmend.kernels.ops.conv.conv.cudnn import Convolution

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(native.module() is None, reason="no C compiler here")]
POINTER, NUMBER, MANY = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
ENGINES, HEURISTIC, PLAN, PACK, CONFIGURATION, DESCRIPTOR = 2, 4, 5, 16, 3, 15
HELD = {0: POINTER, 1: NUMBER, 3: MANY, 4: ctypes.c_float, 6: POINTER, 7: NUMBER, 8: NUMBER, 15: POINTER}
BACKENDS = {"forward": 10, "weight": 11, "input": 12}
ONE = Convolution("forward", torch.float16, (2, 6, 9, 8), (8, 3, 3, 2), (2, 8, 5, 4), (2, 1), (1, 0))


class _Backend:
    """Keeps descriptors, and answers with engines, of which some are fit."""

    def __init__(self) -> None:
        self.descriptors: dict[int, dict[Any, Any]] = {}
        self.freed: list[int] = []
        self.executed: list[tuple[int, ...]] = []
        self.fit, self.found, self.created, self.refused = ENGINES + 1, 90100, 0, 0
        kinds: dict[str, tuple[Any, ...]] = {
            "cudnnCreate": (ctypes.POINTER(POINTER),), "cudnnSetStream": (POINTER, POINTER),
            "cudnnBackendCreateDescriptor": (NUMBER, ctypes.POINTER(POINTER)),
            "cudnnBackendDestroyDescriptor": (POINTER,), "cudnnBackendFinalize": (POINTER,),
            "cudnnBackendSetAttribute": (POINTER, NUMBER, NUMBER, MANY, POINTER),
            "cudnnBackendGetAttribute": (POINTER, NUMBER, NUMBER, MANY, ctypes.POINTER(MANY), POINTER),
            "cudnnBackendExecute": (POINTER, POINTER, POINTER),
        }  # fmt: skip
        for name, kind in kinds.items():
            setattr(self, name, ctypes.CFUNCTYPE(NUMBER, *kind)(getattr(self, f"_{name}")))
        self.cudnnGetVersion = ctypes.CFUNCTYPE(ctypes.c_size_t)(lambda: self.found)

    def _cudnnCreate(self, out: Any) -> int:  # noqa: N802  its name
        self.created += 1
        out[0] = 21
        return self.refused

    def _cudnnSetStream(self, *_: Any) -> int:  # noqa: N802
        return 0

    def _cudnnBackendCreateDescriptor(self, kind: int, out: Any) -> int:  # noqa: N802
        out[0] = 1000 + len(self.descriptors)
        self.descriptors[1000 + len(self.descriptors)] = {"kind": kind, "done": False}
        return 0

    def _cudnnBackendDestroyDescriptor(self, one: int) -> int:  # noqa: N802
        self.freed.append(one)
        return 0

    def _cudnnBackendSetAttribute(self, one: int, name: int, kind: int, count: int, values: int) -> int:  # noqa: N802
        assert not self.descriptors[one]["done"]
        found = list((HELD[kind] * count).from_address(values))
        assert kind != DESCRIPTOR or all(self.descriptors[value]["done"] for value in found)
        self.descriptors[one][name] = found
        return 0

    def _cudnnBackendFinalize(self, one: int) -> int:  # noqa: N802
        told = self.descriptors[one]
        if told["kind"] == PLAN and self.descriptors[told[401][0]]["number"] != self.fit:
            return 3000
        told["done"] = True
        return 0

    def _cudnnBackendGetAttribute(self, *args: Any) -> int:  # noqa: N802
        one, name, kind, most, count, values = args
        told = self.descriptors[one]
        if told["kind"] == PLAN:
            assert (name, kind) == (402, 3)
            (MANY * 1).from_address(values)[0] = 64 if told[401] else 0
            count[0] = 1
            return 0
        assert (told["kind"], name, kind) == (HEURISTIC, 202, 15)
        count[0] = ENGINES
        for at in range(min(most, ENGINES)):
            config = self.descriptors[(POINTER * most).from_address(values)[at]]
            assert config["kind"] == CONFIGURATION
            config |= {"number": at + (0 if told[200] == [0] else ENGINES), "done": True}
        return 0

    def _cudnnBackendExecute(self, *args: int) -> int:  # noqa: N802
        self.executed.append(args)
        return 0


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Backend]:
    made = _Backend()
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: made)
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 90100)
    monkeypatch.setattr(torch.cuda, "device", lambda _index: threading.Lock())
    caches: list[Any] = [cudnn.plan, cudnn._libraries]
    for one in caches:
        one.cache_clear()
    yield made
    for one in caches:
        one.cache_clear()
    gc.collect()  # while the functions are there


@pytest.mark.parametrize("direction", ["forward", "weight", "input"])
def test_a_convolution_is_described_and_executed(direction: str, backend: _Backend) -> None:
    found = cudnn.plan(ONE._replace(direction=direction), 0)
    assert found.workspace == 64
    found.work(5, 101, 102, 103, 104)
    ((handle, plan, pack),) = backend.executed
    assert handle == 21
    told = backend.descriptors
    assert told[pack] == {"kind": PACK, "done": True, 1000: [1, 2, 3], 1001: [101, 102, 103], 1003: [104]}
    config = told[told[plan][401][0]]
    assert config["number"] == ENGINES + 1  # the others were not fit
    (graph,) = [one for one in told.values() if one["kind"] == 15]
    assert graph[800] == told[plan][400] == [21]
    operation = told[graph[801][0]]
    assert operation["kind"] == BACKENDS[direction]
    tensors = [one for one in told.values() if one["kind"] == 17]
    assert [one[906] for one in tensors] == [[1], [2], [3]]
    assert [one[902] for one in tensors] == [[2, 6, 9, 8], [8, 3, 3, 2], [2, 8, 5, 4]]
    assert [one[903] for one in tensors] == [[432, 1, 48, 6], [18, 1, 6, 3], [160, 1, 32, 8]]
    assert all((one[900], one[901]) == ([16], [2]) for one in tensors)
    (convolution,) = [one for one in told.values() if one["kind"] == 1]
    assert {name: convolution[name] for name in range(100, 107)} == {
        100: [0], 101: [1], 102: [1, 1], 103: [2, 1], 104: [1, 0], 105: [1, 0], 106: [2]
    }  # fmt: skip
    values = list(operation.values())[2:]
    kinds = sorted(told[value[0]]["kind"] for value in values if value[0] in told)
    assert kinds == [1, 17, 17, 17]
    assert [value for value in values if value[0] not in told] == [[1.0], [0.0]]
    x, weight, y = {"forward": (704, 703, 705), "weight": (716, 715, 717), "input": (710, 709, 711)}[direction]
    assert [told[operation[name][0]][906] for name in (x, weight, y)] == [[1], [2], [3]]


def test_a_plan_is_made_once_and_freed_with_all_it_is_made_of(backend: _Backend) -> None:
    first = cudnn.plan(ONE, 0)
    assert cudnn.plan(ONE._replace(), 0) is first
    assert backend.created == 1
    cudnn.plan.cache_clear()
    first.work(5, 1, 2, 3, 4)
    del first
    gc.collect()
    assert sorted(backend.freed) == sorted(backend.descriptors)


def test_what_is_not_fit_is_refused(backend: _Backend) -> None:
    backend.fit = 99
    with pytest.raises(cudnn.Refused, match="3000"):
        cudnn.plan(ONE, 0)


def _no_library(_name: str) -> Any:
    raise OSError("no such file")


@pytest.mark.parametrize(
    "change",
    [
        lambda patch, _: patch.setattr(torch.backends.cudnn, "version", lambda: None),
        lambda patch, _: patch.setattr(torch.backends.cudnn, "version", lambda: 80902),
        lambda patch, _: patch.setattr(ctypes, "CDLL", _no_library),
        lambda patch, backend: patch.setattr(backend, "found", 90200),
        lambda patch, backend: patch.setattr(backend, "refused", 1001),
        lambda patch, backend: patch.delattr(backend, "cudnnBackendExecute"),
    ],
)
def test_another_library_is_refused(
    change: Callable[..., None], backend: _Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(monkeypatch, backend)
    for _ in range(2):
        with pytest.raises(cudnn.Refused):
            cudnn.plan(ONE, 0)
    assert not backend.descriptors
