"""Recorded calls in C: the same launches and results as the function that is written in Python."""

from __future__ import annotations

import ctypes
import gc
import struct
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from rocmend.kernels import allocate, fast, native
from rocmend.kernels.launch import launch
from rocmend.kernels.native import packed
from rocmend.kernels.repeated import NumberedPlan, Repeated
from rocmend.kernels.replay import Address
from rocmend.kernels.tuning import Config

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(native.module() is None, reason="no C compiler here")]

CONFIG = Config({"BLOCK": 64})
_drivers: list[Any] = []
STREAM = 42
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


class _Launch(NamedTuple):
    """What the driver was told."""

    function: int
    grid: tuple[int, ...]
    threads: int
    shared: int
    stream: int
    attributes: tuple[tuple[int, int], ...]
    values: tuple[int, ...]


class _Kernel:
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


class _Driver:
    """Notes what it is told to launch."""

    def __init__(self) -> None:
        self.launches: list[_Launch] = []
        self.sizes: dict[int, list[int]] = {}
        self.context, self.code = 1, 0
        kind = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.POINTER(_Config), ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p
        )
        current = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
        self._kept = (kind(self._launch), current(self._current))
        launch, context = (ctypes.cast(one, ctypes.c_void_p).value or 0 for one in self._kept)
        self.told = native.Driver(launch, context, 0, self._size)
        self.graph = _Graphs(self)

    def _launch(self, config: Any, function: int, parameters: Any, _extra: Any) -> int:
        one = config.contents
        attributes = tuple([(one.attributes[i][0], one.attributes[i][2]) for i in range(one.count)])
        values = self.values(function, parameters)
        self.launches.append(
            _Launch(function, tuple(one.grid), one.block[0], one.shared, one.stream, attributes, values)
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


class _Graphs:
    """The driver's graphs: a graph's launch notes its nodes."""

    def __init__(self, driver: _Driver) -> None:
        self._driver = driver
        self.nodes: list[_Launch] = []
        self.launched: list[tuple[int, list[_Launch]]] = []
        self.runnables: list[int] = []
        self.edges: list[tuple[int, int, int]] = []
        self.capturing = self.refused = self.destroyed = self.priority = self.made = self.mode = 0
        self.modes: list[tuple[str, int]] = []
        self.set: list[int] = []
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
        )
        self.functions = tuple([ctypes.cast(one, pointer).value or 0 for one in self._kept])

    def _node(self, parameters: Any) -> _Launch:
        one = parameters.contents
        values = self._driver.values(one.function, one.parameters)
        return _Launch(one.function, tuple(one.grid), one.block[0], one.shared, 0, (), values)

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

    def _instantiate(self, runnable: Any, _graph: int, _flags: int) -> int:
        self.modes.append(("instantiate", self.mode))
        self.made += 1
        runnable[0] = 1 + self.made
        return self.refused

    def _set(self, _runnable: int, node: int, parameters: Any) -> int:
        self.set.append(node)
        self.nodes[node - 1] = self._node(parameters)
        return 0

    def _launch(self, runnable: int, stream: int) -> int:
        self.modes.append(("launch", self.mode))
        self.runnables.append(runnable)
        self.launched.append((stream, list(self.nodes)))
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


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Driver]:
    """Take the CPU for a GPU whose driver notes launches."""
    made = _Driver()
    _drivers.append(made)  # objects that are freed later call it
    monkeypatch.setattr(fast, "_JIT_FUNCTION", _Kernel)
    monkeypatch.setattr(fast, "HIP", False)
    monkeypatch.setattr(fast, "current_device", lambda: -1)
    monkeypatch.setattr(fast, "stream_of", lambda _index: STREAM)
    monkeypatch.setattr(torch.cuda, "device", lambda _device: threading.Lock())
    monkeypatch.setattr(packed, "driver", lambda: made.told)
    fast.forget()
    yield made
    fast.forget()


def _kernels(driver: _Driver, **launcher: Any) -> tuple[_Kernel, _Kernel]:
    first = _Kernel(
        7, {"a": "*fp32", "b": "*fp32", "c": "*i8", "n": "i32", "f": "fp32", "BLOCK": "constexpr"}, **launcher
    )
    second = _Kernel(8, {"a": "*i32", "b": "*fp32", "c": "*fp32", "n": "constexpr", "BLOCK": "constexpr"}, **launcher)
    driver.sizes |= {7: [8, 8, 8, 4, 4, 8, 8], 8: [8, 8, 8, 8]}
    return first, second


def _adding(first: _Kernel, second: _Kernel) -> Repeated:
    """Return a call with a temporary, an argument in the middle of a tensor, numbers, None and two results."""

    @Repeated
    def compute(x: Any, y: Any, number: int) -> Any:
        some = allocate.empty((8,), dtype=torch.float32, device=x.device)
        out = allocate.empty((4,), dtype=torch.float32, device=x.device)
        launch(first, (3, 2), (x[4:], None, some, number, 0.5), {}, CONFIG)
        launch(second, (1,), (some.view(torch.int32), y, out, 1), {}, CONFIG)
        return out.view(2, 2), None

    return compute


def _recorded(compute: Repeated) -> Callable[..., Any]:
    (call,) = compute.calls._kept.values()
    return call


def test_a_call_launches_what_the_written_function_launches(driver: _Driver) -> None:
    compute = _adding(*_kernels(driver))
    x, y = torch.zeros(16), torch.zeros(16)
    for _ in range(2):
        compute((x, y), -9)
    assert type(_recorded(compute)).__name__ == "Replay"
    assert not driver.launches
    out, nothing = compute((x, y), -9)
    assert (out.shape, out.dtype, nothing) == ((2, 2), torch.float32, None)
    first, second = driver.launches
    half = int.from_bytes(struct.pack("<f", 0.5), "little")
    some = first.values[2]
    assert first == _Launch(7, (3, 2, 1), 128, 1024, STREAM, (), (x.data_ptr() + 16, 0, some, 2**32 - 9, half, 0, 0))
    assert second == _Launch(8, (1, 1, 1), 128, 1024, STREAM, (), (some, y.data_ptr(), out.data_ptr(), 0))
    other = torch.zeros(16)
    compute((x, other), -9)
    assert driver.launches[-1].values[1] == other.data_ptr()


def test_a_kernel_may_begin_early(driver: _Driver) -> None:
    compute = _adding(*_kernels(driver, launch_pdl=True))
    for _ in range(3):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert [one.attributes for one in driver.launches] == [((6, 1),)] * 2


def test_odd_addresses_hooks_poison_and_threads_leave_the_fast_way(
    driver: _Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _kernels(driver)
    compute = _adding(first, second)
    x, y = torch.zeros(17), torch.zeros(16)
    for _ in range(3):
        compute((x[:16], y), 9)
    assert len(driver.launches) == 2
    compute((x[1:], y), 9)
    with allocate.poisoned():
        assert compute((x[:16], y), 9)[0].isnan().all()
    for hook in (lambda *_: None, SimpleNamespace(calls=[print])):
        with monkeypatch.context() as patch:
            patch.setattr(fast.runtime, "launch_enter_hook", hook)
            compute((x[:16], y), 9)
    second.pre_run_hooks.append(print)
    compute((x[:16], y), 9)
    second.pre_run_hooks.clear()
    driver.context = 0
    compute((x[:16], y), 9)
    driver.context = 1
    monkeypatch.setattr(fast, "current_device", lambda: 3)
    compute.calls.get((x[:16], y), (9,))
    assert len(driver.launches) == 2
    compute((x[:16], y), 9)
    assert len(driver.launches) == 4


@pytest.fixture
def graphs(driver: _Driver, monkeypatch: pytest.MonkeyPatch) -> _Graphs:
    """Have calls of two launches made as graphs."""
    driver.told = driver.told._replace(graphs=driver.graph.functions)
    monkeypatch.setattr(packed, "LEAST_OF_GRAPH", 2)
    return driver.graph


def test_several_launches_are_one_graph(driver: _Driver, graphs: _Graphs) -> None:
    compute = _adding(*_kernels(driver))
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
    compute.calls._kept.clear()
    compute.calls.recent.clear()
    gc.collect()
    assert graphs.destroyed == 2


def test_only_parameters_that_changed_are_set(
    driver: _Driver, graphs: _Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _kernels(driver)

    @Repeated
    def compute(x: Any, y: Any) -> Any:
        out = allocate.empty((4,), dtype=torch.float32, device=x.device)
        launch(first, (1,), (x, None, y, 3, 0.5), {}, CONFIG)
        launch(second, (1,), (y.view(torch.int32), y, out, 1), {}, CONFIG)
        return out

    streams = [10]
    monkeypatch.setattr(fast, "stream_of", lambda _index: streams[-1])
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


def test_a_graph_is_made_as_if_no_thread_captured(driver: _Driver, graphs: _Graphs) -> None:
    """What the driver refuses while any stream is captured is done in its relaxed mode (2), which ends behind it."""
    compute = _adding(*_kernels(driver))
    for _ in range(4):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert graphs.modes == [("create", 2), ("instantiate", 2), ("launch", 2), ("launch", 0)]
    assert graphs.mode == 0
    graphs.modes.clear()
    fast.forget()
    gc.collect()
    assert graphs.modes == [("destroy", 2)] * 2
    assert graphs.mode == 0


def test_a_stream_that_is_captured_gets_launches(driver: _Driver, graphs: _Graphs) -> None:
    compute = _adding(*_kernels(driver))
    x = torch.zeros(16)
    graphs.capturing = 1
    for _ in range(3):
        compute((x, x), 9)
    assert (len(driver.launches), graphs.launched) == (2, [])
    graphs.capturing = 0
    compute((x, x), 9)
    assert (len(driver.launches), len(graphs.launched)) == (2, 1)


def test_each_stream_has_a_graph_of_its_own(driver: _Driver, graphs: _Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    streams: list[int] = [STREAM]
    monkeypatch.setattr(fast, "stream_of", lambda _index: streams[-1])
    compute = _adding(*_kernels(driver))
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
    driver: _Driver, graphs: _Graphs, monkeypatch: pytest.MonkeyPatch, stream: int, priority: int
) -> None:
    monkeypatch.setattr(fast, "stream_of", lambda _index: stream)
    graphs.priority = priority
    compute = _adding(*_kernels(driver))
    for _ in range(4):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert (len(driver.launches), graphs.launched) == (4, [])


def test_a_driver_that_makes_no_graph_gets_launches(driver: _Driver, graphs: _Graphs) -> None:
    compute = _adding(*_kernels(driver))
    x = torch.zeros(16)
    graphs.refused = 1
    for _ in range(4):
        compute((x, x), 9)
    assert (len(driver.launches), graphs.launched) == (4, [])


def test_graphs_of_a_process_are_so_many_at_most(driver: _Driver, graphs: _Graphs) -> None:
    """Each takes memory of the GPU: the others get launches, until some are freed."""
    gc.collect()
    compute = _adding(*_kernels(driver))
    given = torch.zeros(16), torch.zeros(16)
    most, more = 256, 4
    for number in range(most + more):
        for _ in range(3):
            compute(given, number)
    assert (len(graphs.launched), len(driver.launches)) == (most, 2 * more)
    fast.forget()
    gc.collect()
    for _ in range(3):
        compute(given, 9)
    assert (len(graphs.launched), len(driver.launches)) == (most + 1, 2 * more)


def test_a_single_launch_that_may_begin_early_is_in_no_graph(
    driver: _Driver, graphs: _Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There it would wait for the end of what is in front of it; of several, the first one does."""
    monkeypatch.setattr(packed, "LEAST_OF_GRAPH", 1)
    first, second = _kernels(driver, launch_pdl=True)

    @Repeated
    def alone(x: Any) -> Any:
        out = allocate.empty((16,), dtype=torch.float32, device=x.device)
        launch(first, (1,), (x, None, out, 3, 0.5), {}, CONFIG)
        return out

    for _ in range(3):
        alone((torch.zeros(16),))
    assert (len(driver.launches), graphs.launched) == (1, [])
    assert driver.launches[0].attributes == ((6, 1),)
    compute = _adding(first, second)
    for _ in range(3):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert (len(driver.launches), len(graphs.launched)) == (1, 1)
    assert graphs.edges == [(1, 2, 0x010001)]


@pytest.mark.parametrize(("early", "edge"), [(True, 0x010001), (False, 0)])
def test_a_second_launch_that_may_begin_early_has_an_edge_that_says_so(
    driver: _Driver, graphs: _Graphs, early: bool, edge: int
) -> None:
    first, second = _kernels(driver)
    second.launcher["launch_pdl"] = early
    compute = _adding(first, second)
    for _ in range(3):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert len(graphs.launched) == 1
    assert graphs.edges == [(1, 2, edge)]


def test_a_graph_that_the_driver_refuses_is_an_error(driver: _Driver, graphs: _Graphs) -> None:
    compute = _adding(*_kernels(driver))
    x = torch.zeros(16)
    for _ in range(3):
        compute((x, x), 9)
    driver.code = 700
    with pytest.raises(RuntimeError, match="700"):
        compute((x, x), 9)
    assert len(graphs.launched) == 2


def test_what_the_driver_refuses_is_an_error(driver: _Driver) -> None:
    compute = _adding(*_kernels(driver))
    x, y = torch.zeros(16), torch.zeros(16)
    for _ in range(3):
        compute((x, y), 9)
    driver.code = 700
    with pytest.raises(RuntimeError, match="700"):
        compute((x, y), 9)


@pytest.mark.parametrize(
    "changed",
    [{"global_scratch_size": 8}, {"profile_scratch_size": 8}, {"launch_cooperative_grid": True}, {"gsan_enabled": 1}],
)
def test_launches_of_another_kind_are_left_to_triton(driver: _Driver, changed: dict[str, Any]) -> None:
    compute = _adding(*_kernels(driver, **changed))
    for _ in range(3):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert type(_recorded(compute)).__name__ == "function"
    assert not driver.launches


def test_parameters_that_the_driver_does_not_expect_are_left_to_triton(driver: _Driver) -> None:
    compute = _adding(*_kernels(driver))
    driver.sizes[8] = [8, 8, 4]
    for _ in range(3):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert type(_recorded(compute)).__name__ == "function"


def test_parameters_are_packed_as_triton_packs_them() -> None:
    for kind, value, wanted in (
        ("i1", True, 1),
        ("i8", -1, 255),
        ("i16", -2, 65534),
        ("i32", 7, 7),
        ("fp16", 1.5, 0x3E00),
        ("bf16", 1.5, 0x3FC0),
        ("fp32", 3, 0x40400000),
    ):
        assert packed._parameter(kind, value) == (SIZES[kind], wanted)
    assert packed._parameter("u64", 2**64 - 1) == (8, 2**64 - 1)
    assert packed._parameter("fp64", 1.0) == (8, 0x3FF0000000000000)
    assert packed._parameter("*fp32", Address(2, 16)) == (8, (2, 16))
    unknown: tuple[tuple[Any, Any], ...] = (("tensordesc<fp32[8]>", 1), ("i32", 0.5), ("*fp32", "x"), (("i32",), 1))
    for each, given in unknown:
        with pytest.raises(packed.UnknownError):
            packed._parameter(each, given)


def test_it_is_freed_with_what_it_holds(driver: _Driver) -> None:
    compute = _adding(*_kernels(driver))
    for _ in range(3):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    gc.collect()
    before = _replays()
    compute.calls._kept.clear()
    compute.calls.recent.clear()
    gc.collect()
    assert _replays() == before - 1


def _replays() -> int:
    """Return how many objects there are whose memory can be part of a cycle."""
    return sum(type(one).__name__ == "Replay" for one in gc.get_objects())


def test_wrong_arguments_are_refused(driver: _Driver) -> None:
    compute = _adding(*_kernels(driver))
    x = torch.zeros(16)
    for _ in range(3):
        compute((x, x), 9)
    call = _recorded(compute)
    for args in ((), ((x,),), ([x, x],), ((x, x), 9)):
        with pytest.raises(TypeError):
            call(*args)
    with pytest.raises(TypeError):
        native.module().Replay()


def test_numbers_of_the_call_are_handed_to_the_kernel(driver: _Driver) -> None:
    kernel = _Kernel(9, {"a": "*fp32", "n": "i32", "BLOCK": "constexpr"})
    driver.sizes[9] = [8, 4]

    @NumberedPlan
    def plan(_x: Any, _number: Any, option: str) -> Callable[..., Any]:
        assert option == "some"

        def call(x: Any, number: Any) -> Any:
            launch(kernel, (1,), (x, number), {}, CONFIG)
            return x

        return call

    x = torch.zeros(16)
    for number in (3, 5, 7, -9, 2, 11):
        plan((x,), (number,), "some")
    assert [one.values[1] for one in driver.launches] == [7, 2**32 - 9, 2, 11]
    for number in (16, 1, 1 << 40):  # compiled to other kernels
        plan((x,), (number,), "some")
    assert len(driver.launches) == 4


def test_a_number_that_is_computed_with_is_in_no_record(driver: _Driver) -> None:
    kernel = _Kernel(9, {"a": "*fp32", "n": "i32", "BLOCK": "constexpr"})
    driver.sizes[9] = [8, 4]

    @NumberedPlan
    def plan(*_: Any) -> Callable[..., Any]:
        def call(x: Any, number: Any) -> Any:
            launch(kernel, (1,), (x, number + 1), {}, CONFIG)
            return x

        return call

    x = torch.zeros(16)
    for number in (3, 5, 7, 9):
        plan((x,), (number,))
    assert not driver.launches
    assert "plain" in repr(_recorded(plan))


@pytest.mark.parametrize("built", [True, False])
def test_torchs_compiler_runs_calls_as_they_are(driver: _Driver, built: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not built:
        monkeypatch.setattr(native, "module", lambda: None)
        monkeypatch.setattr(packed, "module", lambda: None)
    first, second = _kernels(driver)
    compute = _adding(first, second)
    y = torch.ones(16)

    def block(x: Any) -> Any:
        out, _ = compute((x * 2, y), 9)
        return out.shape, x + 1

    compiled = torch.compile(block, backend="eager")
    x = torch.arange(16.0)
    for _ in range(5):
        shape, after = compiled(x)
        assert shape == (2, 2)
        assert torch.equal(after, x + 1)
    assert len(driver.launches) == (6 if built else 0)
    torch._dynamo.reset()
