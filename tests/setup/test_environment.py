from __future__ import annotations

from rocmend.kb.entry import Scope, Setting, Status
from rocmend.setup.environment import environment
from rocmend.setup.shells import Action, Line

from .conftest import make_entry, make_knowledge, make_machine

STRIX = {"gpu__0__gfx_target": "gfx1151", "gpus__count": 1}


def _names(lines: tuple[Line, ...]) -> list[str]:
    return [line.name for line in lines]


def test_only_settings_for_this_gpu_and_workload_are_given() -> None:
    knowledge = make_knowledge(
        make_entry("here", scope=Scope(gfx=("gfx1151",)), setting=(Setting("A", "1", why="because"),)),
        make_entry("generic", scope=Scope(gfx=("gfx11-generic",)), setting=(Setting("B", "1"),)),
        make_entry("elsewhere", scope=Scope(gfx=("gfx942",)), setting=(Setting("C", "1"),)),
        make_entry("other-work", setting=(Setting("D", "1", workload=("llama.cpp",)),)),
        make_entry("old", status=Status.SUPERSEDED, setting=(Setting("E", "1"),)),
    )
    lines = environment(make_machine(**STRIX), knowledge, "pytorch").lines
    assert _names(lines) == ["A", "B"]
    assert (lines[0].why, lines[0].entry_id, lines[0].source) == (
        "because",
        "here",
        "A page, https://example.org/page, 2026",
    )


def test_a_condition_decides_and_an_unknown_one_is_reported() -> None:
    knowledge = make_knowledge(
        make_entry("yes", setting=(Setting("A", "{rocm.path}/lib", when='rocm.kind == "therock-tarball"'),)),
        make_entry("no", setting=(Setting("B", "1", when='rocm.kind == "opt"'),)),
        make_entry("unknown", setting=(Setting("C", "1", when="numa.balancing == 1"),)),
    )
    machine = make_machine(rocm__kind="therock-tarball", rocm__path="/x/rocm", **STRIX)
    result = environment(machine, knowledge, "pytorch")
    assert [(line.name, line.value) for line in result.lines] == [("A", "/x/rocm/lib")]
    assert result.undecided == {"unknown": ("numa.balancing",)}


def test_where_entries_differ_the_firmer_stands_and_the_other_is_named() -> None:
    knowledge = make_knowledge(
        make_entry("a-disputed", status=Status.DISPUTED, setting=(Setting("X", "1", why="older advice"),)),
        make_entry("b-own", scope=Scope(gfx=("gfx1151",)), setting=(Setting("X", "0", why="measured"),)),
        make_entry("c-optional", setting=(Setting("X", "2", optional=True, why="try"),)),
    )
    (line,) = environment(make_machine(**STRIX), knowledge, "pytorch").lines
    assert (line.value, line.entry_id, line.optional) == ("0", "b-own", False)
    assert line.also == (
        "a-disputed (disputed) says 1: older advice",
        "c-optional (active) says 2: try",
    )


def test_prepends_of_several_entries_all_stand() -> None:
    knowledge = make_knowledge(
        make_entry("a", setting=(Setting("PATH", "/one", prepend=True),)),
        make_entry("b", setting=(Setting("PATH", "/two", prepend=True),)),
    )
    lines = environment(make_machine(**STRIX), knowledge, "pytorch").lines
    assert [(line.value, line.action) for line in lines] == [("/one", Action.PREPEND), ("/two", Action.PREPEND)]


def test_unset_is_said_where_the_variable_is_set_or_where_an_image_may_set_it() -> None:
    knowledge = make_knowledge(make_entry("a", setting=(Setting("BAD", unset=True),)))
    clean = make_machine(env__collected=True, **STRIX)
    dirty = make_machine(env__collected=True, env__BAD="1", **STRIX)
    assert environment(clean, knowledge, "pytorch").lines == ()
    assert _names(environment(dirty, knowledge, "pytorch").lines) == ["BAD"]
    assert _names(environment(clean, knowledge, "pytorch", always_unset=True).lines) == ["BAD"]


def test_a_variable_may_stand_in_several_steps() -> None:
    steps = (
        Setting("ON", "1", optional=True, step="Step 1"),
        Setting("ON", "1", optional=True, step="Step 2"),
        Setting("TUNE", "0", optional=True, step="Step 2"),
    )
    lines = environment(
        make_machine(**STRIX), make_knowledge(make_entry("a", setting=(*steps, Setting("FIRM", "1")))), "pytorch"
    ).lines
    assert [(line.step, line.name) for line in lines] == [
        ("", "FIRM"),
        ("Step 1", "ON"),
        ("Step 2", "ON"),
        ("Step 2", "TUNE"),
    ]
