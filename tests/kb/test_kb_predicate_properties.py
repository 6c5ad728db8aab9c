"""Laws that hold for every predicate and every value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rocmend.kb.predicate import PredicateError, compile_predicate
from rocmend.machine.facts import Machine

Build = Callable[..., Machine]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
truth_values = st.sampled_from(["f.true", "f.false", "f.unknown"])
formulas = st.recursive(
    truth_values,
    lambda inner: (
        inner.map(lambda item: f"not ({item})")
        | st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda parts: f"({' '.join(parts)})")
    ),
    max_leaves=8,
)
facts_read = ["a.x", "b.y", "gpu.z", "a.x[0]", 'a.x["k"]', "a.x.k", "env.q", "absent.w"]
computed = ["version(a.x)", "int(b.y)", "len(a.x)", "lower(b.y)", "known(a.x)", "-b.y", "[1, a.x]"]
literals = ["1", "1.5", '"7.2"', "None", "True"]
operands = st.sampled_from([*facts_read, *computed, *literals])
comparisons = st.tuples(
    operands, st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in", "+", "-", "*", "/"]), operands
).map(" ".join)
calls = st.sampled_from(
    ['matches(a.x, "a*b")', 'starts(b.y, "a")', "any_in(a.x, b.y)", "any_in([a.x], [b.y, 1])", "a.x", "b.y"]
)
predicates = st.lists(comparisons | calls, min_size=1, max_size=4).map(
    lambda parts: " and ".join(f"({part})" for part in parts)
)

TRUTH = {"f.true": True, "f.false": False}


@given(st.text(max_size=200))
def test_any_text_is_a_predicate_or_refused(text: str) -> None:
    try:
        predicate = compile_predicate(text)
    except PredicateError as error:
        offset = error.offset
    else:
        assert predicate.text == text
        return
    assert 0 <= offset <= len(text)


@given(st.text(alphabet="ab.()[]'\"<>=! ,notiradlsek01-+*/\\\n#{}:", max_size=80))
def test_near_misses_are_predicates_or_refused(machine_of: Build, text: str) -> None:
    try:
        predicate = compile_predicate(text)
    except PredicateError:
        return
    assert predicate.evaluate(machine_of({"a": {"b": 1}, "a.b": "x"})).value in {True, False, None}


@given(predicates, json_values, json_values, json_values)
def test_evaluation_never_raises(machine_of: Build, text: str, one: Any, two: Any, three: Any) -> None:
    machine = machine_of({"a.x": one, "b.y": two, "gpu.0.z": three})
    outcome = compile_predicate(text).evaluate(machine, 0)
    assert outcome.value in {True, False, None}
    if outcome.value is None:
        assert outcome.missing or outcome.notes
    else:
        assert not outcome.missing


def kleene(machine: Machine, text: str) -> bool | None:
    return compile_predicate(text).evaluate(machine).value


@given(formulas, formulas, formulas)
def test_kleene_laws(machine_of: Build, a: str, b: str, c: str) -> None:
    machine = machine_of(TRUTH)
    same = [
        (f"not not ({a})", a),
        (f"not ({a} and {b})", f"not ({a}) or not ({b})"),
        (f"not ({a} or {b})", f"not ({a}) and not ({b})"),
        (f"{a} and {b}", f"{b} and {a}"),
        (f"{a} or {b}", f"{b} or {a}"),
        (f"({a} and {b}) and {c}", f"{a} and ({b} and {c})"),
        (f"{a} and ({b} or {c})", f"({a} and {b}) or ({a} and {c})"),
        (f"{a} or ({a} and {b})", a),
        (f"{a} and f.true", a),
        (f"{a} or f.false", a),
    ]
    for left, right in same:
        assert kleene(machine, left) is kleene(machine, right), (left, right)
    assert kleene(machine, f"{a} and f.false") is False
    assert kleene(machine, f"{a} or f.true") is True


@given(formulas)
def test_what_is_decided_stays_so_when_more_is_known(machine_of: Build, text: str) -> None:
    """An unknown may become either; a known outcome never depends on it."""
    value = kleene(machine_of(TRUTH), text)
    for later in (True, False):
        decided = kleene(machine_of({**TRUTH, "f.unknown": later}), text)
        assert decided is not None
        assert value is None or decided is value


@given(json_values)
def test_equality_and_inequality_are_opposites(machine_of: Build, value: Any) -> None:
    machine = machine_of({"a.x": value})
    for other in ("None", "1", '"7.2"', "True", "[1]", "version(a.x)"):
        equal = kleene(machine, f"a.x == {other}")
        unequal = kleene(machine, f"a.x != {other}")
        assert (equal is None and unequal is None) or equal is (not unequal)


def test_values_nested_too_deep_to_compare_are_unknown(machine_of: Build) -> None:
    one: list[Any] = []
    two: list[Any] = []
    for _ in range(100_000):
        one, two = [one], [two]
    machine = machine_of({"a.x": one, "b.y": two})
    for text in ("a.x == b.y", "a.x in [b.y]", "version(a.x) == 1", "int(a.x) == 1", "a.x < b.y", "lower(a.x) == 1"):
        assert kleene(machine, text) is None
