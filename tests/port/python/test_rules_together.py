"""Rules for Python beside each other: what several write into one file is proven, and writing again adds nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmend.port.analyse import read
from rocmend.port.python.identity import folds_back
from rocmend.port.python.write import ported
from rocmend.port.records import Issue, Language
from rocmend.port.rule import rules

CASES = [case.before for rule in rules(Language.PYTHON) if rule.id.startswith("PY") for case in rule.invalid]
CASES += [source for rule in rules(Language.PYTHON) if rule.id.startswith("PY") for source in rule.valid]


def found(data: bytes) -> list[Issue]:
    report = read("package/example.py", data)
    assert not report.skipped, report.skipped
    return [issue for issue in report.issues if issue.edits and issue.rule.startswith("PY")]


def written(data: bytes, issues: list[Issue], package_import: str) -> bytes:
    after = ported(data, issues, package_import)
    assert folds_back(data, after) is None, after.decode()
    return after


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(CASES), min_size=2, max_size=5), st.sampled_from(["package._rocm", "._rocm"]))
def test_several_in_one_file(sources: list[str], package_import: str) -> None:
    """Each source in a function of its own, so that its names are."""
    parts = []
    for number, source in enumerate(sources):
        body = [line for line in source.splitlines() if not line.startswith("from __future__")]
        if "import *" in source or '"""' in source or "__main__" in source or "'''" in source:
            continue
        indented = "".join(f"    {line}\n" if line else "\n" for line in body)
        # a source may be a comment alone
        parts.append(f"def f{number}():\n{indented}    pass\n\n\n")
    data = "".join(parts).encode()
    issues = found(data)
    if not issues:
        return
    after = written(data, issues, package_import)
    assert found(after) == []
    only = written(data, issues[:1], package_import)
    rest = found(only)
    assert {(issue.rule, issue.snippet) for issue in rest} == {(issue.rule, issue.snippet) for issue in issues[1:]}
    if rest:
        assert found(written(only, rest, package_import)) == []
