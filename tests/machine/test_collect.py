"""A snapshot survives whatever its collectors do, and derives facts in order."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import DataError, UnitError, UsageError
from rocmend.core.records import CollectorStatus, Gap
from rocmend.core.registry import LoadProblem
from rocmend.machine import collect as collect_module
from rocmend.machine import facts as facts_module
from rocmend.machine.collect import fact_docs, open_machine, snapshot
from rocmend.machine.derivations import in_order, overlap, run_derivations
from rocmend.machine.facts import COLLECTORS, Collector, Derivation, FactSink, Machine
from rocmend.machine.live import LiveRoot
from rocmend.machine.root import AbsentError, Root

from .conftest import EXAMPLES, MachineBuilder


def fine(_root: Root, facts: FactSink) -> None:
    facts.put("a.value", [1, "x", None, {"k": 1.5}], source="nowhere")


def hang(_root: Root, _facts: FactSink) -> None:
    time.sleep(60)


def crash(_root: Root, _facts: FactSink) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def bug(_root: Root, facts: FactSink) -> None:
    facts.put("e.first", 1, source="x")
    raise KeyError("nothing")


def refuse(_root: Root, facts: FactSink) -> None:
    facts.put("f.first", 1, source="x")
    raise AbsentError("/some/path", "is not there.")


def undeclared(_root: Root, facts: FactSink) -> None:
    facts.put("somebody.elses", 1, source="x")


def not_json(_root: Root, facts: FactSink) -> None:
    facts.put("h.value", object(), source="x")


def silent(_root: Root, _facts: FactSink) -> None:
    return


UNITS = [
    Collector("a", {"a.value": ""}, 5.0, fine),
    Collector("b", {"b.x": "", "b.*.y": ""}, 0.3, hang),
    Collector("c", {"c.x": ""}, 5.0, crash),
    Collector("e", {"e.first": "", "e.second": ""}, 5.0, bug),
    Collector("f", {"f.first": "", "f.second": ""}, 5.0, refuse),
    Collector("g", {"g.x": ""}, 5.0, undeclared),
    Collector("h", {"h.value": ""}, 5.0, not_json),
    Collector("i", {"i.x": "", "i.*.y": ""}, 5.0, silent),
    Collector("z", {"z.value": ""}, 5.0, lambda _root, facts: facts.put("z.value", "last", source="x")),
]


@pytest.fixture
def only_these(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def use(*units: Collector, derivations: tuple[Derivation, ...] = ()) -> None:
        for registry, found in ((COLLECTORS, units), (facts_module.DERIVATIONS, derivations)):
            monkeypatch.setattr(registry, "_units", {unit.name: unit for unit in found})
            monkeypatch.setattr(registry, "_loaded", True)
            monkeypatch.setattr(registry, "problems", [])

    return use


@pytest.mark.parametrize("live", [True, False], ids=["live", "captured"])
def test_faults_take_only_their_own_facts(
    only_these: Callable[..., None], machine: MachineBuilder, *, live: bool
) -> None:
    only_these(*UNITS)
    taken = snapshot(LiveRoot() if live else machine.root(), name="here")
    status = {run.name: run.status for run in taken.collectors}
    assert status == {
        "a": CollectorStatus.OK,
        "b": CollectorStatus.TIMEOUT,
        "c": CollectorStatus.CRASH,
        "e": CollectorStatus.ERROR,
        "f": CollectorStatus.ERROR,
        "g": CollectorStatus.ERROR,
        "h": CollectorStatus.ERROR,
        "i": CollectorStatus.OK,
        "z": CollectorStatus.OK,
    }
    assert taken.value("a.value") == [1, "x", None, {"k": 1.5}]
    assert taken.value("z.value") == "last"
    assert taken.value("f.first") == 1  # what it stated before it met an error of ours stands
    for key, word in (
        ("b.x", "limit"),
        ("b.7.y", "limit"),
        ("c.x", "SIGKILL"),
        ("e.first", "KeyError"),
        ("f.second", "not there"),
        ("g.x", "does not declare"),
        ("h.value", "TypeError"),
        ("i.x", "nothing to read it from"),
    ):
        gap = taken.gap(key)
        assert gap is not None, key
        assert word in gap.reason, gap
    assert taken.gap("i.7.y") is None
    assert next(run for run in taken.collectors if run.name == "c").reason == "ended by SIGKILL"


def test_asked_facts(machine: MachineBuilder, only_these: Callable[..., None]) -> None:
    only_these(UNITS[0])
    taken = snapshot(machine.root(), name="x", asked={"workload": "pytorch"})
    assert taken.value("ask.workload") == "pytorch"
    assert taken.facts["ask.model_bytes"].value is None
    assert taken.facts["ask.workload"].source == "command line"
    with pytest.raises(UsageError, match="colour"):
        snapshot(machine.root(), name="x", asked={"colour": "red"})


def test_only_some(machine: MachineBuilder) -> None:
    taken = snapshot(machine.root(), name="x", only=["os", "kernel"])
    assert [run.name for run in taken.collectors] == ["kernel", "os"]
    with pytest.raises(UsageError, match="no collector is called 'nonsense'"):
        snapshot(machine.root(), name="x", only=["nonsense"])


def test_units_that_cannot_be_loaded_are_listed(
    machine: MachineBuilder, only_these: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    only_these(UNITS[0])
    monkeypatch.setattr(COLLECTORS, "problems", [LoadProblem("rocmend.machine.collectors.bad", "SyntaxError: oops")])
    runs = {run.name: run for run in snapshot(machine.root(), name="x").collectors}
    assert runs["rocmend.machine.collectors.bad"].status is CollectorStatus.ERROR
    assert "oops" in runs["rocmend.machine.collectors.bad"].reason


def test_time_of_a_captured_machine_is_the_captures(machine: MachineBuilder, only_these: Callable[..., None]) -> None:
    only_these(UNITS[0])
    assert snapshot(machine.root(), name="x").captured_at == "2026-01-02T03:04:05+00:00"
    assert snapshot(LiveRoot(), name="x").captured_at > "2026"


def test_no_collectors_at_all(machine: MachineBuilder, only_these: Callable[..., None]) -> None:
    only_these()
    assert snapshot(machine.root(), name="x").collectors == ()


def test_open_machine(machine: MachineBuilder) -> None:
    machine.file("/etc/os-release", "ID=ubuntu\n")
    machine.root()
    assert open_machine(None).live
    assert not open_machine(machine.directory).live
    with pytest.raises(UsageError):
        open_machine(machine.directory / "root")


def test_default_name(tmp_path: Path) -> None:
    assert collect_module.default_name(None) == "this machine"
    assert collect_module.default_name(tmp_path / "strix" / ".." / "halo") == "halo"


def test_every_unit_of_ours_loads_and_documents_its_facts() -> None:
    docs = fact_docs()
    assert not COLLECTORS.problems
    assert not facts_module.DERIVATIONS.problems
    assert len(docs) > 150
    for key, text, unit in docs:
        assert text, (key, unit)
    keys = [key for key, _, _ in docs]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("directory", sorted(EXAMPLES.glob("*/machine.json")), ids=lambda path: path.parent.name)
def test_shipped_machines(directory: Path) -> None:
    snapshot(open_machine(directory.parent), name="warm")
    start = sum(os.times()[:4])
    taken = snapshot(open_machine(directory.parent), name="x")
    spent_s = sum(os.times()[:4]) - start
    assert {run.status for run in taken.collectors} == {CollectorStatus.OK}, taken.collectors
    assert taken.value("os.id")
    assert spent_s < 1  # 0.03 s of processor time, that of collectors' processes included


def nothing(_machine: Machine, _facts: FactSink) -> None:
    return


def derivation(
    name: str, states: str, *needs: str, function: Callable[[Machine, FactSink], None] = nothing
) -> Derivation:
    return Derivation(name, {states: ""}, needs, function)


EMPTY = Machine("x", "2026", {}, {})


class TestDerivations:
    def test_order_follows_needs(self) -> None:
        one = derivation("z_first", "gpu.*.area")
        two = derivation("y_second", "gpu.*.enough", "gpu.*.area")
        three = derivation("a_third", "verdict", "gpu.*.enough", "kernel.release")
        assert [item.name for item in in_order([three, two, one])] == ["z_first", "y_second", "a_third"]

    def test_circle_is_an_error(self) -> None:
        with pytest.raises(UnitError, match="circle"):
            in_order([derivation("a", "x", "y"), derivation("b", "y", "x"), derivation("c", "w")])

    def test_facts_flow_and_gaps_are_stated(self) -> None:
        def first(_machine: Machine, facts: FactSink) -> None:
            facts.put("one", 1, source="nothing")

        def second(machine: Machine, facts: FactSink) -> None:
            facts.put("two", machine.value("one") + 1, source="one")

        result = run_derivations(
            EMPTY,
            [
                derivation("b", "two", "one", function=second),
                derivation("a", "one", function=first),
                derivation("c", "three"),
            ],
        )
        assert result.value("two") == 2
        gap = result.gap("three")
        assert gap is not None
        assert "does not follow" in gap.reason
        assert EMPTY.facts == {}  # the machine given is left as it was

    def test_a_failing_derivation_is_listed_and_ends_nothing(self) -> None:
        def trip(machine: Machine, _facts: FactSink) -> None:
            machine.value("absent") + 1

        def stop(_machine: Machine, _facts: FactSink) -> None:
            raise DataError("x", "bad.")

        def work(_machine: Machine, facts: FactSink) -> None:
            facts.put("good", 1, source="x")

        result = run_derivations(
            EMPTY,
            [
                derivation("a", "bad", function=trip),
                derivation("b", "worse", function=stop),
                derivation("c", "good", function=work),
            ],
            problems=[("rocmend.machine.derive.broken", "ImportError: x")],
        )
        assert result.value("good") == 1
        assert {run.name for run in result.collectors} == {
            "derive.a",
            "derive.b",
            "rocmend.machine.derive.broken",
        }
        gap = result.gap("bad")
        assert gap is not None
        assert "TypeError" in gap.reason

    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            ("gpu.*.name", "gpu.0.name", True),
            ("gpu.*.name", "gpu.*.name", True),
            ("gpu.*.name", "gpu.*.isa", False),
            ("env.*", "env.HSA_X", True),
            ("env.*", "env", False),
            ("gpu.*", "gpu.0.name", True),
            ("a.b", "a.b.c", False),
            ("a", "a", True),
        ],
    )
    def test_overlap(self, first: str, second: str, *, expected: bool) -> None:
        assert overlap(first, second) is expected
        assert overlap(second, first) is expected

    @given(st.permutations(["a", "b", "c", "d", "e"]))
    def test_order_does_not_depend_on_the_order_given(self, names: list[str]) -> None:
        units = {
            "a": derivation("a", "fa", "fe"),
            "b": derivation("b", "fb"),
            "c": derivation("c", "fc", "fb", "fd"),
            "d": derivation("d", "fd", "fb"),
            "e": derivation("e", "fe", "fc"),
        }
        assert [item.name for item in in_order([units[name] for name in names])] == ["b", "d", "c", "e", "a"]


def test_gap_of_a_pattern_is_found_for_an_index() -> None:
    machine = Machine(
        "x",
        "2026",
        {},
        {
            "gpu.*.name": Gap("gpu.*.name", "pattern"),
            "env.*": Gap("env.*", "group"),
            "gpu.1.name": Gap("gpu.1.name", "own"),
        },
    )
    reasons = {
        key: gap.reason if (gap := machine.gap(key)) else None
        for key in ("gpu.0.name", "gpu.1.name", "env.X", "gpu.0.x")
    }
    assert reasons == {"gpu.0.name": "pattern", "gpu.1.name": "own", "env.X": "group", "gpu.0.x": None}
