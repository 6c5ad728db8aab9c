from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocmend.core.records import Phase, Remedy, Severity, Source
from rocmend.core.signatures import Line, Signature
from rocmend.core.verdict import Verdict
from rocmend.kb.entry import Basis, Case, Cell, Effect, Entry, Install, Links, Scope, Setting, Status
from rocmend.kb.lint import LintProblem, known_targets, lint, main
from rocmend.kb.load import Knowledge, load_entries
from rocmend.kb.rules import BEGINNINGS, RULES

Make = Callable[..., Entry]
Gather = Callable[..., Knowledge]

DECLARED = (
    "kernel.version",
    "kernel.params",
    "gpu.*.gfx_target",
    "gpu.*.firmware",
    "env.*",
    "packages",
    "rocm.version",
    "x.y",
)
FINDING: dict[str, Any] = {
    "severity": Severity.WARNING,
    "subject": "kernel",
    "when": 'kernel.version == "6.14"',
    "remedy": (Remedy("Do it."),),
    "case": (
        Case(applies=True, facts={"kernel.version": "6.14"}),
        Case(applies=False, facts={"kernel.version": "6.15"}),
    ),
}

CHANGE = Remedy("Change it.", action="change-it", phase=Phase.INSTALL, expect="it is changed", undo="Change it back.")


def _signature(pattern: str, line: str = "it broke 17 times", **fields: Any) -> Signature:
    return Signature(pattern, (Line(line, "https://example.org/1"),), **fields)


TAKEN = _signature("it went", "it went", rank=10, kind="taken", meaning="It.")


def _other(action: str, **fields: Any) -> Remedy:
    return msgspec.structs.replace(CHANGE, action=action, **fields)


def problems_of(knowledge: Knowledge, today: dt.date) -> tuple[LintProblem, ...]:
    found = lint(knowledge, today=today, declared=DECLARED)
    return tuple(
        one for one in found if one.entry_id != "other" or one.code != "KB037"
    )  # both name a kind that is taken


def codes(knowledge: Knowledge, today: dt.date) -> list[str]:
    return [problem.code for problem in lint(knowledge, today=today, declared=DECLARED)]


def test_a_sound_entry_passes(entry_of: Make, knowledge_of: Gather, today: dt.date) -> None:
    cases = tuple(
        Case(applies=case.applies, facts={**case.facts, "gpu.gfx_target": "gfx1151"}) for case in FINDING["case"]
    )
    entry = entry_of(
        **{**FINDING, "case": cases},
        scope=Scope(gfx=("gfx1151", "gfx11-generic"), rocm=">=7.0,<7.2", workload=("pytorch",)),
        effect=(Effect("speed", Basis.REPORTED, 1.2, "x"), Effect("it hangs", Basis.REPORTED)),
        setting=(
            Setting("A", "{kernel.version}", when='gpu.firmware.mes > 1 and version(rocm.version) >= version("7.0")'),
        ),
        cell=(Cell("release", "ROCm 7.2", "gfx1151", "full"),),
        claimed="2025-12",
    )
    assert codes(knowledge_of(entry), today) == []


INDEX_CODES = {"KB038", "KB039", "KB040"}
"""Tested with the table of indexes, in test_kb_indexes.py."""

BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("KB041", {"remedy": ()}),
    ("KB042", {"source": (Source("The first page", BEGINNINGS[0]), Source("The second", BEGINNINGS[1]))}),
    ("KB002", {"source": ()}),
    ("KB003", {"source": (Source("S"),)}),
    ("KB003", {"source": (Source("S", "see the wiki"),)}),
    ("KB043", {"source": (Source("S", "https://example.org/1", read=dt.date(2026, 11, 21)),)}),
    ("KB043", {"source": (Source("S", "https://example.org/1", said="It is so."),)}),
    ("KB043", {"source": (Source("S", "https://example.org/1", read=dt.date(2026, 11, 22), said="It is so."),)}),
    ("KB004", {"review_by": dt.date(2026, 11, 20), "reviewed": dt.date(2026, 1, 1)}),
    ("KB004", {"reviewed": dt.date(2026, 12, 1)}),
    ("KB004", {"review_by": dt.date(2027, 1, 1), "reviewed": dt.date(2027, 1, 2)}),
    ("KB005", {"links": Links(see=("nowhere",))}),
    ("KB005", {"links": Links(see=("an-entry",))}),
    ("KB006", {"links": Links(contradicts=("other",))}),
    ("KB007", {"status": Status.SUPERSEDED}),
    ("KB008", {"status": Status.REFUTED}),
    ("KB009", {"status": Status.FIXED_IN}),
    ("KB010", {**FINDING, "case": FINDING["case"][1:]}),
    ("KB011", {**FINDING, "case": FINDING["case"][:1]}),
    ("KB012", {**FINDING, "case": (*FINDING["case"], Case(applies=True, facts={"kernel.version": "6.16"}))}),
    ("KB012", {**FINDING, "case": (*FINDING["case"], Case(applies=False))}),
    ("KB012", {**FINDING, "case": (*FINDING["case"], Case(applies="perhaps"))}),
    ("KB013", {**FINDING, "when": "kernel.version =="}),
    ("KB013", {"setting": (Setting("A", when="1 +"),)}),
    ("KB013", {"install": (Install("torch", "pip install torch", when="1 +"),)}),
    ("KB014", {**FINDING, "when": 'kernel.version == "6.14" and not known(kernel.flavour)'}),
    ("KB014", {**FINDING, "case": (*FINDING["case"], Case(applies=False, facts={"kernel": {"a": 1}}))}),
    ("KB014", {**FINDING, "case": (*FINDING["case"], Case(applies="unknown", unset=("gpu.chip",)))}),
    ("KB015", {"scope": Scope(gfx=("gfx1152x",))}),
    ("KB015", {"install": (Install("torch", "pip install torch", gfx=("strix",)),)}),
    ("KB015", {"cell": (Cell("release", "ROCm 7.2", "RX 7900", "full"),)}),
    ("KB016", {"scope": Scope(rocm="7.0 or later")}),
    ("KB016", {"scope": Scope(kernel="new")}),
    ("KB016", {"scope": Scope(package={"torch": "~2"})}),
    ("KB017", {"scope": Scope(workload=("games",))}),
    ("KB017", {"setting": (Setting("A", workload=("games",)),)}),
    ("KB018", {"id": "An_Entry"}),
    ("KB019", {"title": "{kernel.flavour}"}),
    ("KB019", {"headline": "Linux {kernel.version}"}),
    ("KB019", {"remedy": (Remedy("Do", commands=("set {gpu.chip}",)),)}),
    ("KB019", {"setting": (Setting("A", "{gpu.chip}"),)}),
    ("KB020", {"severity": Severity.ERROR}),
    ("KB020", {**FINDING, "severity": None}),
    ("KB020", {**FINDING, "subject": ""}),
    ("KB020", {**FINDING, "remedy": ()}),
    ("KB021", {"body": " \n"}),
    ("KB022", {"effect": (Effect("speed", Basis.REPORTED, 1.2),)}),
    ("KB023", {"topic": "nonsense"}),
    ("KB024", {"cell": (Cell("os", "ROCm 7.2", "gfx1151", "full"),)}),
    ("KB024", {"cell": (Cell("release", "ROCm 7.2", "gfx1151", "good"),)}),
    ("KB026", {**FINDING, "remedy": (Remedy("Do it.", commands=("reboot",)),)}),
    ("KB027", {**FINDING, "remedy": (Remedy("Do it.", action="unheard-of", expect="e", undo="u"),)}),
    ("KB027", {**FINDING, "remedy": (msgspec.structs.replace(CHANGE, after=("unheard-of",)),)}),
    ("KB027", {**FINDING, "remedy": (CHANGE, Remedy("Or that.", instead_of="unheard-of"))}),
    ("KB028", {**FINDING, "remedy": (msgspec.structs.replace(CHANGE, after=("change-it",)),)}),
    (
        "KB028",
        {**FINDING, "remedy": (CHANGE, _other("more", after=("change-it",)), _other("change-it", after=("more",)))},
    ),
    ("KB029", {**FINDING, "id": "a", "remedy": (_other("set-variable:A=2"),)}),
    ("KB030", {**FINDING, "remedy": (msgspec.structs.replace(CHANGE, undo=""),)}),
    ("KB030", {**FINDING, "remedy": (msgspec.structs.replace(CHANGE, expect=""),)}),
    ("KB030", {**FINDING, "remedy": (CHANGE, Remedy("Or that.", instead_of="change-it", needs=("reboot",)))}),
    ("KB031", {"scope": Scope(rocm=">=7.0"), "setting": (Setting("A", "1", when='kernel.version == "6.12"'),)}),
    ("KB031", {"scope": Scope(package={"torch": ">=2.11"}), "setting": (Setting("A", "1"),)}),
    ("KB032", {"setting": (Setting("A", "1", why="No search: RDNA1 has no database."),)}),
    ("KB032", {"setting": (Setting("FORCE_RDNA1", unset=True),)}),
    ("KB033", {"scope": Scope(workload=("pytorch",)), "setting": (Setting("A", "1", workload=("mlx",)),)}),
    ("KB034", {"signature": (_signature("(?=a)b"),)}),
    ("KB034", {"signature": (_signature(r"\d+"),)}),
    ("KB035", {"signature": (_signature("no such text"),)}),
    ("KB035", {"signature": (msgspec.structs.replace(_signature("it broke"), lines=()),)}),
    ("KB035", {"signature": (msgspec.structs.replace(_signature("it broke"), lines=(Line("it broke", "a forum"),)),)}),
    ("KB036", {"signature": (_signature("went wrong", "it went wrong"),)}),
    ("KB037", {"signature": (_signature("it broke", kind="taken", meaning="It."),)}),
    ("KB037", {"signature": (_signature("it broke", kind="new"),)}),
    ("KB037", {"signature": (_signature("it broke", verdict=Verdict.CRASH),)}),
    ("KB013", {**FINDING, "remedy": (Remedy("Do it.", when="1 +"),)}),
    ("KB025", {"claimed": "last year"}),
    ("KB025", {"source": (Source("S", "https://example.org", "12/2025"),)}),
]


@pytest.mark.parametrize(("code", "fields"), BROKEN)
def test_each_rule_is_enforced(
    code: str, fields: dict[str, Any], entry_of: Make, knowledge_of: Gather, today: dt.date
) -> None:
    other = entry_of(**{**FINDING, "id": "other", "remedy": (_other("set-variable:A=1"),), "signature": (TAKEN,)})
    assert {problem.code for problem in problems_of(knowledge_of(entry_of(**fields), other), today)} == {code}


def test_the_same_value_and_different_machines_do_not_contradict(
    entry_of: Make, knowledge_of: Gather, today: dt.date
) -> None:
    same = entry_of(**{**FINDING, "id": "a", "remedy": (_other("set-variable:A=1"),)})
    elsewhere = entry_of(
        **{
            **FINDING,
            "id": "b",
            "when": 'kernel.version == "6.13"',
            "case": (Case(applies=True, facts={"kernel.version": "6.13"}), FINDING["case"][1]),
            "remedy": (_other("unset-variable:A"),),
        }
    )
    other = entry_of(**{**FINDING, "id": "other", "remedy": (_other("set-variable:A=1"),)})
    assert codes(knowledge_of(same, elsewhere, other), today) == []


def test_every_rule_has_a_test_and_a_paragraph() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-knowledge-entry.md"
    assert {code for code, _ in BROKEN} | {"KB001"} | INDEX_CODES == set(RULES)
    assert set(re.findall(r"KB\d{3}", page.read_text(encoding="utf-8"))) == set(RULES)


def test_what_a_status_demands_is_enough(entry_of: Make, knowledge_of: Gather, today: dt.date) -> None:
    knowledge = knowledge_of(
        entry_of(id="a", status=Status.SUPERSEDED, links=Links(superseded_by=("b",))),
        entry_of(id="b", status=Status.REFUTED, links=Links(refuted_by=("c",))),
        entry_of(id="c", status=Status.FIXED_IN, fixed_in=("ROCm 7.2",), links=Links(contradicts=("d",))),
        entry_of(id="d", links=Links(contradicts=("c",)), source=(Source("Ours", kind="measurement"),)),
    )
    assert codes(knowledge, today) == []


def test_a_review_is_due_on_its_day_and_overdue_after(entry_of: Make, knowledge_of: Gather) -> None:
    knowledge = knowledge_of(entry_of(reviewed=dt.date(2026, 1, 1), review_by=dt.date(2026, 6, 1)))
    assert codes(knowledge, dt.date(2026, 6, 1)) == []
    assert codes(knowledge, dt.date(2026, 6, 2)) == ["KB004"]


def test_a_review_of_today_is_recorded_and_older_ones_need_not_be(entry_of: Make, knowledge_of: Gather) -> None:
    day = dt.date(2026, 11, 30)
    recorded = Source("S", "https://example.org/1", read=day, said="It is so.")
    assert codes(knowledge_of(entry_of(reviewed=day)), day) == ["KB043"]
    assert codes(knowledge_of(entry_of(reviewed=dt.date(2026, 11, 29))), day) == []
    assert codes(knowledge_of(entry_of(reviewed=day, source=(recorded,))), day) == []
    older = entry_of(reviewed=dt.date(2026, 12, 1), source=(recorded,))
    assert codes(knowledge_of(older), dt.date(2026, 12, 1)) == ["KB043"], "reviewed is moved, and nothing was read"


def test_an_archived_entry_needs_no_action_and_no_review(entry_of: Make, knowledge_of: Gather) -> None:
    entry = entry_of(status=Status.ARCHIVED, remedy=(), review_by=dt.date(2026, 11, 22))
    knowledge = knowledge_of(entry, entry_of(id="kept"))
    assert codes(knowledge, dt.date(2026, 12, 1)) == []
    assert list(knowledge.current().entries) == ["kept"]
    assert knowledge.get(entry.id) is entry, "it is still found by its id"


def test_an_info_finding_needs_no_remedy(entry_of: Make, knowledge_of: Gather, today: dt.date) -> None:
    assert codes(knowledge_of(entry_of(**{**FINDING, "severity": Severity.INFO, "remedy": ()})), today) == []


def test_a_failed_case_says_what_was_read(entry_of: Make, knowledge_of: Gather, today: dt.date) -> None:
    wrong = Case(applies=True, note="older", facts={"kernel.version": "6.8"})
    unknown = Case(applies=False)
    entry = entry_of(**{**FINDING, "case": (*FINDING["case"], wrong, unknown)})
    first, second = (problem.message for problem in lint(knowledge_of(entry), today=today, declared=DECLARED))
    assert first == "case 3 (older): expected true, got false; kernel.version = '6.8'"
    assert second == "case 4: expected false, got unknown; kernel.version not collected"


def test_files_that_cannot_be_loaded_are_reported_with_their_line(
    write_entry: Callable[..., Path], tmp_path: Path, today: dt.date
) -> None:
    write_entry("bad", "+++\nid = 1\n+++\n")
    renamed = write_entry("good").rename(tmp_path / "kernel" / "better.md")
    knowledge = load_entries(tmp_path, builtin=False)
    problems = [one for one in lint(knowledge, today=today, declared=DECLARED) if not one.warning]
    assert [(problem.code, problem.line) for problem in problems] == [("KB001", 2), ("KB018", 0)]
    assert problems[1].path == str(renamed)
    assert [problem.code for problem in lint(knowledge, today=today, only=["bad.md"])] == ["KB001"]
    assert [problem.code for problem in lint(knowledge, today=today, only=["good"])] == ["KB018"]


def test_the_command_exits_by_what_it_found(
    write_entry: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = '+++\nid = "{id}"\ntitle = "T"\nkind = "issue"\nstatus = "active"\nreviewed = 2026-01-01\n'
    rest = "source = [{ title = 'S', url = 'https://example.org' }]\nremedy = [{ text = 'Do this.' }]\n+++\n\nWhy.\n"
    body = f"review_by = 2999-01-01\n{rest}"
    write_entry("sound-one", text + body)
    write_entry("stale-one", text + body.replace("2999", "2026"))
    monkeypatch.setenv("ROCMEND_KB", str(tmp_path))
    assert main(["sound-one"]) == 0
    assert main(["sound-one", "kernel/stale-one.md"]) == 0, "a review that is due fails nothing"
    assert "stale-one.md: KB004 warning: review was due" in capsys.readouterr().out
    write_entry("empty-one", text + body.replace("Why.", ""))
    assert main(["empty-one"]) == 1
    assert main(["no-such-entry"]) == 2
    assert "no-such-entry" in capsys.readouterr().err


def test_targets_are_those_of_the_table() -> None:
    assert {"gfx1151", "gfx90a", "gfx942", "gfx11-generic"} <= known_targets()
