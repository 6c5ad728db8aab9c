"""Convolution: torch's names and MLX's, gradients by autograd, torch's own path, errors."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from torch.multiprocessing.reductions import StorageWeakRef

from rocmend.core.errors import UsageError
from rocmend.kernels import caches, conv1d, conv2d, conv_general, conv_transpose2d, convolution, executor, registry
from rocmend.kernels import target as targets
from rocmend.kernels.ops.conv.conv import host, problem_of, reference
from rocmend.kernels.ops.conv.conv.cases import SHAPES
from rocmend.kernels.ops.conv.conv.function import conv_weight_gradient
from rocmend.kernels.ops.conv.conv.geometry import collapsed, geometry_of, reciprocal
from rocmend.kernels.select import UnsupportedError, prefer, select
from rocmend.kernels.suite import cases_of, run_case
from rocmend.kernels.suite.compare import compare
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config
from rocmend.kernels.tuning.lookup import forced

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
CPU = torch.device("cpu")

DIRECT: list[dict[str, Any]] = [
    {},
    {"stride": 2, "padding": 1},
    {"padding": (2, 1), "dilation": (2, 3)},
    {"groups": 2, "padding": 1},
    {"groups": 4, "padding": 1},
    {"transposed": True, "stride": 2, "padding": 1, "output_padding": 1},
    {"transposed": True, "stride": (3, 2), "dilation": 2, "groups": 2},
]


@pytest.mark.parametrize("options", DIRECT, ids=str)
def test_channels_first_and_its_gradients_agree_with_torch(options: dict[str, Any]) -> None:
    transposed = options.get("transposed", False)
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(2, 4, 7, 6, generator=generator)
    shape = (4, 8 // options.get("groups", 1), 3, 3) if transposed else (8, 4 // options.get("groups", 1), 3, 3)
    w, bias = torch.randn(shape, generator=generator), torch.randn(8, generator=generator)
    inputs = [t.clone().requires_grad_() for t in (x, w, bias)]
    wide = [t.double().requires_grad_() for t in (x, w, bias)]
    native: Callable[..., Any] = torch.nn.functional.conv_transpose2d if transposed else torch.nn.functional.conv2d
    expected = native(*wide, **{name: value for name, value in options.items() if name != "transposed"})
    gradient = torch.randn(expected.shape, generator=generator)
    with prefer("triton"):
        out = convolution(*inputs, **options)
        got = torch.autograd.grad(out, inputs, gradient)
    wanted = torch.autograd.grad(expected, wide, gradient.double())
    torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-5)
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


# What torch cannot be asked for: unequal or negative padding, both steps, a spread input that is not flipped, nothing.
BEYOND_TORCH = ("unequal", "cropped", "both-steps", "taps-that-miss", "no-image", "no-channels")


@pytest.mark.parametrize(
    "case", [case for case in cases_of(registry.get("conv")) if case.dtype == "float32"], ids=lambda c: c.name
)
def test_torchs_own_path_computes_the_same(case: Any) -> None:
    if any(name in case.name for name in BEYOND_TORCH):
        with pytest.raises(UnsupportedError):
            run_case(registry.get("conv"), case, CPU, tier="vendor")
        return
    result = run_case(registry.get("conv"), case, CPU, tier="vendor")
    assert result.ok, result.detail


def test_one_dimension_reads_its_own_axis() -> None:
    x, w = torch.arange(6.0).reshape(1, 6, 1), torch.tensor([1.0, 10.0]).reshape(1, 2, 1)
    with prefer("triton"):
        out = conv1d(x, w, stride=2)
    assert out.flatten().tolist() == [10.0, 32.0, 54.0]


def test_transposed_convolution_spreads_its_input() -> None:
    x, w = torch.tensor([1.0, 2.0]).reshape(1, 1, 2, 1), torch.tensor([1.0, 10.0, 100.0]).reshape(1, 1, 3, 1)
    with prefer("triton"):
        out = conv_transpose2d(x, w, stride=(1, 2))
    assert out.flatten().tolist() == [1.0, 10.0, 102.0, 20.0, 200.0]


@pytest.mark.parametrize(
    ("message", "arguments", "options"),
    [
        ("3 to 5 axes", ((2, 3), (2, 3)), {}),
        ("multiples of groups", ((1, 4, 4, 6), (4, 3, 3, 6)), {"groups": 4}),
        ("multiples of groups", ((1, 4, 4, 6), (4, 3, 3, 5)), {}),
        ("the kernel fits", ((1, 2, 2, 6), (4, 3, 3, 6)), {}),
        ("at least 1", ((1, 4, 4, 6), (4, 3, 3, 6)), {"stride": 0}),
        ("a number or 2 numbers", ((1, 4, 4, 6), (4, 3, 3, 6)), {"stride": (1, 1, 1)}),
    ],
)
def test_errors_say_what_was_expected(message: str, arguments: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=message):
        conv_general(*(torch.zeros(shape) for shape in arguments), **options)


def test_types_must_agree() -> None:
    with pytest.raises(UsageError, match="one type"):
        conv2d(torch.zeros(1, 4, 4, 2), torch.zeros(3, 1, 1, 2, dtype=torch.float16))
    with pytest.raises(UsageError, match="bias of shape"):
        conv2d(torch.zeros(1, 4, 4, 2), torch.zeros(3, 1, 1, 2), torch.zeros(4))


def test_rdna_takes_the_kernel_and_cdna_the_library() -> None:
    op = registry.get("conv")
    problem = op.problem("float16", "forward", 3136, 3136, 64, 64, 1, 9, True)
    taken = {name: select(op, problem, by_name(name)).tier for name in ("gfx942", "sm90")}
    assert taken == {"gfx942": "vendor", "sm90": "vendor"}
    reasons = {one.implementation: one.reason for one in select(op, problem, by_name("gfx1010"), "reference").rejected}
    assert set(reasons) == {"torch.nn", "implicit-gemm", "columns"}


def test_a_sum_that_is_split_is_the_same_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few output pixels and many taps, on a target with many compute units."""
    wide = dataclasses.replace(by_name("cpu"), compute_units=64)
    monkeypatch.setattr(executor, "target_for", lambda _device: wide)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1, 5, 5, 160, generator=generator)
    w, bias = torch.randn(24, 3, 3, 160, generator=generator), torch.randn(24, generator=generator)
    geometry = geometry_of("conv2d", x.shape, w.shape, 1, 1, 1, 1, 1, False)
    problem = problem_of("forward", "float32", geometry)
    steps = host.weight_steps(w.unsqueeze(1), wide)
    assert steps is not None
    assert host._forward(x.unsqueeze(1), steps, geometry, problem, wide, biased=True).splits > 1
    with prefer("triton"):
        out = conv2d(x, w, bias, padding=1)
    with prefer("reference"):
        torch.testing.assert_close(
            out.double(), conv2d(x.double(), w.double(), bias.double(), padding=1), rtol=1e-4, atol=1e-4
        )


def test_every_phase_has_a_case() -> None:
    steps = {(s.options.get("stride", 1), s.options.get("input_dilation", 1)) for s in SHAPES}
    assert any(a != 1 and b != 1 for a, b in steps)


@pytest.mark.slow
def test_a_sum_in_parts_is_added_up_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few tiles on a GPU with many units: the sum over taps and channels is split."""
    wide = dataclasses.replace(targets.CPU, compute_units=64)
    monkeypatch.setattr(targets, "of_device", lambda _device: wide)
    planned: list[int] = []
    parts = host._parts_plan

    def counted(splits: int, *rest: Any, biased: bool) -> Any:
        planned.append(splits)
        return parts(splits, *rest, biased=biased)

    monkeypatch.setattr(host, "_parts_plan", counted)
    torch.manual_seed(4)
    x, weight, bias = torch.randn(1, 4, 4, 256), torch.randn(8, 3, 3, 256), torch.randn(8)
    caches.forget()
    with prefer("triton"):
        got, again = (conv2d(x, weight, padding=1) for _ in range(2))
        biased = conv2d(x, weight, bias, padding=1)
    caches.forget()
    assert planned
    assert planned[0] > 1
    wanted = torch.nn.functional.conv2d(x.double().movedim(-1, 1), weight.double().movedim(-1, 1), padding=1)
    assert torch.equal(got, again)
    torch.testing.assert_close(got.double(), wanted.movedim(1, -1), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(biased.double(), wanted.movedim(1, -1) + bias, rtol=1e-5, atol=1e-4)


WEIGHT_CONFIGS = {
    "tiled": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16},
    "three taps": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16, "row_taps": 3},
    "packed": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16, "AHEAD": True},
    "packed, loaded behind": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16, "AHEAD": False},
}
WEIGHT_SHAPES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 4, 5, 64), (1, 1), {}),
    ((1, 5, 4, 40), (3, 3), {"padding": 1, "stride": 2}),
    ((1, 4, 5, 72), (3, 3), {"padding": (2, 1), "kernel_dilation": (2, 1), "groups": 2, "flip": True}),
    ((1, 3, 4, 3, 33), (2, 1, 3), {"padding": (0, 1, 1), "stride": (1, 2, 1)}),
]


@pytest.mark.parametrize("shape", WEIGHT_SHAPES, ids=str)
@pytest.mark.parametrize("name", WEIGHT_CONFIGS)
def test_each_way_to_a_weight_gradient(name: str, shape: Any) -> None:
    """Sums in parts: every block of pixels is one."""
    size, taps, options = shape
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(size, generator=generator).half()
    weight = torch.zeros(48, *taps, size[-1] // options.get("groups", 1)).half()
    out = reference.conv_general(x, weight, **options)
    gradient = torch.randn(out.shape, generator=generator).half()
    config = Config(
        {**WEIGHT_CONFIGS[name], "num_warps": 4, "num_stages": 1, "least_blocks": 1, "programs_per_unit": 9}
    )
    with prefer("triton"), forced("conv", "weight_tiled", config):
        got = conv_weight_gradient(x, gradient, taps, **options)
    wanted = reference.conv_weight_gradient(x.double(), gradient.double(), taps, **options)
    compared = compare(got, wanted, registry.get("conv").tolerance["float16"])
    assert compared.ok, compared.detail


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 14, 28, 49, 56, 641, 65535, (1 << 30) + 1, (1 << 31) - 1])
def test_a_reciprocal_divides_every_number(divisor: int) -> None:
    factor, shift = reciprocal(divisor)
    assert -(1 << 31) <= factor < 1 << 31
    largest = (1 << 31) - 1
    near = [step * (largest // 97) // divisor * divisor for step in range(98)]
    for n in (0, 1, divisor - 1, largest, *near, *(max(0, one - 1) for one in near)):
        assert (2 * n * (factor % (1 << 32))) >> (32 + shift) == n // divisor


def test_axes_that_are_as_good_as_one() -> None:
    x = torch.empty(2, 3, 4, 5)
    assert collapsed(tuple(x.shape[:3]), x.stride()[:3]) == 5
    assert collapsed((1, 3, 1), (99, 7, 0)) == 7
    assert collapsed((1, 1), (4, 4)) == 0
    assert collapsed((2, 3), (5, 2)) is None


def test_an_input_gradient_reads_the_weight_as_it_is() -> None:
    weight = torch.empty(8, 1, 3, 3, 16).transpose(0, -1)
    assert host.weight_steps(weight, by_name("sm90")) == (1, 16, 144)
    assert host.weight_steps(weight, by_name("gfx942")) is None
    assert host.weight_steps(weight.contiguous(), by_name("gfx942")) == (72, 8, 1)


@pytest.mark.parametrize("name", ["tiled", "packed"])
@pytest.mark.parametrize("how", ["channels first", "behind one element"])
def test_a_weight_gradient_of_tensors_as_they_come(name: str, how: str) -> None:
    """Channels that do not lie side by side are copied; pairs that lie on no four bytes are taken one by one."""

    def as_they_come(x: Any) -> Any:
        if how == "channels first":
            return x.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1)
        return torch.cat([x.new_zeros(1), x.flatten()])[1:].view(x.shape)

    generator = torch.Generator().manual_seed(3)
    x, gradient = (torch.randn(2, 3, 4, 32, generator=generator).half() for _ in range(2))
    config = Config({**WEIGHT_CONFIGS[name], "num_warps": 4, "num_stages": 1})
    with prefer("triton"), forced("conv", "weight_tiled", config):
        plain = conv_weight_gradient(x, gradient, (3, 3), padding=1)
        got = conv_weight_gradient(as_they_come(x), as_they_come(gradient), (3, 3), padding=1)
    torch.testing.assert_close(got, plain, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", WEIGHT_CONFIGS)
def test_a_plan_keeps_no_tensor(name: str) -> None:
    with (
        prefer("triton"),
        forced("conv", "weight_tiled", Config({**WEIGHT_CONFIGS[name], "num_warps": 4, "num_stages": 1})),
    ):
        x, gradient = torch.randn(1, 3, 4, 32).half(), torch.randn(1, 3, 4, 32).half()
        conv_weight_gradient(x, gradient, (1, 1))
        kept = [StorageWeakRef(one.untyped_storage()) for one in (x, gradient)]
        del x, gradient
        gc.collect()  # the interpreter's cycles
        assert all(one.expired() for one in kept)
