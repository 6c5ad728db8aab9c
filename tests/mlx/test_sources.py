"""Values from before a tape: on the device when first needed, gone after the last use."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from rocmend.mlx import core as mlx_core
from rocmend.mlx.execute import heap, interpreter, settings, sources
from rocmend.mlx.execute.planner import planner
from rocmend.mlx.io.source import failing
from rocmend.mlx.node import current

mx: Any = mlx_core
pytestmark = pytest.mark.cpu
COUNT, SHAPE = 8, (64, 128)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    planner().forget()
    monkeypatch.setattr(sources, "WORTH_BYTES", 1 << 16)
    with settings.use("plan"):
        yield


def _weights() -> list[Any]:
    made = [mx.array(np.random.default_rng(k).random(SHAPE, dtype=np.float32)) for k in range(COUNT)]
    mx.eval(made)
    return made


def _quantized() -> list[Any]:
    return [[part.tolist() for part in mx.quantize(weight)] for weight in _weights()]


def _alive(refs: list[Any]) -> int:
    return sum(ref() is not None for ref in refs)


def _refs(weights: list[Any]) -> list[Any]:
    return [weakref.ref(weight._n.data) for weight in weights]


def test_weights_that_only_the_tape_holds_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _quantized()
    weights = _weights()
    refs = _refs(weights)
    alive: list[int] = []
    monkeypatch.setattr(heap, "passed", lambda _: alive.append(_alive(refs)))
    made = [mx.quantize(weight) for weight in weights]
    weights.clear()
    mx.eval(made)
    assert alive[0] == COUNT
    assert alive[-1] <= 1
    assert alive == sorted(alive, reverse=True)
    assert [[part.tolist() for part in parts] for parts in made] == expected


def test_a_plan_that_is_there_lets_them_go_too() -> None:
    expected = _quantized()
    for turn in range(2):
        weights = _weights()
        refs = _refs(weights)
        alive: list[int] = []

        def noting(call: Any, refs: Any = refs, alive: Any = alive) -> Any:
            def noted(*given: Any) -> Any:
                alive.append(_alive(refs))
                return call(*given)

            return noted

        plans = planner().made
        if turn:
            for entry in planner().entries.values():
                for step in entry.plan.steps:
                    step.call = noting(step.call)
        made = [mx.quantize(weight) for weight in weights]
        weights.clear()
        mx.eval(made)
        assert planner().made == plans + 1 - turn
        assert [[part.tolist() for part in parts] for parts in made] == expected
    assert alive[0] == COUNT
    assert alive[-1] <= 1


def test_weights_that_a_handle_holds_stay() -> None:
    weights = _weights()
    refs = _refs(weights)
    mx.eval([mx.quantize(weight) for weight in weights])
    assert _alive(refs) == COUNT
    assert [weight.tolist() for weight in weights] == [weight.tolist() for weight in _weights()]


def test_what_is_computed_later_finds_its_inputs() -> None:
    weights = _weights()
    refs = _refs(weights)
    between = [mx.sin(weight) for weight in weights]
    sums = [mx.sum(one) for one in between]
    later = [between[0] + 1, weights[1] * 2]
    weights.clear()
    between.clear()
    mx.eval(sums)
    assert _alive(refs) == 2
    assert np.allclose(np.array(later[0]), np.sin(np.array(_weights()[0])) + 1)
    assert np.array_equal(np.array(later[1]), np.array(_weights()[1]) * 2)


@pytest.mark.parametrize("turns", [1, 2])
def test_after_an_error_what_was_computed_is_there(turns: int) -> None:
    expected = _quantized()
    for _ in range(turns):
        weights = _weights()
        refs = _refs(weights)
        made = [mx.quantize(mx.sin(weight) if not k else weight) for k, weight in enumerate(weights)]
        weights.clear()
        broken = failing("[load] damaged", (1,), mx.float32, current.state.stream)
        with pytest.raises(RuntimeError, match="damaged"):
            mx.eval(*made[:4], broken, *made[4:])
        assert _alive(refs) < COUNT
        assert [[part.tolist() for part in parts] for parts in made[1:]] == expected[1:]
        first = mx.quantize(mx.sin(_weights()[0]))
        assert [part.tolist() for part in made[0]] == [part.tolist() for part in first]


@pytest.mark.parametrize("turns", [1, 2])
def test_values_of_another_device_come_when_they_are_needed(turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for turn in range(turns):
        weights = _weights()
        brought: list[Any] = []
        alive: list[int] = []
        move = interpreter.moved

        def watched(tensor: Any, device: Any, brought: Any = brought, alive: Any = alive, move: Any = move) -> Any:
            moved = move(tensor, device)
            brought.append(weakref.ref(moved))
            alive.append(_alive(brought))
            return moved

        with monkeypatch.context() as patched:  # a device that computes nothing but shapes
            patched.setattr(interpreter, "moved", watched)
            patched.setattr(current.state.device, "torch", torch.device("meta"))
            plans = planner().made
            totals = [mx.sum(mx.sin(weight) * weight) for weight in weights]
            mx.eval(totals)
        assert planner().made == plans + (not turn)
        assert len(brought) == COUNT  # each once, though two operations read it
        assert max(alive) <= 2
        assert _alive(brought) == 0
        assert all(total._n.data.device.type == "meta" for total in totals)
