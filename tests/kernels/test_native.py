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
from rocmend.kernels.repeated import Repeated
from rocmend.kernels.replay import Address
from rocmend.kernels.tuning import Config

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(native.module() is None, reason="no C compiler here")]

CONFIG = Config({"BLOCK": 64})
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

    def _launch(self, config: Any, function: int, parameters: Any, _extra: Any) -> int:
        one = config.contents
        raw = [ctypes.string_at(parameters[i], size) for i, size in enumerate(self.sizes[function])]
        attributes = tuple([(one.attributes[i][0], one.attributes[i][2]) for i in range(one.count)])
        self.launches.append(
            _Launch(function, tuple(one.grid), one.block[0], one.shared, one.stream, attributes,
                    tuple([int.from_bytes(bits, "little") for bits in raw]))
        )  # fmt: skip
        return self.code

    def _current(self, context: Any) -> int:
        context[0] = self.context
        return 0

    def _size(self, function: int, index: int, _offset: Any, size: Any) -> int:
        sizes = self.sizes[function]
        if index >= len(sizes):
            return 1
        size._obj.value = sizes[index]
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Driver]:
    """Take the CPU for a GPU whose driver notes launches."""
    made = _Driver()
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
