"""Every rule, by its own cases: what it reports, what it writes, and that the NVIDIA side stays what it was."""

from __future__ import annotations

import re

import pytest

from rocmend.port.analyse import read
from rocmend.port.languages import destination, identity_broken, ported
from rocmend.port.records import Issue, Language, Outcome
from rocmend.port.rule import Case, Rule, cuda, python, rules, text

PACKAGE_IMPORT = "package._rocm"
HEADINGS = ("What it does", "Why it matters", "Use instead", "Fix safety", "References")


def example_path(rule: Rule, path: str = "") -> str:
    """A name under which the rule reads a case."""
    if path:
        return path
    if rule.language is not Language.TEXT:
        return {Language.PYTHON: "package/example.py", Language.CUDA: "src/example.cu"}[rule.language]
    first = rule.paths[0].replace("*", "x").replace("?", "x")
    return f"example{first}" if first.startswith(".") and "/" not in first else first


def found(rule: Rule, before: str, path: str) -> list[Issue]:
    report = read(example_path(rule, path), before.encode())
    assert not report.skipped, report.skipped
    return [issue for issue in report.issues if issue.rule == rule.id]


def written(rule: Rule, before: str, path: str, issues: list[Issue]) -> str:
    data = before.encode()
    where = example_path(rule, path)
    report = read(where, data)
    try:
        after = ported(
            report.language, where, data, issues, PACKAGE_IMPORT if report.language is Language.PYTHON else ""
        )
        reason = identity_broken(report.language, where, data, after)
    except ModuleNotFoundError as error:  # the writers are being built
        pytest.skip(f"{error}")
    assert reason is None, f"{reason}\n{after.decode()}"
    return after.decode()


INVALID = [pytest.param(rule, case, id=f"{rule.id}-{at}") for rule in rules() for at, case in enumerate(rule.invalid)]
VALID = [pytest.param(rule, source, id=f"{rule.id}-{at}") for rule in rules() for at, source in enumerate(rule.valid)]


@pytest.mark.parametrize("registry", [python, cuda, text], ids=["python", "cuda", "text"])
def test_every_rule_loads(registry: object) -> None:
    assert registry in (python, cuda, text)
    problems = getattr(registry, "problems")  # noqa: B009  the registries differ in nothing that matters here
    assert problems == []


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.id)
def test_rule_is_complete(rule: Rule) -> None:
    assert re.fullmatch(r"[A-Z]{2}\d{2}", rule.id)
    assert rule.valid, "a rule has at least one source that it leaves alone"
    assert rule.invalid, "a rule has at least one source that it reports"
    assert rule.sources, "a rule says where its knowledge comes from"
    assert rule.triggers, "a rule says which bytes a file must hold"
    assert bool(rule.paths) == (rule.language is Language.TEXT)
    for heading in HEADINGS:
        assert heading in rule.page, f"the page has no {heading!r}"
    if rule.outcome in {Outcome.AUTO, Outcome.SUGGEST}:
        assert any(case.after is not None for case in rule.invalid), "no case shows what it writes"


@pytest.mark.parametrize(("rule", "source"), VALID)
def test_valid(rule: Rule, source: str) -> None:
    assert found(rule, source, "") == []


@pytest.mark.parametrize(("rule", "case"), INVALID)
def test_invalid(rule: Rule, case: Case) -> None:
    issues = found(rule, case.before, case.path)
    assert issues, "the rule reports nothing"
    for issue in issues:
        assert 0 <= issue.start < issue.end <= len(case.before.encode())
        assert issue.message
        if issue.outcome in {Outcome.MANUAL, Outcome.NOTE}:
            assert not issue.edits, "what is not rewritten has no edits"
            assert issue.outcome is Outcome.NOTE or issue.remedy, "a person is told what to do"
        else:
            assert issue.edits, "what is rewritten has edits"
    rewritten = [issue for issue in issues if issue.edits]
    if case.after is None:
        assert rewritten == []
        return
    after = written(rule, case.before, case.path, rewritten)
    assert after == case.after
    beside = destination(rule.language, example_path(rule, case.path))
    again = [issue for issue in found(rule, after, beside) if issue.edits]
    assert again == [], "porting the result rewrites it again"


@pytest.mark.parametrize(("rule", "case"), INVALID)
def test_invalid_in_other_line_ends(rule: Rule, case: Case) -> None:
    """The same constructs are found, and the same is written, in a file with CRLF."""
    if case.after is None:
        assert found(rule, case.before.replace("\n", "\r\n"), case.path)
        return
    before = case.before.replace("\n", "\r\n")
    issues = [issue for issue in found(rule, before, case.path) if issue.edits]
    assert written(rule, before, case.path, issues) == case.after.replace("\n", "\r\n")


@pytest.mark.parametrize(("rule", "case"), INVALID)
def test_messages_do_not_move_with_the_file(rule: Rule, case: Case) -> None:
    """What a message says is the same further down: a port moves lines, and accepted issues are known by it."""
    told = [(issue.message, issue.remedy) for issue in found(rule, case.before, case.path)]
    below = [(issue.message, issue.remedy) for issue in found(rule, "\n" * 11 + case.before, case.path)]
    assert below == told
