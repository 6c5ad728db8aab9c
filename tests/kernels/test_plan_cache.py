"""The plan cache: what captured calls launch and return, and which calls always run normally."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from rocmend.core.errors import UsageError
from rocmend.kernels import (
    allocate,
    caches,
    capture,
    cumsum,
    executor,
    gated_delta,
    gather_qmm,
    plan_cache,
    quantize,
    select,
    topk,
)
from rocmend.kernels import launch as launcher
from rocmend.kernels import quantized_matmul as product
from rocmend.kernels.caches import Cache
from rocmend.kernels.capture import Captured
from rocmend.kernels.common import semaphores
from rocmend.kernels.launch import launch
from rocmend.kernels.plan_cache import cached, cached_plan
from rocmend.kernels.target import CPU
from rocmend.kernels.tuning import Config

pytestmark = pytest.mark.cpu

CONFIG = Config({"BLOCK": 64})


class _Kernel:
    """Looks like a function under ``triton.jit``: each launch of what it was compiled to is noted."""

    def __init__(self, *names: str) -> None:
        self.arg_names = [*names, "BLOCK"]
        self.params = [SimpleNamespace(name=name, is_constexpr=name.isupper(), default=None) for name in self.arg_names]
        self.fn = lambda: None
        self.pre_run_hooks: list[Any] = []
        self.plain: list[tuple[Any, ...]] = []
        self.fast: list[tuple[Any, ...]] = []

    def __getitem__(self, _grid: tuple[int, ...]) -> Any:
        def run(*args: Any, **_kwargs: Any) -> Any:
            self.plain.append(args)
            return SimpleNamespace(function=7, packed_metadata=("packed",), run=lambda *told: self.fast.append(told))

        return run


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take the CPU for a GPU on which compiled kernels are called."""
    monkeypatch.setattr(launcher, "_JIT_FUNCTION", _Kernel)
    monkeypatch.setattr(launcher, "current_device", lambda: -1)
    monkeypatch.setattr(launcher, "stream_of", lambda _index: 42)
    monkeypatch.setattr(torch.cuda, "device", lambda _device: threading.Lock())
    launcher.forget()
    yield
    launcher.forget()


def _adding(kernel: Any, runs: list[int]) -> cached:
    """Return a call with a temporary, an argument in the middle of a tensor, a number, None and an option."""

    @cached
    def compute(x: Any, y: Any, option: int) -> Any:
        runs.append(option)
        some = allocate.empty((8,), dtype=torch.float32, device=x.device)
        out = allocate.empty((4,), dtype=torch.float32, device=x.device)
        launch(kernel, (3, 2), (x[4:], None, some, option), {}, CONFIG)
        launch(kernel, (1,), (some.view(torch.int32), y, out, 5), {}, CONFIG)
        return out.view(2, 2)

    return compute


@pytest.mark.usefixtures("gpu")
def test_a_replayed_call_launches_the_same() -> None:
    kernel, runs = _Kernel("a", "b", "c", "n"), list[int]()
    compute = _adding(kernel, runs)
    x, y = torch.zeros(16), torch.zeros(16)
    for _ in range(4):
        out = compute((x, y), 9)
    assert len(runs) == 2  # as it is written, then to be recorded
    assert out.shape == (2, 2)
    assert out.dtype == torch.float32
    first, second = kernel.fast[-2:]
    assert first[:9] == (3, 2, 1, 42, 7, ("packed",), None, None, None)
    assert first[9:11] == (x.data_ptr() + 16, None)
    assert first[12:] == (9, 64)
    assert second[:4] == (1, 1, 1, 42)
    assert second[9] == first[11]  # the temporary
    assert second[10:12] == (y.data_ptr(), out.data_ptr())
    assert second[12:] == (5, 64)
    other = torch.zeros(16)
    compute((other, y), 9)
    assert kernel.fast[-2][9] == other.data_ptr() + 16
    assert len(runs) == 2


@pytest.mark.usefixtures("gpu")
def test_unaligned_tensors_other_options_and_other_shapes_are_not_replayed() -> None:
    kernel, runs = _Kernel("a", "b", "c", "n"), list[int]()
    compute = _adding(kernel, runs)
    x, y = torch.zeros(17), torch.zeros(16)
    for _ in range(3):
        compute((x[:16], y), 9)
    assert runs == [9, 9]
    compute((x[1:], y), 9)
    assert runs == [9, 9, 9]
    compute((x[:16], y), 8)
    compute((x[:15], y), 9)
    compute((torch.zeros(32)[::2], y), 9)
    assert runs[3:] == [8, 9, 9]


@pytest.mark.usefixtures("gpu")
def test_hooks_another_device_and_poison_are_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, runs = _Kernel("a", "b", "c", "n"), list[int]()
    compute = _adding(kernel, runs)
    x, y = torch.zeros(16), torch.zeros(16)
    for _ in range(3):
        compute((x, y), 9)
    before = len(kernel.plain)
    kernel.pre_run_hooks.append(print)
    compute((x, y), 9)
    kernel.pre_run_hooks.clear()
    assert len(kernel.plain) == before + 2
    for hook in (lambda *_: None, SimpleNamespace(calls=[print])):
        with monkeypatch.context() as patch:
            patch.setattr(launcher.runtime, "launch_enter_hook", hook)
            compute((x, y), 9)
        before += 2
        assert len(kernel.plain) == before + 2
    with allocate.poisoned():
        assert compute((x, y), 9).isnan().all()
    assert len(runs) == 2


@pytest.mark.usefixtures("gpu")
def test_memory_that_is_zeroed_first_is_zeroed_each_time() -> None:
    kernel = _Kernel("a", "b", "n")

    @cached
    def zeroed(x: Any) -> Any:
        out = allocate.empty((64,), dtype=torch.int32, device=x.device).zero_()
        launch(kernel, (1,), (x, out, 3), {}, CONFIG)
        return out

    @cached
    def later(x: Any) -> Any:
        runs.append(1)
        out = allocate.empty((64,), dtype=torch.int32, device=x.device)
        launch(kernel, (1,), (x, out, 3), {}, CONFIG)
        return out.zero_()

    runs: list[int] = []
    x = torch.zeros(64)
    for _ in range(4):
        result = zeroed((x,))
        assert not result.any()
        result.fill_(1)
        later((x,))
    assert sum(runs) == 5  # a launch has written to it before: never recorded


class _Two(NamedTuple):
    first: Any
    second: Any


def _left(compute: Callable[..., Any]) -> int:
    """Return how often a call of four runs as it is written, and so does one attempt to record it."""
    runs: list[int] = []

    @cached
    def counted(x: Any) -> Any:
        runs.append(1)
        return compute(x)

    x = torch.arange(16.0)
    expected = compute(x)
    for _ in range(4):
        found = counted((x,))
        assert type(found) is type(expected)
    return len(runs)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x + 1,
        lambda x: x.sum().item() and x,
        lambda x: x[2:],
        lambda x: allocate.empty((8,), dtype=x.dtype, device=x.device)[1:],
        lambda x: x.clone(),
        lambda x: (allocate.empty((2,), dtype=x.dtype, device=x.device), 3),
        lambda x: [allocate.empty((2,), dtype=x.dtype, device=x.device)],
        lambda x: (allocate.empty((2,), dtype=x.dtype, device=x.device),) * 2,
        lambda x: x.fill_(3.0),
        lambda x: 1 % x.data_ptr() and allocate.empty((2,), dtype=x.dtype, device=x.device),  # fails without data
    ],
)
def test_calls_that_compute_with_torch_or_return_parts_are_not_captured(compute: Callable[..., Any]) -> None:
    assert _left(compute) == 5


def test_results_keep_their_kind_and_layout() -> None:
    def two(x: Any) -> Any:
        first = allocate.empty((2, 3), dtype=torch.int32, device=x.device)
        return _Two(first.t().view(torch.uint32), None)

    assert _left(two) == 2
    repeated = cached(two)
    x = torch.zeros(4)
    for _ in range(3):
        found = repeated((x,))
        assert type(found) is _Two
        assert (found.first.shape, found.first.stride(), found.first.dtype) == ((3, 2), (1, 3), torch.uint32)
        assert found.second is None
    same = cached(lambda x, y: (y, x))
    for _ in range(3):
        assert same((x, found.first))[1] is x


def test_errors_are_raised_again_and_gradients_are_not_captured() -> None:
    runs: list[bool] = []

    @cached
    def compute(x: Any) -> Any:
        runs.append(x.requires_grad)
        if x.dim() > 1:
            raise UsageError("compute", "expected one axis.")
        return allocate.empty((2,), dtype=x.dtype, device=x.device)

    for _ in range(3):
        with pytest.raises(UsageError, match="one axis"):
            compute((torch.zeros(2, 2),))
    runs.clear()
    x = torch.zeros(4, requires_grad=True)
    for _ in range(3):
        compute((x,))
    assert runs == [True] * 3
    with torch.no_grad():
        for _ in range(3):
            compute((x,))
    assert runs == [True] * 3 + [True, False]  # without data none requires a gradient
    compute((x,))
    assert runs[5:] == [True]


def test_a_plan_is_kept_if_the_call_cannot_be_captured() -> None:
    plans: list[int] = []

    @cached_plan
    def planned(x: Any, more: int) -> Callable[[Any], Any]:
        plans.append(x.numel())
        return lambda x: x + more

    x = torch.zeros(4)
    for _ in range(5):
        assert planned((x,), 3).tolist() == [3.0] * 4
    assert plans == [4, 4]  # the second attempt was without data


@pytest.mark.usefixtures("gpu")
def test_on_amd_storage_beyond_two_gibibytes_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "HIP", True)
    monkeypatch.setattr(launcher, "_LARGEST_BUFFER_BYTES", 1000)
    kernel, runs = _Kernel("a", "b", "c", "n"), list[int]()
    compute = _adding(kernel, runs)
    large, y = torch.zeros(300), torch.zeros(16)
    for _ in range(3):
        compute((large[:16], y), 9)
    assert len(runs) == 4  # each as it is written, and once to be recorded
    for _ in range(3):
        compute((torch.zeros(16), y), 9)
    assert len(runs) == 4


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("most", [1 << 20, 8])
def test_small_temporary_tensors_share_an_allocation(most: int, monkeypatch: pytest.MonkeyPatch) -> None:

    made: list[Any] = []
    output = allocate.Output

    def noted(*args: Any) -> Any:
        made.append(args[0])
        return output(*args)

    monkeypatch.setattr(allocate, "Output", noted)
    monkeypatch.setattr(capture, "MAX_POOLED_BYTES", most)
    kernel = _Kernel("a", "b", "c", "n")

    @cached
    def compute(x: Any) -> Any:
        first = allocate.empty((3,), dtype=torch.float64, device=x.device)
        second = allocate.empty((5,), dtype=torch.int32, device=x.device)
        launch(kernel, (1,), (x, first[1:], second, 3), {}, CONFIG)
        return x

    x = torch.zeros(16)
    for _ in range(4):
        compute((x,))
    (_, typed, other, _), told = kernel.plain[-1], kernel.fast[-1]
    assert (typed.dtype, typed.shape, other.dtype, other.shape) == (torch.float64, (2,), torch.int32, (5,))
    assert [tuple(shape) for shape in made] == ([(512,)] if most > 8 else [(3,), (5,)])
    if most > 8:
        assert told[11] - told[10] == 256 - 8


@pytest.mark.slow
def test_a_capture_does_not_import_torchs_compiler() -> None:
    source = """
import sys, torch
from rocmend.kernels import allocate
from rocmend.kernels.plan_cache import cached
call = cached(lambda x: allocate.empty((2, 3), dtype=x.dtype, device=x.device).t())
for _ in range(3):
    call((torch.zeros(4),))
assert "rocmend.kernels.capture" in sys.modules
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "False\n"


@pytest.mark.slow
def test_without_triton_calls_that_recur_are_computed_by_torch() -> None:
    source = """
import sys
sys.modules["triton"] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "triton" else find(name, *rest)
import torch
from rocmend import kernels
x = torch.ones(2, 8)
for _ in range(4):
    out = kernels.rms_norm(x, None, 0.0)
assert torch.equal(out, x)
"""
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    subprocess.run([sys.executable, "-c", source], check=True, env=env)


@pytest.mark.usefixtures("gpu")
def test_other_threads_launch_while_one_captures() -> None:
    kernel, entered, done = _Kernel("a", "n"), threading.Event(), threading.Event()
    x, y = torch.zeros(16), torch.zeros(16)

    @cached
    def compute(x: Any) -> Any:
        if x.device.type == "meta":
            entered.set()
            assert done.wait(10)
        launch(kernel, (1,), (x, 3), {}, CONFIG)
        return x

    def meanwhile() -> None:
        assert entered.wait(10)
        launch(kernel, (1,), (y, 4), {}, CONFIG)
        targets.append(executor.target_for(y.device))
        done.set()

    targets: list[Any] = []
    compute((x,))
    thread = threading.Thread(target=meanwhile)
    thread.start()
    compute((x,))
    thread.join()
    assert [args[1] for args in kernel.plain].count(4) == 1
    assert targets == [CPU]
    assert executor.switch.active is None


def test_a_capture_leaves_no_cache_entries_and_forgetting_drops_replays() -> None:
    kept: Cache[int] = Cache()
    runs: list[str] = []

    @cached
    def compute(x: Any) -> Any:
        runs.append(x.device.type)
        assert (x.device.type == "meta") == (not kept)
        kept.keep(x.device.type, 1)
        return allocate.empty((2,), dtype=x.dtype, device=x.device)

    kept.keep("before", 1)
    x = torch.zeros(4)
    for _ in range(3):
        compute((x,))
    assert runs == ["cpu", "meta"]
    assert set(kept) == {"before", "cpu"}
    with select.prefer("triton"):
        pass
    assert not kept
    kept.keep("before", 1)
    compute((x,))
    assert runs[2:] == ["cpu"]


def test_caches_that_are_forgotten_while_isolated_stay_empty() -> None:
    kept: Cache[int] = Cache()
    kept.keep(1, 1)
    with caches.isolated():
        assert not kept
    assert kept == {1: 1}
    with caches.isolated():
        caches.forget()
    assert not kept


@pytest.mark.usefixtures("gpu")
def test_calls_with_a_workspace_of_the_stream_are_captured() -> None:
    kernel = _Kernel("x", "counters", "scratch", "n")
    zeros, scratch = torch.zeros(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int64)
    runs: list[int] = []
    rooms: list[Any] = [semaphores.Workspace(zeros, scratch)]
    asked: list[tuple[Any, ...]] = []

    def room(device: Any, counters: int, size: int) -> Any:
        if device.type == "meta":
            return original(device, counters, size)
        asked.append((counters, size))
        return rooms[-1]

    original = semaphores.workspace
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(semaphores, "workspace", room)

        @cached
        def compute(x: Any) -> Any:
            runs.append(1)
            found = semaphores.workspace(x.device, 3, 100)
            if found is not None:
                launch(kernel, (1,), (x, found.counters, found.scratch.view(torch.float32), 3), {}, CONFIG)
            return x

        x = torch.zeros(16)
        for _ in range(4):
            compute((x,))
        assert kernel.fast[-1][9:12] == (x.data_ptr(), zeros.data_ptr(), scratch.data_ptr())
        assert set(asked) == {(3, 100)}
        assert len(runs) == 2
        rooms.append(None)  # a capture: the call as it is written decides
        compute((x,))
        assert len(runs) == 3


def test_calls_are_distinguished_by_all_but_elements_and_addresses() -> None:
    x, y = torch.zeros(4, 4), torch.ones(4, 4)
    kinds: list[tuple[Any, ...]] = [
        (x, y),
        (x, y.t()),
        (x, y.double()),
        (x, y[:2]),
        (x, y.to("meta")),
        (x, None),
        (x, None, y),
        (x, y, None),
        (x.half(), y),
        (x.view(2, 8), y),
    ]
    plans: list[tuple[Any, ...]] = []

    @cached_plan
    def planned(*given: Any) -> Callable[..., int]:
        plans.append(given)
        number = len(plans)
        return lambda *_: number

    with plan_cache.capture_after(100):
        for option in ("a", "b"):
            for tensors in kinds:
                planned(tensors, option)
        assert len(plans) == 2 * len(kinds)
        for number, tensors in enumerate(kinds, 1):
            again = tuple(None if one is None else one.clone(memory_format=torch.preserve_format) for one in tensors)
            assert planned(tensors, "a") == number
            if all(a is None or a.stride() == b.stride() for a, b in zip(again, tensors, strict=True)):
                assert planned(again, "b") == number + len(kinds)
        assert planned((x, x), "a") == 1


@pytest.mark.usefixtures("gpu")
def test_numbers_of_the_call_are_passed_to_the_kernel() -> None:
    kernel, plans = _Kernel("a", "n"), list[str]()

    @cached_plan
    def planned(_x: Any, _number: Any, option: str) -> Callable[..., Any]:
        plans.append(option)

        def call(x: Any, number: Any) -> Any:
            launch(kernel, (1,), (x, number), {}, CONFIG)
            return x

        return call

    x = torch.zeros(16)
    for number in (3, 5, 7, -9, 2, 11):
        planned((x,), "some", numbers=(number,))
    assert plans == ["some"] * 2  # as it is, then to be captured
    assert [args[10] for args in kernel.fast[-4:]] == [7, -9, 2, 11]
    for number in (16, 1, 1 << 40):  # compiled to other kernels
        planned((x,), "some", numbers=(number,))
    assert len(plans) == 5


@pytest.mark.usefixtures("gpu")
def test_a_call_that_computes_with_a_number_is_not_captured() -> None:
    kernel = _Kernel("a", "n")

    @cached_plan
    def planned(*_: Any) -> Callable[..., Any]:
        def call(x: Any, number: Any) -> Any:
            launch(kernel, (1,), (x, number + 1), {}, CONFIG)
            return x

        return call

    for number in (3, 5, 7, 9):
        planned((torch.zeros(16),), numbers=(number,))
    assert [args[1] for args in kernel.plain] + [args[10] for args in kernel.fast] == [4, 6, 8, 10]


@pytest.mark.usefixtures("gpu")
def test_torchs_compiler_runs_calls_as_they_are() -> None:
    try:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    except ImportError as error:
        pytest.skip(f"this torch cannot compile a sum with this Triton: {str(error)[:200]}")
    kernel = _Kernel("a", "b", "c", "n")
    compute, y = _adding(kernel, []), torch.ones(16)

    def block(x: Any) -> Any:
        return compute((x * 2, y), 9).shape, x + 1

    compiled, x = torch.compile(block, backend="eager"), torch.arange(16.0)
    for _ in range(5):
        shape, after = compiled(x)
        assert shape == (2, 2)
        assert torch.equal(after, x + 1)
    assert len(kernel.plain) + len(kernel.fast) == 2 * 5
    torch._dynamo.reset()


def _quantized(*shape: int) -> Any:
    return quantize(torch.randn(shape), 32, 4)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["topk", "cumsum", "gated_delta", "product", "gather_qmm"])
def test_public_functions_return_the_same_when_replayed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:

    torch.manual_seed(7)
    plain = torch.randn(3, 40)
    weights, experts = _quantized(16, 64), _quantized(3, 16, 64)
    heads, gates, state = torch.randn(1, 2, 2, 16), torch.rand(1, 2, 2), torch.randn(1, 2, 16, 16)
    x, rows = torch.randn(5, 64), torch.randn(2, 1, 64)
    calls: dict[str, Callable[[], Any]] = {
        "topk": lambda: topk(plain, 3),
        "cumsum": lambda: cumsum(plain, -1),
        "gated_delta": lambda: gated_delta(heads, heads, heads, gates, gates, state=state),
        "product": lambda: product(x, *weights, group_size=32),
        "gather_qmm": lambda: gather_qmm(rows, *experts, rhs_indices=torch.tensor([2, 0]), group_size=32),
    }
    made: list[Any] = []
    original = Captured

    def counted(**parts: Any) -> Any:
        made.append(original(**parts))
        return made[-1]

    monkeypatch.setattr(capture, "Captured", counted)
    with select.prefer("triton"):
        first = calls[name]()
        assert not made
        for _ in range(2):
            again = calls[name]()
            for a, b in zip(first, again, strict=True) if isinstance(first, tuple) else [(first, again)]:
                assert torch.equal(a, b)
        assert made
