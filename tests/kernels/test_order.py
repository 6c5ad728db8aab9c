"""Sort, top-k, arg reductions and scans against values of MLX, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import rocmend.kernels as rk
from rocmend.core.errors import UsageError
from rocmend.kernels import select
from rocmend.kernels.ops.recurrence.scan.reference import _extreme
from rocmend.kernels.tuning import Config
from rocmend.kernels.tuning.lookup import forced

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "order.json").read_text(encoding="utf-8"))
TYPES = ("float32", "float16", "bfloat16")
TIERS = ("triton", "reference")


def floats(bits: list[int], name: str) -> Any:
    """Return floats of bits."""
    dtype = getattr(torch, name)
    signed, width = (torch.int32, 32) if name == "float32" else (torch.int16, 16)
    return torch.tensor([b - (1 << width) if b >> (width - 1) else b for b in bits], dtype=signed).view(dtype)


def same(got: Any, wanted: Any) -> bool:
    """Compare bit by bit; NaN equals NaN."""
    kind = torch.int32 if got.element_size() == 4 else torch.int16
    return bool(((got.view(kind) == wanted.view(kind)) | (got.isnan() & wanted.isnan())).all())


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", TYPES)
def test_order_is_that_of_mlx(name: str, tier: str) -> None:
    golden = GOLDEN["sort"][name]
    x = floats(golden["x"], name)
    with select.prefer(tier):
        assert same(rk.sort(x), floats(golden["sort"], name))
        assert rk.argsort(x).tolist() == golden["argsort"]
        assert rk.argsort(x, index_dtype=torch.uint32).dtype == torch.uint32
        assert rk.argmax(x).item() == golden["argmax"]
        assert rk.argmin(x).item() == golden["argmin"]
        clean = x[~x.isnan()]
        assert rk.argmax(clean).item() == golden["argmax-clean"]
        assert rk.argmin(clean).item() == golden["argmin-clean"]
        top = rk.topk(x, 4)
        assert top.indices.tolist() == [2, 8, 6, 0]
        assert same(top.values[2:], floats(golden["topk"], name).sort().values[:2].flip(0))


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", TYPES)
def test_running_extremes_are_those_of_mlx(name: str, tier: str) -> None:
    golden = GOLDEN["scan"][name]
    x = floats(golden["x"], name)
    with select.prefer(tier):
        for function in ("cummax", "cummin"):
            for reverse in (False, True):
                for inclusive in (False, True):
                    out = getattr(rk, function)(x, reverse=reverse, inclusive=inclusive)
                    assert same(out, floats(golden[f"{function}-{reverse}-{inclusive}"], name)), (function, reverse)


def test_nan_stays_in_running_extremes_of_half_types() -> None:
    """MLX 0.32.4 on the CPU gives 0 there: its half types have no NaN of their own."""
    x = torch.tensor([1.0, 2.0, float("nan"), 3.0], dtype=torch.bfloat16)
    assert rk.cummax(x).isnan().tolist() == [False, False, True, True]
    assert rk.cummin(x, reverse=True).isnan().tolist() == [True, True, True, False]


@pytest.mark.parametrize("largest", [True, False])
def test_the_reference_of_running_extremes_is_step_after_step(largest: bool) -> None:
    drawn = torch.Generator().manual_seed(0)
    odd = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan")]
    for values in ([0.0, -0.0], [0.0, -0.0, 1.0], [0.0, -0.0, -1.0], odd[:6], [*odd, *[2.0, -2.0] * 9]):
        for length in (1, 2, 7, 100):
            of = torch.tensor(values, dtype=torch.float64)
            x = of[torch.randint(len(of), (50, length), generator=drawn)]
            wanted = torch.empty_like(x)
            held = x[:, 0]
            for place in range(length):
                new = x[:, place]
                take = (new >= held) if largest else (new < held)
                held = torch.where((take | new.isnan()) & ~held.isnan(), new, held)
                wanted[:, place] = held
            found = _extreme(x, largest=largest)
            assert torch.equal(found.nan_to_num(7.0), wanted.nan_to_num(7.0))
            assert torch.equal(found.signbit() & ~found.isnan(), wanted.signbit() & ~wanted.isnan())


def test_types_of_scans() -> None:
    truth = torch.tensor([True, False, True])
    assert rk.cumsum(truth).tolist() == [1, 1, 2]
    assert rk.cumsum(truth).dtype == torch.int32
    assert rk.cumprod(truth).tolist() == [True, False, False]
    assert rk.cummin(truth, inclusive=False).tolist() == [True, True, False]
    assert rk.cumsum(torch.tensor([100, 100], dtype=torch.int8)).tolist() == [100, -56]
    assert rk.logcumsumexp(torch.tensor([1, 2])).dtype == torch.float32


def test_cumsum_has_a_gradient() -> None:
    x = torch.randn(3, 5, requires_grad=True)
    weight = torch.randn(3, 5)
    for reverse in (False, True):
        (rk.cumsum(x, 1, reverse=reverse, inclusive=False) * weight).sum().backward()
        assert x.grad is not None
        got, x.grad = x.grad, None
        turned = x.flip(1) if reverse else x
        shifted = turned.cumsum(1) - turned
        shifted = shifted.flip(1) if reverse else shifted
        (shifted * weight).sum().backward()
        torch.testing.assert_close(got, x.grad)
        x.grad = None


def test_partition_puts_the_place_right() -> None:
    x = torch.randn(4, 9)
    assert torch.equal(rk.partition(x, -3)[:, 6], x.sort().values[:, 6])
    assert torch.equal(x.gather(1, rk.argpartition(x, 2)), x.sort().values)


@pytest.mark.parametrize("largest", [True, False])
def test_equal_elements_of_a_long_row_come_by_place(largest: bool) -> None:
    """The row is taken by groups of 16: the last has 3 members, and an element that comes first stands in it."""
    x = torch.zeros(2, 707)
    x[1, 705] = 1.0 if largest else -1.0
    with select.prefer("triton"):
        top = rk.topk(x, 20, largest=largest)
    assert top.indices.tolist() == [list(range(20)), [705, *range(19)]]
    assert torch.equal(top.values, x.gather(1, top.indices))


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("inclusive", [False, True])
def test_one_pass_over_a_row_gives_what_two_give(reverse: bool, inclusive: bool) -> None:
    x = torch.randint(-1000, 1000, (3, 61), dtype=torch.int32)
    found = []
    with select.prefer("triton"):
        for elements in (0, 1 << 40):
            record = Config(
                {"LINES": 2, "LANES": 4, "BEFORE": 2, "least": 2, "most": 8, "elements": elements, "bytes": 1}
            )
            with forced("scan", "once", record):
                found.append(rk.cumsum(x, 1, reverse=reverse, inclusive=inclusive))
    turned = x.flip(1) if reverse else x
    wanted = turned.cumsum(1, dtype=torch.int32) - (0 if inclusive else turned)
    assert all(torch.equal(one, wanted.flip(1) if reverse else wanted) for one in found)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: rk.sort(x, 2),
        lambda x: rk.sort(x.to(torch.complex64)),
        lambda x: rk.argsort(x, index_dtype=torch.int16),
        lambda x: rk.partition(x, 4),
        lambda x: rk.topk(x, 4),
        lambda x: rk.topk(x, -1),
        lambda x: rk.topk(x[0, 0], 1),
        lambda x: rk.argmax(x[:0], 0),
        lambda x: rk.argmin(x, -3),
        lambda x: rk.cumsum(x, 5),
        lambda x: rk.cummax(x.to(torch.complex64), 0),
    ],
)
def test_what_does_not_fit_is_said(call: Any) -> None:
    with pytest.raises(UsageError, match="expected"):
        call(torch.randn(3, 3))
