"""Recorded calls in C: the same launches and results as the function that is written in Python."""

from __future__ import annotations

import gc
import struct
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from tests.kernels.native_driver import (
    CONFIG,
    SIZES,
    STREAM,
    Driver,
    Kernel,
    Launch,
    adding,
    driving,
    kernels,
    recorded,
)

from rocmend.kernels import allocate, native
from rocmend.kernels import launch as launcher
from rocmend.kernels.captured import Address
from rocmend.kernels.launch import launch
from rocmend.kernels.native import replay as native_replay
from rocmend.kernels.plan_cache import cached_plan

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(native.module() is None, reason="no C compiler here")]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    yield from driving(monkeypatch)


def test_a_call_launches_what_the_written_function_launches(driver: Driver) -> None:
    compute = adding(*kernels(driver))
    x, y = torch.zeros(16), torch.zeros(16)
    for _ in range(2):
        compute((x, y), -9)
    assert type(recorded(compute)).__module__ == "rocmend_kernels_replay"
    assert not driver.launches
    out, nothing = compute((x, y), -9)
    assert (out.shape, out.dtype, nothing) == ((2, 2), torch.float32, None)
    first, second = driver.launches
    half = int.from_bytes(struct.pack("<f", 0.5), "little")
    some = first.values[2]
    assert first == Launch(7, (3, 2, 1), 128, 1024, STREAM, (), (x.data_ptr() + 16, 0, some, 2**32 - 9, half, 0, 0))
    assert second == Launch(8, (1, 1, 1), 128, 1024, STREAM, (), (some, y.data_ptr(), out.data_ptr(), 0))
    other = torch.zeros(16)
    compute((x, other), -9)
    assert driver.launches[-1].values[1] == other.data_ptr()


def test_a_kernel_may_begin_early(driver: Driver) -> None:
    compute = adding(*kernels(driver, launch_pdl=True))
    for _ in range(3):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert [one.attributes for one in driver.launches] == [((6, 1),)] * 2


def test_odd_addresses_hooks_poison_and_threads_leave_the_fast_way(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = kernels(driver)
    compute = adding(first, second)
    x, y = torch.zeros(17), torch.zeros(16)
    for _ in range(3):
        compute((x[:16], y), 9)
    assert len(driver.launches) == 2
    compute((x[1:], y), 9)
    with allocate.poisoned():
        assert compute((x[:16], y), 9)[0].isnan().all()
    for hook in (lambda *_: None, SimpleNamespace(calls=[print])):
        with monkeypatch.context() as patch:
            patch.setattr(launcher.runtime, "launch_enter_hook", hook)
            compute((x[:16], y), 9)
    second.pre_run_hooks.append(print)
    compute((x[:16], y), 9)
    second.pre_run_hooks.clear()
    driver.context = 0
    compute((x[:16], y), 9)
    driver.context = 1
    monkeypatch.setattr(launcher, "current_device", lambda: 3)
    compute.calls.get((x[:16], y), (9,))
    assert len(driver.launches) == 2
    compute((x[:16], y), 9)
    assert len(driver.launches) == 4


def test_what_the_driver_refuses_is_an_error(driver: Driver) -> None:
    compute = adding(*kernels(driver))
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
def test_launches_of_another_kind_are_left_to_triton(driver: Driver, changed: dict[str, Any]) -> None:
    compute = adding(*kernels(driver, **changed))
    for _ in range(3):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert type(recorded(compute)).__name__ == "function"
    assert not driver.launches


def test_parameters_that_the_driver_does_not_expect_are_left_to_triton(driver: Driver) -> None:
    compute = adding(*kernels(driver))
    driver.sizes[8] = [8, 8, 4]
    for _ in range(3):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    assert type(recorded(compute)).__name__ == "function"


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
        assert native_replay._parameter(kind, value) == (SIZES[kind], wanted)
    assert native_replay._parameter("u64", 2**64 - 1) == (8, 2**64 - 1)
    assert native_replay._parameter("fp64", 1.0) == (8, 0x3FF0000000000000)
    assert native_replay._parameter("*fp32", Address(2, 16)) == (8, (2, 16))
    unknown: tuple[tuple[Any, Any], ...] = (("tensordesc<fp32[8]>", 1), ("i32", 0.5), ("*fp32", "x"), (("i32",), 1))
    for each, given in unknown:
        with pytest.raises(native_replay.UnknownError):
            native_replay._parameter(each, given)


def test_it_is_freed_with_what_it_holds(driver: Driver) -> None:
    compute = adding(*kernels(driver))
    for _ in range(3):
        compute((torch.zeros(16), torch.zeros(16)), 9)
    gc.collect()
    before = _replays()
    compute.calls.clear()
    gc.collect()
    assert _replays() == before - 1


def _replays() -> int:
    """Return how many objects there are whose memory can be part of a cycle."""
    return sum(type(one).__module__ == "rocmend_kernels_replay" for one in gc.get_objects())


def test_wrong_arguments_are_refused(driver: Driver) -> None:
    compute = adding(*kernels(driver))
    x = torch.zeros(16)
    for _ in range(3):
        compute((x, x), 9)
    call = recorded(compute)
    for args in ((), ((x,),), ([x, x],), ((x, x), 9)):
        with pytest.raises(TypeError):
            call(*args)
    with pytest.raises(TypeError):
        native.module().Replay()


def test_numbers_of_the_call_are_handed_to_the_kernel(driver: Driver) -> None:
    kernel = Kernel(9, {"a": "*fp32", "n": "i32", "BLOCK": "constexpr"})
    driver.sizes[9] = [8, 4]

    @cached_plan
    def plan(_x: Any, _number: Any, option: str) -> Callable[..., Any]:
        assert option == "some"

        def call(x: Any, number: Any) -> Any:
            launch(kernel, (1,), (x, number), {}, CONFIG)
            return x

        return call

    x = torch.zeros(16)
    for number in (3, 5, 7, -9, 2, 11):
        plan((x,), "some", numbers=(number,))
    assert [one.values[1] for one in driver.launches] == [7, 2**32 - 9, 2, 11]
    for number in (16, 1, 1 << 40):  # compiled to other kernels
        plan((x,), "some", numbers=(number,))
    assert len(driver.launches) == 4


def test_a_number_that_is_computed_with_is_in_no_record(driver: Driver) -> None:
    kernel = Kernel(9, {"a": "*fp32", "n": "i32", "BLOCK": "constexpr"})
    driver.sizes[9] = [8, 4]

    @cached_plan
    def plan(*_: Any) -> Callable[..., Any]:
        def call(x: Any, number: Any) -> Any:
            launch(kernel, (1,), (x, number + 1), {}, CONFIG)
            return x

        return call

    x = torch.zeros(16)
    for number in (3, 5, 7, 9):
        plan((x,), numbers=(number,))
    assert not driver.launches
    assert "_Uncaptured.compute" in repr(recorded(plan))


@pytest.mark.parametrize("built", [True, False])
def test_torchs_compiler_runs_calls_as_they_are(driver: Driver, built: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    except ImportError as error:
        pytest.skip(f"this torch cannot compile a sum with this Triton: {str(error)[:200]}")
    if not built:
        monkeypatch.setattr(native, "module", lambda: None)
        monkeypatch.setattr(native_replay, "module", lambda: None)
    first, second = kernels(driver)
    compute = adding(first, second)
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
