"""Evaluation: what is computed, when, and what is let go."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("torch")

from rocmend.mlx import core as mx
from rocmend.mlx import evaluate
from rocmend.mlx.node import current

pytestmark = pytest.mark.cpu


def test_trees_are_computed_and_other_leaves_passed_over() -> None:
    a, b = mx.array(1) + 1, mx.array([1.0]) * 2
    mx.eval([a, {"b": (b, None, 3)}, "text"], 7)
    assert a._n.data is not None
    assert b._n.data is not None


def test_computed_nodes_let_go_of_their_inputs() -> None:
    a = mx.ones(4) + 1
    gone = weakref.ref(a._n)
    b = a * 2
    del a
    mx.eval(b)
    assert b._n.inputs == ()
    assert gone() is None
    assert current.state.tape == []


def test_traced_arrays_cannot_be_begun() -> None:
    def begins(a: Any) -> Any:
        b = a + 1
        mx.async_eval(b)
        return b.sum()

    with pytest.raises(ValueError, match="async_eval"):
        mx.grad(begins)(mx.array([1.0]))
    with pytest.raises(ValueError, match="transformations"):
        mx.vmap(begins)(mx.ones((2, 2)))
    other = mx.array([1.0]) + 1

    def unrelated(a: Any) -> Any:
        mx.async_eval(other)
        return a.sum()

    assert mx.grad(unrelated)(mx.array([1.0])).item() == 1


def test_long_tapes_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "LONGEST_TAPE", 10)
    done = mx.array([1.0])
    mx.eval(done)
    kept = done + 1
    for _ in range(20):
        done + 1
    mx.eval(done)
    assert current.state.tape == []
    assert kept.item() == 2


def test_errors_name_the_operation_and_leave_the_rest_usable() -> None:
    from rocmend.mlx.array import record
    from rocmend.mlx.primitive import PRIMITIVES, Primitive

    def fails(_node: Any, _a: Any) -> Any:
        raise RuntimeError("no such luck")

    broken = Primitive("TestBroken", fails)
    try:
        a = mx.array([1.0]) + 1
        b = record(broken, (a._n,), (1,), mx.float32)
        with pytest.raises(RuntimeError, match=r"\[TestBroken\].*no such luck"):
            mx.eval(b)
        assert (a * 2).item() == 4
    finally:
        del PRIMITIVES["TestBroken"]


def test_threads_share_what_is_not_computed_yet() -> None:
    shared = mx.arange(4) + 1
    mine = [mx.zeros(1) for _ in range(3)]  # other places on this thread's tape
    results: list[Any] = []

    def work() -> None:
        fresh = mx.ones(4) * 3
        results.append((shared * fresh).tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[3, 6, 9, 12]] * 4
    assert (shared + mine[0]).tolist() == [1, 2, 3, 4]
