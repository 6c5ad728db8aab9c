"""Patterns: each joins the steps that it should, keeps what is used elsewhere, and gives the interpreter's values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from tests.mlx.again import Again

from rocmend.mlx import evaluate
from rocmend.mlx.array import array, leaf
from rocmend.mlx.core import fast
from rocmend.mlx.dtypes import bfloat16, float32
from rocmend.mlx.execute import device_graph, settings
from rocmend.mlx.execute.planner import Planner, planner
from rocmend.mlx.node import current
from rocmend.mlx.registry import ops

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.skipif(not triton.knobs.runtime.interpret, reason="triton was imported without its interpreter"),
]

HEADS, SIZE, LENGTH = 2, 16, 12


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Planner]:
    monkeypatch.setenv("ROCMEND_MLX_FUSE", "1")
    current.state.tape = []
    planner().forget()
    with settings.use("plan"):
        yield planner()
    planner().forget()


def normal(seed: int, *shape: int) -> array:
    return leaf(torch.randn(shape, generator=torch.Generator().manual_seed(seed)), float32)


def patterns_of(fresh: Planner) -> list[str]:
    """Return the patterns whose steps the last plan has."""
    assert fresh.last is not None
    modules = [step.call.__module__.rpartition(".") for step in fresh.last.plan.steps]
    return [name for package, _, name in modules if package.endswith("execute.patterns")]


class Decoder:
    """A layer that normalises, rotates and writes to a cache; keys may be watched, and queries rotated further."""

    def __init__(self, *, watched: bool = False, apart: int = 0) -> None:
        self.gain = normal(1, SIZE)
        self.keys, self.values = (leaf(torch.zeros(1, HEADS, LENGTH, SIZE), float32) for _ in range(2))
        self.offset, self.watched, self.apart = 0, watched, apart

    def step(self, x: array) -> Any:
        source = ops.multiply(x, 1.5)
        turned = [ops.transpose(fast.rms_norm(source, self.gain, eps), (0, 2, 1, 3)) for eps in (1e-5, 1e-3)]
        q, k = (
            fast.rope(one, SIZE, traditional=False, base=100.0, scale=1.0, offset=self.offset + apart)
            for one, apart in zip(turned, (self.apart, 0), strict=True)
        )
        at = self.offset
        self.keys[..., at : at + 1, :] = k
        self.values[..., at : at + 1, :] = ops.transpose(source, (0, 2, 1, 3))
        self.offset += 1
        keys, values = self.keys[..., : self.offset, :], self.values[..., : self.offset, :]
        out = fast.scaled_dot_product_attention(q, keys, values, scale=0.3)
        out = ops.add(out, k) if self.watched else out
        return ops.transpose(out, (0, 2, 1, 3))


def ran(decoder: Decoder, steps: int) -> list[Any]:
    x, found = normal(2, 1, 1, HEADS, SIZE), []
    for _ in range(steps):
        x = decoder.step(x)
        evaluate.evaluate([x], wait=False)
        found.append(x._n.data.clone())
    return [*found, decoder.keys._n.data.clone(), decoder.values._n.data.clone()]


def both(make: Callable[[], Decoder], steps: int = 6) -> None:
    with settings.use("interpreter"):
        expected = ran(make(), steps)
    for one, other in zip(ran(make(), steps), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("executor", ["plan", "graph"])
def test_heads_are_one_step(fresh: Planner, executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_graph, "can", lambda _: True)
    monkeypatch.setattr(device_graph, "make", Again)
    monkeypatch.setattr(device_graph, "memory", lambda _: 1 << 30)
    with settings.use(executor):
        both(Decoder)
        assert patterns_of(fresh).count("heads") == 1
        assert fresh.last is not None
        assert len(fresh.last.captures) == (executor == "graph")


def test_rotated_keys_that_are_used_elsewhere_stay(fresh: Planner) -> None:
    both(lambda: Decoder(watched=True))
    assert "heads" not in patterns_of(fresh)


def test_heads_of_another_place_than_the_cache_s_stay(fresh: Planner) -> None:
    both(lambda: Decoder(apart=1))
    assert "heads" not in patterns_of(fresh)


def twice(work: Callable[[], list[array]], fresh: Planner) -> list[str]:
    """Compute three times by a plan and once without, compare, and return the plan's patterns."""
    with settings.use("interpreter"):
        expected = work()
        evaluate.evaluate(expected, wait=True)
    for _ in range(3):
        found = work()
        evaluate.evaluate(found, wait=True)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one._n.data, other._n.data, rtol=2e-2, atol=2e-2)
    return patterns_of(fresh)


@pytest.mark.parametrize("watched", [False, True])
def test_a_mixture_s_router_and_sum_are_one_step_each(fresh: Planner, watched: bool) -> None:
    logits, y = normal(3, 2, 8), normal(4, 2, 3, 5)
    evaluate.evaluate([logits, y], wait=True)

    def work() -> list[array]:
        gates = ops.softmax(ops.multiply(logits, 1.5), -1)
        places = ops.argpartition(gates, -3, -1)[..., -3:]
        scores = ops.take_along_axis(gates, places, -1)
        scores = ops.divide(scores, ops.sum(scores, -1, True))
        product = ops.multiply(y, ops.expand_dims(scores, -1))
        return [ops.sum(product, -2), *([gates, product] if watched else [])]

    assert twice(work, fresh).count("mixture") == (0 if watched else 2)


@pytest.mark.parametrize("other", [False, True])
def test_products_of_one_x_are_one_step(fresh: Planner, other: bool) -> None:
    def made(seed: int) -> Any:
        return ops.quantize(ops.astype(normal(seed, 16, 64), bfloat16), 32, 4)

    weights = [made(seed) for seed in (5, 6)]
    x, z = (ops.astype(normal(seed, 1, 64), bfloat16) for seed in (7, 8))
    evaluate.evaluate([x, z, *[part for one in weights for part in one]], wait=True)

    def work() -> list[array]:
        inputs = (x, z if other else x)
        return [
            ops.quantized_matmul(one, *parts, group_size=32, bits=4) for one, parts in zip(inputs, weights, strict=True)
        ]

    assert twice(work, fresh).count("projections") == (0 if other else 1)


@pytest.mark.parametrize("watched", [False, True])
def test_a_gate_is_one_step_with_its_products(fresh: Planner, watched: bool) -> None:
    x = ops.astype(normal(9, 1, 64), bfloat16)
    weights = [ops.quantize(ops.astype(normal(seed, 16, 64), bfloat16), 32, 4) for seed in (5, 6)]
    evaluate.evaluate([x, *[part for one in weights for part in one]], wait=True)
    swiglu = ops.compile(lambda gate, up: ops.multiply(ops.multiply(gate, ops.sigmoid(gate)), up))

    def work() -> list[array]:
        gate, up = (ops.quantized_matmul(x, *parts, group_size=32, bits=4) for parts in weights)
        return [swiglu(gate, up), *([gate] if watched else [])]

    # A gate that is wanted itself is computed beside its neighbour.
    found = twice(work, fresh)
    assert found.count("projections") == 1
    assert fresh.last is not None
    joined = [step for step in fresh.last.plan.steps if step.call.__module__.endswith("projections")]
    assert len(joined[0].outs) == (2 if watched else 1)


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("products", [1, 2, 3])
@pytest.mark.parametrize("added", [False, True])
def test_a_norm_is_one_step_with_the_products_of_its_result(
    fresh: Planner, added: bool, products: int, watched: bool
) -> None:
    """Three products, the first of which has weights of another format: the others take the normalised row from it."""
    gain, *row = (
        ops.astype(normal(seed, *shape), bfloat16) for seed, shape in ((4, (64,)), (7, (1, 64)), (8, (1, 64)))
    )
    sizes = [8, 4, 4] if products == 3 else [4] * products
    weights = [
        (bits, ops.quantize(ops.astype(normal(seed, 16, 64), bfloat16), 32, bits)) for seed, bits in enumerate(sizes)
    ]
    evaluate.evaluate([gain, *row, *[part for _, one in weights for part in one]], wait=True)

    def work() -> list[array]:
        x = ops.add(*row) if added else row[0]
        normed = fast.rms_norm(x, gain, 1e-5)
        found = [ops.quantized_matmul(normed, *one, group_size=32, bits=bits) for bits, one in weights]
        return [*found, *([normed] if watched else []), *([x] if added else [])]

    found = twice(work, fresh)
    assert found == ["projections_normed", *["projections"] * (products == 3)]
    assert fresh.last is not None
    joined = fresh.last.plan.steps[0]
    assert len(joined.outs) == (1 if products == 3 else products) + added + (watched or products == 3)


def test_a_norm_of_several_rows_is_computed_by_the_same_plan(fresh: Planner) -> None:
    gain = ops.astype(normal(4, 64), bfloat16)
    weights = ops.quantize(ops.astype(normal(5, 16, 64), bfloat16), 32, 4)
    evaluate.evaluate([gain, *weights], wait=True)
    for rows in (1, 1, 3, 1):
        x, y = (ops.astype(normal(seed + rows, rows, 64), bfloat16) for seed in (7, 9))
        evaluate.evaluate([x, y], wait=True)

        def work(x: array = x, y: array = y) -> list[array]:
            return [ops.quantized_matmul(fast.rms_norm(ops.add(x, y), gain, 1e-5), *weights, group_size=32, bits=4)]

        assert twice(work, fresh) == ["projections_normed"]


def test_a_plan_holds_for_values_that_are_stretched(fresh: Planner) -> None:
    for rows in (1, 1, 3, 2, 1):
        x, y = normal(3, 1, 64), normal(4, rows, 64)
        inner = ops.add(ops.multiply(x, 2.0), 1.0)
        outer = ops.multiply(ops.add(inner, y), 3.0)
        evaluate.evaluate([inner, outer], wait=False)
        wanted = x._n.data * 2.0 + 1.0
        torch.testing.assert_close(inner._n.data, wanted)
        torch.testing.assert_close(outer._n.data, (wanted + y._n.data) * 3.0)
    assert len(fresh.entries) == 1
    assert fresh.last is not None
    assert any(len(step.outs) == 2 for step in fresh.last.plan.steps)


def test_a_compiled_body_for_any_shape_is_planned_once(fresh: Planner) -> None:
    from rocmend.mlx.core import compile as compiled

    gated = compiled(lambda a, b: ops.multiply(ops.multiply(a, ops.sigmoid(a)), b), shapeless=True)
    for rows in (1, 5, 3, 1):
        a, b = normal(rows, rows, 64), normal(rows + 9, rows, 64)
        out = gated(a, b)
        evaluate.evaluate([out], wait=False)
        torch.testing.assert_close(out._n.data, torch.nn.functional.silu(a._n.data) * b._n.data)
    assert len(fresh.entries) == 1


def test_a_compiled_body_that_no_kernel_computes_is_one_step(fresh: Planner) -> None:
    from rocmend.mlx.core import compile as compiled

    folded = compiled(lambda a: ops.subtract(a, ops.logsumexp(a, axis=-1, keepdims=True)))
    for seed in (1, 2, 3):
        a = normal(seed, 3, 16)
        out = ops.multiply(folded(a), 2.0)
        evaluate.evaluate([out], wait=False)
        torch.testing.assert_close(out._n.data, torch.log_softmax(a._n.data, -1) * 2.0)
    assert fresh.last is not None


def test_a_number_from_before_may_be_another_one(fresh: Planner) -> None:
    """A learning rate is evaluated once, with the optimizer's state; the next optimizer comes with another."""
    for rate in (0.5, 0.5, 0.25):
        number = array(rate)
        evaluate.evaluate([number], wait=False)
        x, y = normal(3, 4, 64), normal(4, 4, 64)
        out = ops.subtract(x, ops.multiply(number, y))
        evaluate.evaluate([out], wait=False)
        torch.testing.assert_close(out._n.data, x._n.data - rate * y._n.data)
    assert fresh.last is not None
    assert any(step.call.__module__.endswith("group") for step in fresh.last.plan.steps)
