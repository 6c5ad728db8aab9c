"""A fake CUDA driver that keeps its arguments, for the C replay: the CPU is taken for a GPU."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch

from rocmend.kernels import allocate, native
from rocmend.kernels import launch as launcher
from rocmend.kernels.launch import launch
from rocmend.kernels.native import replay as native_replay
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.tuning import Config

CONFIG = Config({"BLOCK": 64})
_drivers: list[Any] = []
STREAM = 42
CAPTURED = 5000
"""Where calls are captured; graphs of captures have numbers above it."""
SIZES = {"i1": 1, "i8": 1, "i16": 2, "fp16": 2, "bf16": 2, "i32": 4, "fp32": 4}


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(ctypes.c_uint * 18)),
        ("count", ctypes.c_uint),
    )


class _Node(ctypes.Structure):
    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("parameters", ctypes.POINTER(ctypes.c_void_p)),
        ("rest", ctypes.c_void_p * 3),
    )


class Launch(NamedTuple):
    """What the driver was told."""

    function: int
    grid: tuple[int, ...]
    threads: int
    shared: int
    stream: int
    attributes: tuple[tuple[int, int], ...]
    values: tuple[int, ...]


class Kernel:
    """Looks like a function under ``triton.jit``."""

    def __init__(self, number: int, types: dict[str, str], **launcher: Any) -> None:
        self.arg_names = list(types)
        self.params = [SimpleNamespace(name=one, is_constexpr=one.isupper(), default=None) for one in types]
        self.pre_run_hooks: list[Any] = []
        self.plain = 0
        self.number, self.types, self.launcher = number, types, launcher

    def __getitem__(self, _grid: Any) -> Any:
        def run(*_args: Any, **_kwargs: Any) -> Any:
            self.plain += 1
            return SimpleNamespace(
                function=self.number, packed_metadata=(), run=CudaLauncher(**self.launcher),
                metadata=SimpleNamespace(num_warps=4, num_ctas=1, shared=1024),
                src=SimpleNamespace(signature=self.types),
            )  # fmt: skip

        return run


class CudaLauncher:
    """Looks like Triton's."""

    def __init__(self, **changed: Any) -> None:
        self.global_scratch_size = self.profile_scratch_size = 0
        self.launch_cooperative_grid = self.launch_pdl = False
        self.seen: list[Any] = []
        vars(self).update(changed)

    def __call__(self, *args: Any) -> None:
        """Launch in Triton's own way."""
        self.seen.append(args)

    def launch(self, *args: Any) -> None:
        """Launch as the C function does that is behind Triton 3.6's."""
        self.seen.append(args)


class Driver:
    """Notes what it is told to launch."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self.sizes: dict[int, list[int]] = {}
        self.context, self.code = 1, 0
        kind = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.POINTER(_Config), ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p
        )
        current = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
        self._kept = (kind(self._launch), current(self._current))
        launch, context = (ctypes.cast(one, ctypes.c_void_p).value or 0 for one in self._kept)
        self.told = native.Driver(launch, context, 0, self._size)
        self.graph = Graphs(self)

    def _launch(self, config: Any, function: int, parameters: Any, _extra: Any) -> int:
        one = config.contents
        attributes = tuple([(one.attributes[i][0], one.attributes[i][2]) for i in range(one.count)])
        values = self.values(function, parameters)
        self.launches.append(
            Launch(function, tuple(one.grid), one.block[0], one.shared, one.stream, attributes, values)
        )
        return self.code

    def values(self, function: int, parameters: Any) -> tuple[int, ...]:
        """Return a kernel's parameters."""
        raw = [ctypes.string_at(parameters[i], size) for i, size in enumerate(self.sizes[function])]
        return tuple([int.from_bytes(bits, "little") for bits in raw])

    def _current(self, context: Any) -> int:
        context[0] = self.context
        return 0

    def _size(self, function: int, index: int, _offset: Any, size: Any) -> int:
        sizes = self.sizes[function]
        if index >= len(sizes):
            return 1
        size._obj.value = sizes[index]
        return 0


class Graphs:
    """The driver's graphs: a graph's launch notes its nodes."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.nodes: list[Launch] = []
        self.launched: list[tuple[int, list[Launch]]] = []
        self.runnables: list[int] = []
        self.edges: list[tuple[int, int, int]] = []
        self.capturing = self.refused = self.destroyed = self.priority = self.made = self.mode = 0
        self.modes: list[tuple[str, int]] = []
        self.set: list[int] = []
        self.streams: list[int] = []
        self.captures: list[list[Launch]] = []
        self.fixed: dict[int, list[Launch]] = {}
        self.kinds = [0]
        self.ending = 0
        number, pointer = ctypes.c_int, ctypes.c_void_p
        out, node = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(_Node)
        self._kept = (
            ctypes.CFUNCTYPE(number, out, ctypes.c_uint)(self._create),
            ctypes.CFUNCTYPE(number, out, pointer, out, ctypes.c_size_t, node)(self._add),
            ctypes.CFUNCTYPE(number, out, pointer, ctypes.c_ulonglong)(self._instantiate),
            ctypes.CFUNCTYPE(number, pointer, pointer, node)(self._set),
            ctypes.CFUNCTYPE(number, pointer, pointer)(self._launch),
            ctypes.CFUNCTYPE(number, pointer)(self._destroy),
            ctypes.CFUNCTYPE(number, pointer)(self._destroy),
            ctypes.CFUNCTYPE(number, pointer, ctypes.POINTER(number))(self._capturing),
            ctypes.CFUNCTYPE(number, pointer, ctypes.POINTER(number))(self._priority),
            ctypes.CFUNCTYPE(number, pointer, out, out, ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t)(self._link),
            ctypes.CFUNCTYPE(number, ctypes.POINTER(number))(self._exchange),
            ctypes.CFUNCTYPE(number, pointer, number)(self._begin),
            ctypes.CFUNCTYPE(number, pointer, out)(self._end),
            ctypes.CFUNCTYPE(number, pointer, out, ctypes.POINTER(ctypes.c_size_t))(self._nodes),
            ctypes.CFUNCTYPE(number, pointer, ctypes.POINTER(number))(self._type),
            ctypes.CFUNCTYPE(number, out, ctypes.c_uint)(self._stream),
            ctypes.CFUNCTYPE(number, pointer)(self._stream_gone),
        )
        self.functions = tuple([ctypes.cast(one, pointer).value or 0 for one in self._kept])

    def _node(self, parameters: Any) -> Launch:
        one = parameters.contents
        values = self._driver.values(one.function, one.parameters)
        return Launch(one.function, tuple(one.grid), one.block[0], one.shared, 0, (), values)

    def _exchange(self, mode: Any) -> int:
        self.mode, mode[0] = mode[0], self.mode
        return 0

    def _create(self, graph: Any, _flags: int) -> int:
        self.modes.append(("create", self.mode))
        graph[0] = 1
        return 0

    def _add(self, node: Any, _graph: int, behind: Any, count: int, parameters: Any) -> int:
        self.edges += [(behind[i], len(self.nodes) + 1, 0) for i in range(count)]
        self.nodes.append(self._node(parameters))
        node[0] = len(self.nodes)
        return 0

    def _link(self, _graph: int, begin: Any, end: Any, edges: Any, count: int) -> int:
        self.edges += [(begin[i], end[i], edges[i]) for i in range(count)]
        return 0

    def _stream(self, stream: Any, flags: int) -> int:
        assert flags == 1
        stream[0] = CAPTURED
        self.streams.append(CAPTURED)
        return 0

    def _stream_gone(self, stream: int) -> int:
        self.streams.remove(stream)
        return 0

    def _begin(self, stream: int, mode: int) -> int:
        assert (stream, mode, self.mode) == (CAPTURED, 2, 2)
        self.begun = len(self._driver.launches)
        return 0

    def _end(self, _stream: int, graph: Any) -> int:
        launches = self._driver.launches
        self.captures.append(launches[self.begun :])
        del launches[self.begun :]
        graph[0] = CAPTURED + len(self.captures)
        return self.ending

    def _nodes(self, _graph: int, nodes: Any, count: Any) -> int:
        count[0] = len(self.kinds)
        for at in range(len(self.kinds) if nodes else 0):
            nodes[at] = 1 + at
        return 0

    def _type(self, node: int, kind: Any) -> int:
        kind[0] = self.kinds[node - 1]
        return 0

    def _instantiate(self, runnable: Any, graph: int, _flags: int) -> int:
        self.modes.append(("instantiate", self.mode))
        self.made += 1
        runnable[0] = 1 + self.made
        if graph > CAPTURED:
            self.fixed[1 + self.made] = self.captures[graph - CAPTURED - 1]
        return self.refused

    def _set(self, _runnable: int, node: int, parameters: Any) -> int:
        self.set.append(node)
        self.nodes[node - 1] = self._node(parameters)
        return 0

    def _launch(self, runnable: int, stream: int) -> int:
        self.modes.append(("launch", self.mode))
        self.runnables.append(runnable)
        self.launched.append((stream, list(self.fixed.get(runnable, self.nodes))))
        return self._driver.code

    def _destroy(self, _graph: int) -> int:
        self.modes.append(("destroy", self.mode))
        self.destroyed += 1
        return 0

    def _capturing(self, _stream: int, status: Any) -> int:
        status[0] = self.capturing
        return 0

    def _priority(self, _stream: int, priority: Any) -> int:
        priority[0] = self.priority
        return 0


def driving(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """Take the CPU for a GPU whose driver notes launches."""
    made = Driver()
    _drivers.append(made)  # objects that are freed later call it
    monkeypatch.setattr(launcher, "_JIT_FUNCTION", Kernel)
    monkeypatch.setattr(launcher, "HIP", False)
    monkeypatch.setattr(launcher, "current_device", lambda: -1)
    monkeypatch.setattr(launcher, "stream_of", lambda _index: STREAM)
    monkeypatch.setattr(torch.cuda, "device", lambda _device: threading.Lock())
    monkeypatch.setattr(native_replay, "driver", lambda: made.told)
    launcher.forget()
    yield made
    launcher.forget()


def kernels(driver: Driver, **launcher: Any) -> tuple[Kernel, Kernel]:
    first = Kernel(
        7, {"a": "*fp32", "b": "*fp32", "c": "*i8", "n": "i32", "f": "fp32", "BLOCK": "constexpr"}, **launcher
    )
    second = Kernel(8, {"a": "*i32", "b": "*fp32", "c": "*fp32", "n": "constexpr", "BLOCK": "constexpr"}, **launcher)
    driver.sizes |= {7: [8, 8, 8, 4, 4, 8, 8], 8: [8, 8, 8, 8]}
    return first, second


def adding(first: Kernel, second: Kernel) -> cached:
    """Return a call with a temporary, an argument in the middle of a tensor, numbers, None and two results."""

    @cached
    def compute(x: Any, y: Any, number: int) -> Any:
        some = allocate.empty((8,), dtype=torch.float32, device=x.device)
        out = allocate.empty((4,), dtype=torch.float32, device=x.device)
        launch(first, (3, 2), (x[4:], None, some, number, 0.5), {}, CONFIG)
        launch(second, (1,), (some.view(torch.int32), y, out, 1), {}, CONFIG)
        return out.view(2, 2), None

    return compute


def recorded(compute: cached) -> Callable[..., Any]:
    (call,) = compute.calls.values()
    return call
