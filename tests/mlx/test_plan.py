"""Plans of repeated steps: recognised, written in place where nothing else sees it, and equal to the interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from rocmend.mlx import core as ops
from rocmend.mlx import evaluate
from rocmend.mlx.array import array, leaf
from rocmend.mlx.dtypes import float32
from rocmend.mlx.execute import settings
from rocmend.mlx.execute.compare import DifferenceError, check
from rocmend.mlx.execute.planner import Planner, planner
from rocmend.mlx.execute.trace import Tape
from rocmend.mlx.node import current

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

LENGTH = 16


@pytest.fixture(autouse=True)
def fresh() -> Iterator[Planner]:
    """Begin with no plans and an empty tape, and leave none."""
    current.state.tape = []
    planner().forget()
    with settings.use("plan"):
        yield planner()
    planner().forget()


def cache() -> array:
    return leaf(torch.zeros(1, 2, LENGTH, 4), float32)


def token(value: float = 1.0) -> array:
    return leaf(torch.full((1, 2, 1, 4), value), float32)


def view_of(held: array, kind: str) -> Any:
    """Return a view of a cache: what a program may keep of it."""
    if kind == "slice":
        return held[..., :8, :]
    if kind == "reshape":
        return ops.reshape(held, (2, LENGTH, 4))
    return ops.transpose(held) if kind == "transpose" else ops.transpose(held[..., 2:9, :])[0]


def step(held: array, value: array, at: int) -> Any:
    """Write one place of a cache, and sum what is there so far."""
    held[..., at : at + 1, :] = value
    return ops.add(ops.sum(held[..., : at + 1, :], axis=2, keepdims=True), value)


def ran(steps: int, held: array, value: array) -> tuple[list[float], list[int]]:
    """Run steps; return a number of each result and the address of each cache."""
    numbers, places = [], []
    for at in range(steps):
        value = step(held, value, at)
        evaluate.evaluate([value], wait=False)
        numbers.append(float(value._n.data[0, 0, 0, 0]))
        places.append(held._n.data.data_ptr())
    return numbers, places


def test_a_repeated_step_is_planned_and_equal(fresh: Planner) -> None:
    with settings.use("interpreter"):
        expected, _ = ran(10, cache(), token())
    found, _ = ran(10, cache(), token())
    assert found == expected
    assert fresh.runs >= 7


def test_the_cache_is_written_in_place() -> None:
    _, places = ran(10, cache(), token())
    assert len(set(places[2:])) == 1


def test_a_cache_that_is_held_elsewhere_is_not_written_to() -> None:
    held, value = cache(), token()
    ran(6, held, value)
    kept = ops.add(held, 0.0)
    other = array.__new__(array)
    other._n = held._n  # a second handle of the same buffer
    evaluate.evaluate([kept], wait=True)
    before = other._n.data.clone()
    value = step(held, token(5.0), 9)
    evaluate.evaluate([value], wait=True)
    assert torch.equal(other._n.data, before)
    assert held._n.data[0, 0, 9, 0] == 5.0


@pytest.mark.parametrize("kind", ["slice", "reshape", "transpose", "chain"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_view_that_is_held_keeps_its_values(kind: str, times: int) -> None:
    held, value = cache(), token()
    ran(6, held, value)
    for _ in range(times):  # the last time by a plan that is there
        view = view_of(held, kind)
        evaluate.evaluate([step(held, token(2.0), 0)], wait=True)
        view = view_of(held, kind)
        evaluate.evaluate([view], wait=True)
    evaluate.evaluate([view], wait=True)
    before = evaluate.value(view._n).clone()
    for at in range(3):
        evaluate.evaluate([step(held, token(7.0), at)], wait=True)
    assert torch.equal(evaluate.value(view._n), before)


def test_a_view_among_the_roots_keeps_its_values() -> None:
    held, value = cache(), token()
    views = []
    for at in range(6):
        value = step(held, value, at)
        views.append(held[..., : at + 1, :])
        evaluate.evaluate([value, views[-1]], wait=True)
    for at, view in enumerate(views):
        alone = evaluate.value(view._n)
        assert alone.shape[2] == at + 1
        assert torch.equal(alone, held._n.data[..., : at + 1, :])


def test_what_numpy_was_given_is_not_written_to() -> None:
    numpy = pytest.importorskip("numpy")
    held, value = cache(), token()
    ran(6, held, value)
    given = numpy.array(held, copy=False)
    before = given.copy()
    evaluate.evaluate([step(held, token(9.0), 3)], wait=True)
    assert numpy.array_equal(given, before)


def test_an_intermediate_that_is_held_gets_its_value() -> None:
    x = token(2.0)
    for number in range(4):
        middle = ops.multiply(x, 3.0)
        out = ops.add(middle, 1.0)
        evaluate.evaluate([out], wait=True)
        if number % 2:
            assert float(evaluate.value(middle._n)[0, 0, 0, 0]) == 6.0
        else:
            del middle
        assert float(out._n.data[0, 0, 0, 0]) == 7.0


def test_numbers_that_differ_are_different_plans() -> None:
    x = token(2.0)
    found = []
    for number in (3.0, 3.0, 4.0, 4.0, -0.0, 0.0, 0.0):
        out = ops.divide(x, ops.multiply(x, number))
        evaluate.evaluate([out], wait=True)
        found.append(float(out._n.data[0, 0, 0, 0]))
    inf = float("inf")
    assert found == [pytest.approx(1 / 3), pytest.approx(1 / 3), 0.25, 0.25, -inf, inf, inf]


def test_other_shapes_use_the_plan_of_their_structure(fresh: Planner) -> None:
    made = fresh.made
    for size in (3, 3, 5, 7, 1):
        x = leaf(torch.arange(float(size)), float32)
        out = ops.sum(ops.multiply(x, x))
        evaluate.evaluate([out], wait=True)
        assert float(out._n.data) == sum(k * k for k in range(size))
    assert fresh.made == made + 1


def test_what_was_not_asked_for_stays_to_be_computed() -> None:
    x = token(2.0)
    for _ in range(3):
        asked, other = ops.add(x, 1.0), ops.multiply(x, 5.0)
        evaluate.evaluate([asked], wait=True)
        assert other._n.data is None
        later = ops.add(other, 1.0)
        evaluate.evaluate([later], wait=True)
        assert float(later._n.data[0, 0, 0, 0]) == 11.0
        assert float(evaluate.value(other._n)[0, 0, 0, 0]) == 10.0


def test_plans_are_bounded(fresh: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocmend.mlx.execute.planner.LIMIT", 8)
    x = token(2.0)
    for number in range(30):
        evaluate.evaluate([ops.multiply(x, float(number))], wait=True)
    assert len(fresh.entries) == 8


def test_a_failure_names_the_operation_and_leaves_the_planner_usable() -> None:
    bad = leaf(torch.zeros(2, 3), float32)
    bad._n.shape = (2, 4)  # a lie about its shape, as a faulty operation would tell
    with pytest.raises(RuntimeError, match=r"\[Matmul\] could not be computed for \(2, 3\)"):
        evaluate.evaluate([ops.matmul(bad, leaf(torch.zeros(4, 2), float32))], wait=True)
    assert float(evaluate.value(ops.sum(token())._n)) == 8.0


def test_comparing_executors_sees_a_difference() -> None:
    out = ops.multiply(token(2.0), 3.0)
    nodes = current.state.tape
    tape = Tape(nodes, [out._n])
    out._n.data = torch.full((1, 2, 1, 4), 6.0)
    place = nodes.index(out._n)
    check(tape, {place: torch.full((1, 2, 1, 4), 6.0)})
    with pytest.raises(DifferenceError, match=r"\[Multiply\].*differs from the interpreter by 1"):
        check(tape, {place: torch.full((1, 2, 1, 4), 7.0)})


def test_comparing_is_a_setting() -> None:
    with settings.use("compare"):
        found, _ = ran(6, cache(), token())
    with settings.use("interpreter"):
        expected, _ = ran(6, cache(), token())
    assert found == expected


def test_there_is_no_other_executor() -> None:
    with (
        pytest.raises(ValueError, match=r"\[use\] expected one of interpreter, plan, graph, compare"),
        settings.use("x"),
    ):
        pass
