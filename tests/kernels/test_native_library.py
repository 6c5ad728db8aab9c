"""Library calls as steps of captured calls: what the library gets, when, and what takes the normal path."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.kernels.native_driver import CONFIG, STREAM, Driver, Kernel, driving, recorded
from tests.kernels.native_libraries import Dnn, Products

from rocmend.kernels import allocate, native
from rocmend.kernels.captured import LibraryCall
from rocmend.kernels.launch import launch
from rocmend.kernels.plan_cache import cached

pytestmark = [pytest.mark.cpu, pytest.mark.skipif(native.module() is None, reason="no C compiler here")]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    yield from driving(monkeypatch)


def test_a_product_is_told_addresses_and_stream() -> None:
    library = Products()
    assert library.product()(5, 101, 102, 103) is None
    library.product(64)(6, 101, 102, 103, 104)
    plain, roomy = library.calls
    assert plain == (11, 12, 1.0, 101, 13, 102, 14, 0.0, 103, 15, 103, 15, bytes(range(64)), None, 0, 5)
    assert roomy[13:] == (104, 64, 6)


def test_a_plan_is_executed_with_a_pack_of_the_addresses() -> None:
    library = Dnn()
    plan = library.plan(workspace=True)
    plan(5, 101, 102, 103, 104)
    plan(5, 101, 102, 103, 104)
    plan(6, 101, 102, 203, 104)
    other = library.plan()
    other(6, 1, 2, 3)
    assert library.calls == [
        ("stream", 21, 5), ("create", 16), ("finish", 100), ("execute", 21, 22, 100), ("execute", 21, 22, 100),
        ("stream", 21, 6), ("destroy", 100), ("create", 16), ("finish", 101), ("execute", 21, 22, 101),
        ("create", 16), ("finish", 102), ("execute", 21, 22, 102),
    ]  # fmt: skip
    assert library.packs[100] == {1000: [1, 2, 3], 1001: [101, 102, 103], 1003: [104]}
    assert library.packs[101][1001] == [101, 102, 203]
    assert library.packs[102] == {1000: [1, 2, 3], 1001: [1, 2, 3], 1003: [0]}
    del plan
    assert library.calls[-1] == ("destroy", 101)


@pytest.mark.parametrize("refused", ["stream", "create", "set", "finish", "execute"])
def test_what_a_library_refuses_is_an_error_and_is_asked_again(refused: str) -> None:
    library = Dnn()
    plan = library.plan()
    library.refused = refused
    with pytest.raises(RuntimeError, match=r"cuDNN refused .* status 3000"):
        plan(5, 1, 2, 3)
    library.refused = ""
    plan(5, 1, 2, 3)
    assert library.calls[-1][0] == "execute"
    made, freed = (sum(call[0] == name for call in library.calls) for name in ("create", "destroy"))
    assert made - freed == 1


def test_wrong_arguments_are_refused() -> None:
    product = Products().product()
    for args in ((), (5, 1, 2), (5, 1, 2, 3, 4)):
        with pytest.raises(TypeError):
            product(*args)
    with pytest.raises(TypeError):
        product("5", 1, 2, 3)
    module = native.module()
    with pytest.raises(ValueError, match="64"):
        module.Product(1, 2, 3, (4, 5, 6), b"short", 0, None)
    with pytest.raises(TypeError):
        module.DnnPlan(None, 1, False, None)
    with pytest.raises(ValueError, match="6"):
        module.DnnHandle(1, (2, 3))


def test_what_owns_a_plan_lives_as_long() -> None:
    class Owner:
        pass

    held = Owner()
    plan, product = Dnn().plan(held=held), Products().product(held=held)
    count = len(gc.get_referrers(held))
    del plan, product
    gc.collect()
    assert len(gc.get_referrers(held)) == count - 2


class _Call:
    """A call that launches a kernel, has a library work on what it wrote, and launches another one."""

    def __init__(self, driver: Driver, *, last: bool) -> None:
        self.library = Products()
        self.setting, self.plain = True, 0
        kernel = Kernel(9, {"a": "*fp32", "b": "*fp32", "BLOCK": "constexpr"})
        driver.sizes[9] = [8, 8]
        called = LibraryCall(self.library.product(64), [(lambda: self.setting, True)])

        @cached
        def compute(x: Any, y: Any) -> Any:
            if not x.is_meta:
                self.plain += 1
                return x + y
            some, out, room = (allocate.empty((8,), dtype=torch.float32, device=x.device) for _ in range(3))
            launch(kernel, (1,), (x, some), {}, CONFIG)
            called.record(some, y, out, room)
            if last:
                launch(kernel, (2,), (out, out), {}, CONFIG)
            return out

        self.compute = compute


@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize("last", [True, False])
def test_kernels_in_front_are_a_graph_and_the_rest_follows(driver: Driver, graphs: bool, last: bool) -> None:
    if graphs:
        driver.told = driver.told._replace(graphs=driver.graph.functions)
    one = _Call(driver, last=last)
    x, y = torch.zeros(8), torch.zeros(8)
    for _ in range(2):
        one.compute((x, y))
    first = len(one.library.calls)  # made from Python while it was recorded
    out = one.compute((x, y))
    assert type(recorded(one.compute)).__module__ == "rocmend_kernels_replay"
    assert one.plain == 1
    (call,) = one.library.calls[first:]
    before = driver.graph.launched[-1][1] if graphs else driver.launches[:1]
    after = driver.launches[0 if graphs else 1 :]
    assert [launched.values[0] for launched in before] == [x.data_ptr()]
    assert (call[3], call[5], call[8], call[15]) == (before[0].values[1], y.data_ptr(), out.data_ptr(), STREAM)
    assert [(launched.grid, launched.values[:2]) for launched in after] == (
        [((2, 1, 1), (out.data_ptr(),) * 2)] if last else []
    )


def test_another_setting_of_torchs_leads_back_to_torch(driver: Driver) -> None:
    one = _Call(driver, last=False)
    x, y = torch.ones(8), torch.ones(8)
    for _ in range(3):
        one.compute((x, y))
    calls, one.setting = len(one.library.calls), False
    assert torch.equal(one.compute((x, y)), x + y)
    assert (len(one.library.calls), one.plain) == (calls, 2)
    one.setting = True
    one.compute((x, y))
    assert (len(one.library.calls), one.plain) == (calls + 1, 2)


def test_a_refusal_within_a_call_is_told_as_the_librarys(driver: Driver) -> None:
    one = _Call(driver, last=True)
    x = torch.ones(8)
    for _ in range(3):
        one.compute((x, x))
    one.library.status, before = 7, len(driver.launches)
    with pytest.raises(RuntimeError, match=r"cuBLASLt refused .* status 7"):
        one.compute((x, x))
    assert len(driver.launches) == before + 1  # nothing behind it
    one.library.status = 0
    one.compute((x, x))


def test_without_the_c_replay_it_is_called_from_python(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr("rocmend.kernels.replay.native_replay", lambda *_: None)
    one = _Call(driver, last=True)
    x, y = torch.ones(8), torch.ones(8)
    for _ in range(2):
        one.compute((x, y))
    assert type(recorded(one.compute)).__name__ == "function"
    before = len(one.library.calls)
    out = one.compute((x, y))
    assert [call[8] for call in one.library.calls[before:]] == [out.data_ptr()]
    one.setting = False
    assert torch.equal(one.compute((x, y)), x + y)
    assert len(one.library.calls) == before + 1


def test_a_step_needs_a_call_that_is_captured() -> None:
    with pytest.raises(RuntimeError, match="captured"):
        LibraryCall(Products().product()).record(torch.zeros(8))
