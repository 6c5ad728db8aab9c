"""The fast launcher: what it tells apart, and when it leaves a launch to Triton."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from rocmend.kernels import allocate, caches, executor, select
from rocmend.kernels import launch as launcher
from rocmend.kernels.launch import LaunchPlan, bind, launch
from rocmend.kernels.ops.rowwise.rms_norm.function import rms_norm
from rocmend.kernels.target import CPU
from rocmend.kernels.tuning import Config
from rocmend.kernels.tuning.lookup import forced, observed

pytestmark = pytest.mark.cpu

CONFIG = Config({"BLOCK": 64, "num_warps": 4, "split": 2})


class _Compiled:
    """What Triton gives back for a launch."""

    packed_metadata = ("packed",)

    def __init__(self, kernel: FakeKernel, number: int) -> None:
        self.kernel, self.function = kernel, number

    def run(self, *arguments: Any) -> None:
        self.kernel.fast.append(arguments)


class FakeKernel:
    """Looks like a function under ``triton.jit`` with parameters (x, n, A, BLOCK), and notes how it is launched."""

    def __init__(self, names: tuple[str, ...] = ("x", "n", "A", "BLOCK")) -> None:
        self.arg_names = list(names)
        self.params = [
            SimpleNamespace(name=name, is_constexpr=name.isupper(), default=7 if name == "A" else None)
            for name in names
        ]
        self.fn = lambda: None
        self.pre_run_hooks: list[Any] = []
        self.plain: list[tuple[Any, ...]] = []
        self.fast: list[tuple[Any, ...]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def run(*args: Any, **kwargs: Any) -> _Compiled:
            self.plain.append((grid, args, kwargs))
            return _Compiled(self, len(self.plain))

        return run


@pytest.fixture(autouse=True)
def _as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    class NoGuard:
        def __init__(self, device: object) -> None:
            pass

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(launcher, "_JIT_FUNCTION", FakeKernel)
    monkeypatch.setattr(launcher, "current_device", lambda: -1)
    monkeypatch.setattr(launcher, "stream_of", lambda _index: 42)
    monkeypatch.setattr(torch.cuda, "device", NoGuard)
    launcher.forget()
    yield
    launcher.forget()


def _aligned(count: int = 64, dtype: Any = torch.float32) -> Any:
    tensor = torch.zeros(count, dtype=dtype)
    assert tensor.data_ptr() % 16 == 0
    return tensor


def test_the_second_launch_is_the_compiled_kernels() -> None:
    kernel, x = FakeKernel(), _aligned()
    launch(kernel, (3, 2), (x, 5), {"A": 1}, CONFIG)
    launch(kernel, (4,), (x, 5), {"A": 1}, CONFIG)
    assert kernel.plain == [((3, 2), (x, 5), {"A": 1, "BLOCK": 64, **CONFIG.options("cpu")})]
    ((*fixed, tensor, n, a, block),) = kernel.fast
    assert fixed == [4, 1, 1, 42, 1, ("packed",), None, None, None]
    assert tensor is x
    assert (n, a, block) == (5, 1, 64)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (5, 16),  # divisible by 16
        (5, 1),  # one is a constant
        (5, 5 + 2**31),  # 64 bits
        (2**31, 2**63),  # unsigned
        (5, 5.0),
        (1, True),
        (5, None),
        (1, None),
    ],
)
def test_a_number_of_another_kind_is_another_kernel(first: Any, second: Any) -> None:
    kernel, x = FakeKernel(), _aligned()
    for value in (first, second, first, second):
        launch(kernel, (1,), (x, value), {}, CONFIG)
    assert len(kernel.plain) == 2
    assert [call[4] for call in kernel.fast] == [1, 2]
    assert [call[10] for call in kernel.fast] == [first, second]


def test_alignment_and_dtype_are_told_apart() -> None:
    kernel, x = FakeKernel(), _aligned()
    tensors = [x, x[1:], x[4:], x.view(torch.int32), x.view(torch.int32)[1:]]
    for tensor in [*tensors, *tensors]:
        launch(kernel, (1,), (tensor, 5), {}, CONFIG)
    assert len(kernel.plain) == 4  # x[4:] stands on 16 bytes as x does
    assert [call[4] for call in kernel.fast] == [1, 1, 2, 1, 3, 4]


def test_on_amd_storage_beyond_two_gibibytes_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "HIP", True)
    monkeypatch.setattr(launcher, "_LARGEST_BUFFER_BYTES", 1000)
    kernel = FakeKernel()
    for tensor in (_aligned(64), _aligned(1024), _aligned(1024)[:8], _aligned(64)):
        launch(kernel, (1,), (tensor, 5), {}, CONFIG)
    assert [call[4] for call in kernel.fast] == [2, 1]


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, True), (1, 1.0), (0.0, -0.0), (0, False), ("a", "b"), (torch.float32, torch.float16)],
)
def test_constants_are_told_apart_by_type_and_sign(first: Any, second: Any) -> None:
    kernel, x = FakeKernel(), _aligned()
    for value in (first, second, first, second):
        launch(kernel, (1,), (x, 5), {"A": value}, CONFIG)
    assert [repr(call[2]["A"]) for call in kernel.plain] == [repr(first), repr(second)]
    assert [repr(call[11]) for call in kernel.fast] == [repr(first), repr(second)]


def test_nan_is_the_same_constant_each_time() -> None:
    kernel, x = FakeKernel(), _aligned()
    for _ in range(3):
        launch(kernel, (1,), (x, 5), {"A": float("nan")}, CONFIG)
    assert len(kernel.plain) == 1


def test_records_are_told_apart_by_identity() -> None:
    kernel, x = FakeKernel(), _aligned()
    other = Config({"BLOCK": 128, "num_warps": 8})
    for config in (CONFIG, other, CONFIG, other):
        launch(kernel, (1,), (x, 5), {}, config)
    assert [call[12] for call in kernel.fast] == [64, 128]
    assert [call[2]["num_warps"] for call in kernel.plain] == [4, 8]


def test_a_record_that_went_away_is_not_taken_for_a_new_one() -> None:
    kernel, x = FakeKernel(), _aligned()
    for block in range(1, 200):
        launch(kernel, (1,), (x, 5), {}, Config({"BLOCK": block}))
        assert kernel.plain[-1][2]["BLOCK"] == block
    assert kernel.fast == []


def test_a_constant_left_out_has_its_default() -> None:
    kernel, x = FakeKernel(), _aligned()
    for _ in range(2):
        launch(kernel, (1,), (x, 5), {}, CONFIG)
    assert kernel.fast[0][-2:] == (7, 64)


def test_an_empty_grid_launches_nothing() -> None:
    kernel = FakeKernel()
    launch(kernel, (3, 0), (_aligned(), 5), {}, CONFIG)
    assert kernel.plain == []


def test_the_first_tensor_may_come_later() -> None:
    kernel, x = FakeKernel(), _aligned()
    launch(kernel, (1,), (x, None), {}, CONFIG)
    launch(kernel, (1,), (None, x), {}, CONFIG)
    launch(kernel, (1,), (None, x), {}, CONFIG)
    launch(kernel, (1,), (x, None), {}, CONFIG)
    assert [call[4] for call in kernel.fast] == [2, 1]


def test_hooks_get_tritons_own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, x = FakeKernel(), _aligned()
    bound = bind(kernel, {}, CONFIG)
    bound((1,), (x, 5))
    kernel.pre_run_hooks.append(print)
    bound((1,), (x, 5))
    assert (len(kernel.plain), len(kernel.fast)) == (2, 0)
    kernel.pre_run_hooks.clear()
    with monkeypatch.context() as patch:
        hook = SimpleNamespace(calls=[print])
        patch.setattr(launcher, "runtime", SimpleNamespace(launch_enter_hook=hook, launch_exit_hook=None))
        bound((1,), (x, 5))
    assert (len(kernel.plain), len(kernel.fast)) == (3, 0)
    bound((1,), (x, 5))
    assert (len(kernel.plain), len(kernel.fast)) == (3, 1)


def test_unknown_versions_get_tritons_own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_KNOWN", False)
    kernel, x = FakeKernel(), _aligned()
    for _ in range(2):
        launch(kernel, (1,), (x, 5), {}, CONFIG)
    assert (len(kernel.plain), len(kernel.fast)) == (2, 0)


@pytest.mark.parametrize(
    ("version", "known"),
    [("3.6.0", True), ("3.9.0+rocm7", True), ("3.5.1", False), ("3.10.0", False), ("4.0.0", False), ("", False)],
)
def test_versions(version: str, known: bool) -> None:
    assert launcher.known_version(version) is known


def test_a_run_time_parameter_behind_constants_gets_tritons_own_path() -> None:
    kernel, x = FakeKernel(("x", "A", "n", "BLOCK")), _aligned()
    for _ in range(2):
        launch(kernel, (1,), (x, 5), {"A": 3}, CONFIG)
    assert (len(kernel.plain), len(kernel.fast)) == (2, 0)


def test_a_run_time_parameter_left_to_its_default_gets_tritons_own_path() -> None:
    kernel, x = FakeKernel(), _aligned()
    for _ in range(2):
        launch(kernel, (1,), (x,), {}, CONFIG)
    assert (len(kernel.plain), len(kernel.fast)) == (2, 0)


def test_what_cannot_be_hashed_gets_tritons_own_path() -> None:
    kernel, x = FakeKernel(), _aligned()
    launch(kernel, (1,), (x, 5), {"A": [1]}, CONFIG)
    launch(kernel, (1,), (x, torch.float32), {}, CONFIG)
    launch(kernel, (1,), (x, torch.float32), {}, CONFIG)
    assert (len(kernel.plain), len(kernel.fast)) == (3, 0)


def test_compiled_kernels_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "MAX_BOUND", 4)
    monkeypatch.setattr(launcher, "MAX_COMPILED", 3)
    kernel, x = FakeKernel(), _aligned()
    for value in range(20):
        launch(kernel, (1,), (x, 5), {"A": value}, CONFIG)
        assert len(launcher._bound) <= 4
    bound = bind(kernel, {}, CONFIG)
    kinds: tuple[Any, ...] = (2, 1, 16, 2**31, 2**33 + 1, 1.0, None)
    for kind in kinds:
        bound((1,), (x, kind))
        assert len(bound._compiled) <= 3


def test_an_executor_gets_the_launch() -> None:
    kernel, x = FakeKernel(), _aligned()
    recorder = executor.Recorder(CPU)
    with executor.using(recorder):
        launch(kernel, (2,), (x, 5), {"A": 1}, CONFIG)
    (seen,) = recorder.launches
    assert (seen.grid, seen.constants, seen.config) == ((2,), {"A": 1, "BLOCK": 64}, CONFIG)
    assert kernel.plain == []


def test_another_device_is_made_current(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[object] = []

    class Guard:
        def __init__(self, device: object) -> None:
            entered.append(device)

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    kernel, x = FakeKernel(), _aligned()
    launch(kernel, (1,), (x, 5), {}, CONFIG)
    monkeypatch.setattr(torch.cuda, "device", Guard)
    launch(kernel, (1,), (x, 5), {}, CONFIG)
    assert entered == []
    monkeypatch.setattr(launcher, "current_device", lambda: 3)
    launch(kernel, (1,), (x, 5), {}, CONFIG)
    assert entered == [-1]
    assert len(kernel.fast) == 2


def test_threads_that_launch_at_once_all_launch_what_they_asked_for() -> None:
    kernel, x = FakeKernel(), _aligned()

    def work(offset: int) -> None:
        for value in range(200):
            launch(kernel, (offset + 1,), (x, 5), {"A": value % 5}, CONFIG)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kernel.plain) + len(kernel.fast) == 800
    counts = [sum(call[0] == number + 1 for call in kernel.fast) for number in range(4)]
    counts = [count + sum(call[0] == (number + 1,) for call in kernel.plain) for number, count in enumerate(counts)]
    assert counts == [200] * 4
    assert {call[11] for call in kernel.fast} == set(range(5))


def test_a_plan_launches_with_its_numbers() -> None:
    kernel, x = FakeKernel(), _aligned()
    plan = LaunchPlan(kernel, (3,), {"A": 1}, CONFIG, (5,))
    plan((x,))
    plan((x,))
    assert kernel.plain == [((3,), (x, 5), {"A": 1, "BLOCK": 64, **CONFIG.options("cpu")})]
    assert kernel.fast == [(3, 1, 1, 42, 1, ("packed",), None, None, None, x, 5, 1, 64)]


def test_a_plan_distinguishes_alignment_and_varying_numbers() -> None:
    kernel, x = FakeKernel(("x", "y", "n", "m", "A", "BLOCK")), _aligned()
    plan = LaunchPlan(kernel, (3,), {"A": 1}, CONFIG, (5,))
    for first, second, number in ((x, x, 3), (x[1:], x, 3), (x, x[1:], 3), (x, x, 16), (x, x, 1)):
        plan((first, second), (number,))
    assert len(kernel.plain) == 5
    plan((x[1:], x), (7,))
    assert kernel.fast[-1][-5:] == (x, 7, 5, 1, 64)


def test_a_plan_passes_tensors_as_other_types_and_leaves_none() -> None:
    kernel, x = FakeKernel(("x", "y", "n", "A", "BLOCK")), _aligned(dtype=torch.bool)
    plan = LaunchPlan(kernel, (3,), {"A": 1}, CONFIG, (5,), (torch.uint8, None))
    plan((x, None))
    plan((x, None))
    ((_, (seen, none, _), _),) = kernel.plain
    assert (seen.dtype, none) == (torch.uint8, None)
    tensor, *others = kernel.fast[0][-5:]
    assert (tensor.dtype, tensor.data_ptr(), others) == (torch.uint8, x.data_ptr(), [None, 5, 1, 64])


def test_a_plan_goes_to_the_executor_in_force() -> None:
    kernel, x = FakeKernel(), _aligned()
    one = LaunchPlan(kernel, (3,), {"A": 1}, CONFIG, (5,))
    recorder = executor.Recorder(CPU)
    with executor.using(recorder):
        one((x,))
    assert [(entry.grid, entry.args, entry.constants) for entry in recorder.launches] == [
        ((3,), (x, 5), {"A": 1, "BLOCK": 64})
    ]
    assert not kernel.plain


def test_caches_are_bounded_and_dropped_when_decisions_change(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: caches.Cache[int] = caches.Cache()
    monkeypatch.setattr(caches, "MAX_ENTRIES", 3)
    for number in range(10):
        calls.keep(number, number)
        assert len(calls) <= 3
    for change in (
        lambda: select.prefer("reference"),
        lambda: executor.using(executor.Recorder(CPU)),
        lambda: forced("rms_norm", "held", CONFIG),
        select.observed,
        observed,
    ):
        calls.keep("before", 1)
        with change():
            assert not calls
            calls.keep("inside", 1)
        if change is not observed:
            assert not calls
    calls.keep("before", 1)
    launcher.forget()
    assert not calls


def test_a_cached_call_still_sees_preferences_and_poison() -> None:
    x = torch.randn(3, 8)
    with select.prefer("reference"):
        wanted = rms_norm(x, None, 1e-5)
    assert torch.equal(rms_norm(x, None, 1e-5), rms_norm(x, None, 1e-5))
    torch.testing.assert_close(rms_norm(x, None, 1e-5), wanted)
    with pytest.raises(select.UnsupportedError), select.prefer("backward"):
        rms_norm(x, None, 1e-5)
    output = allocate.Output((2, 0, 3), torch.float32, x.device)
    assert output().stride() == torch.empty(2, 0, 3).stride()
    with allocate.poisoned():
        assert allocate.Output((4,), torch.float16, x.device)().isnan().all()
        assert int(allocate.Output((), torch.int64, x.device)()) != 0
