"""Faults injected into operations are told apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch")

from rocmend.probe.case import Case, Context
from rocmend.runner.torch_device import UnsupportedError

if TYPE_CHECKING:
    import torch

pytestmark = pytest.mark.cpu

RunCase = Callable[..., dict[str, Any]]


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_a_right_operation_passes_with_its_figures(run_case: RunCase) -> None:
    found = run_case(lambda ctx: Case(doubled, (ctx.randn(1000),)))
    assert found["outcome"] == "pass"
    assert found["reason"] == ""
    assert found["repeat_identical"]
    assert found["first_ms"] > 0
    assert found["steady_ms"] > 0
    assert found["peak_memory_bytes"] >= 0
    assert found["output_devices"] == ["cpu"]
    assert found["comparison"]["count"] == 1000


def test_one_wrong_element_is_found_and_named(run_case: RunCase) -> None:
    def wrong(x: torch.Tensor) -> torch.Tensor:
        result = x * 2
        result[3, 5] += 1
        return result

    found = run_case(lambda ctx: Case(wrong, (ctx.randn(8, 9),), reference=doubled))
    assert found["outcome"] == "wrong-output"
    assert found["comparison"]["worst_index"] == (3, 5)
    assert found["comparison"]["wrong"] == 1


@pytest.mark.parametrize(("dtype", "error", "outcome"), [
    ("float32", 1e-5, "pass"), ("float32", 1e-2, "wrong-output"),
    ("float16", 1e-3, "pass"), ("float16", 1e-1, "wrong-output"),
    ("bfloat16", 1e-2, "pass"), ("bfloat16", 5e-1, "wrong-output"),
])  # fmt: skip
def test_the_tolerance_is_the_dtypes(run_case: RunCase, dtype: str, error: float, outcome: str) -> None:
    found = run_case(lambda ctx: Case(lambda x: x * (1 + error), (ctx.randn(1000),), reference=lambda x: x), dtype)
    assert found["outcome"] == outcome


def test_small_results_are_not_excused_by_a_fixed_absolute_tolerance(run_case: RunCase) -> None:
    found = run_case(lambda ctx: Case(lambda x: x * 1.01, (ctx.randn(1000, scale=1e-6),), reference=lambda x: x))
    assert found["outcome"] == "wrong-output"


def test_a_result_left_unwritten_shows_as_nan(run_case: RunCase) -> None:
    import torch

    def half_written(x: torch.Tensor) -> torch.Tensor:
        result = torch.full_like(x, float("nan"))  # what poisoned memory holds
        result[: len(x) // 2] = x[: len(x) // 2] * 2
        return result

    found = run_case(lambda ctx: Case(half_written, (ctx.randn(1000),), reference=doubled))
    assert found["outcome"] == "wrong-output"
    assert found["comparison"]["nan"] == 500
    assert "never written" in found["reason"]


def test_fresh_memory_is_poisoned() -> None:
    import torch

    from rocmend.probe.execute import poison

    poison(torch.device("cpu"))
    # a block of a size that was filled comes back from the allocator with what was in it
    seen = sum(bool(torch.empty(size // 4).isnan().any()) for size in (1 << 12, 1 << 14, 1 << 16))
    assert seen >= 1


def test_a_reference_that_is_nan_has_to_be_met(run_case: RunCase) -> None:
    def build(ctx: Context) -> Case:
        return Case(lambda x: x * 0 + 1, (ctx.randn(10),), reference=lambda x: x * float("nan"))

    assert run_case(build)["outcome"] == "wrong-output"


def test_a_repeat_that_is_wrong_is_wrong(run_case: RunCase) -> None:
    runs = itertools.count()

    def flaky(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if next(runs) < 2 else x * 3

    found = run_case(lambda ctx: Case(flaky, (ctx.randn(100),), reference=doubled))
    assert found["outcome"] == "wrong-output"
    assert "first run was right" in found["reason"]


@pytest.mark.parametrize(("must_repeat", "outcome"), [(False, "pass"), (True, "wrong-output")])
def test_other_bits_each_time_are_noted(run_case: RunCase, must_repeat: bool, outcome: str) -> None:
    runs = itertools.count()

    def drifting(x: torch.Tensor) -> torch.Tensor:
        return x * 2 + next(runs) * 1e-6

    found = run_case(lambda ctx: Case(drifting, (ctx.randn(100),), reference=doubled, must_repeat=must_repeat))
    assert found["outcome"] == outcome
    assert not found["repeat_identical"]
    assert "not" in found["reason"] or "different" in found["reason"]


def test_gradients_are_compared(run_case: RunCase) -> None:
    import torch

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            del ctx
            return x * 2

        @staticmethod
        def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
            del ctx
            return gradients[0] * 2.1

    def build(ctx: Context) -> Case:
        return Case(Wrong.apply, (ctx.randn(100),), reference=doubled, backward=True)

    found = run_case(build)
    assert found["outcome"] == "wrong-output"
    assert found["comparison"]["output"] == 1


@pytest.mark.parametrize(
    ("result", "text"), [(lambda x: x[:-1], "shape"), (lambda x: [x, x], "2 results"), (lambda _: [], "0 results")]
)
def test_another_shape_or_number_of_results_is_wrong(
    run_case: RunCase, result: Callable[[torch.Tensor], Any], text: str
) -> None:
    found = run_case(lambda ctx: Case(result, (ctx.randn(10),), reference=lambda x: x))
    assert found["outcome"] == "wrong-output"
    assert text in found["reason"]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (RuntimeError("\"conv\" not implemented for 'Half'"), "unsupported"),
        (RuntimeError("HIP error: invalid device function"), "unsupported"),
        (NotImplementedError("no"), "unsupported"),
        (UnsupportedError("not here"), "unsupported"),
        (RuntimeError("HIP out of memory. Tried to allocate 20.00 GiB"), "oom"),
        (MemoryError(), "oom"),
        (RuntimeError("miopenStatusUnknownError"), "error"),
        (ValueError("x"), "error"),
    ],
)
def test_exceptions_are_told_apart(run_case: RunCase, error: Exception, outcome: str) -> None:
    def fail(_: torch.Tensor) -> torch.Tensor:
        raise error

    found = run_case(lambda ctx: Case(fail, (ctx.randn(10),), reference=doubled))
    assert found["outcome"] == outcome
    assert str(error) in found["reason"]


def test_a_probe_can_say_that_it_does_not_apply(run_case: RunCase) -> None:
    def build(ctx: Context) -> Case:
        raise ctx.skip("not today")

    assert run_case(build) == {"outcome": "skipped", "reason": "not today"}


def test_work_on_the_cpu_in_place_of_the_device_is_seen() -> None:
    import torch

    from rocmend.probe.execute import traced

    elsewhere = torch.device("meta")  # a device that any torch has
    x = torch.ones(1000, device=elsewhere)
    assert traced(lambda: [x + 1], elsewhere).operators == []
    operators = traced(lambda: [torch.ones(1000).exp().to(elsewhere) + x], elsewhere).operators
    assert any("exp" in name for name in operators)


def test_a_result_on_the_cpu_in_place_of_the_device_is_a_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from rocmend.probe import child, execute

    gpu = torch.device("cuda")
    # there is no GPU here: what would touch one is taken away, what judges the results stays
    monkeypatch.setattr(execute.Subject, "_moved", lambda self, value: value.double() if self.wide else value)
    for module in (child, execute):
        monkeypatch.setattr(module, "synchronize", lambda _: None)
    monkeypatch.setattr(child, "poison", lambda _: None)
    for name in ("memory_allocated", "max_memory_allocated", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda _: 0)
    case = Case(doubled, (torch.randn(1000),))
    found = child._measure(case, "float32", gpu, lambda _: None)
    assert found["outcome"] == "silent-cpu-fallback"
    assert "cpu" in found["reason"]


def test_warnings_of_a_fallback_are_recognized() -> None:
    from rocmend.probe.execute import fallback_warnings

    said = "The operator 'aten::eig' is not supported and will fall back to run on the CPU."
    assert fallback_warnings([said, "deprecated", "CPU is fast"]) == [said]
