"""Known issues: what moves is still known, what is new is not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import DataError
from rocmend.core.records import Severity
from rocmend.port.analyse import analyse
from rocmend.port.baseline import read_baseline, without_known, write_baseline
from rocmend.port.records import Analysis, FileReport, Issue, Language, Outcome


def issue(path: str, rule: str, snippet: str, line: int) -> Issue:
    return Issue(rule, path, line, 1, line, 0, 1, Severity.ERROR, Outcome.AUTO, "found", snippet=snippet)


def analysis(issues: list[Issue]) -> Analysis:
    paths = sorted({one.path for one in issues})
    files = tuple(
        FileReport(path, Language.CUDA, 1, issues=tuple(one for one in issues if one.path == path)) for path in paths
    )
    return Analysis("root", (), files)


_ISSUES = st.lists(
    st.builds(
        issue,
        st.sampled_from(["a.cu", "b.cu"]),
        st.sampled_from(["CU01", "CU02"]),
        st.sampled_from(["x = 1;", "x  =  1;", "y();", ""]),
        st.integers(1, 99),
    ),
    max_size=12,
)


def key(one: Issue) -> tuple[str, str, str]:
    return one.path, one.rule, " ".join(one.snippet.split())


@given(known=_ISSUES, now=_ISSUES)
def test_what_is_left_is_what_is_new(
    tmp_path_factory: pytest.TempPathFactory, known: list[Issue], now: list[Issue]
) -> None:
    path = tmp_path_factory.mktemp("baseline") / "known.json"
    assert write_baseline(path, analysis(known)) == len(known)
    left = without_known(analysis(now), read_baseline(path)).issues
    assert Counter(map(key, left)) == Counter(map(key, now)) - Counter(map(key, known))


@given(known=_ISSUES)
def test_the_order_of_issues_does_not_matter(tmp_path_factory: pytest.TempPathFactory, known: list[Issue]) -> None:
    folder = tmp_path_factory.mktemp("baseline")
    write_baseline(folder / "a", analysis(known))
    write_baseline(folder / "b", analysis(known[::-1]))
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()


def test_lines_that_move_stay_known(project: Path, tmp_path: Path) -> None:
    path = project / "pkg" / "train.py"
    write_baseline(tmp_path / "known.json", analyse(project))
    path.write_text("# a line more\n\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    baseline = read_baseline(tmp_path / "known.json")
    assert without_known(analyse(project), baseline).issues == []
    path.write_text(path.read_text(encoding="utf-8") + 'again = torch.compile(mode="max-autotune")\n', encoding="utf-8")
    assert {one.line for one in without_known(analyse(project), baseline).issues} == {8}


def test_skipped_files_stay(tmp_path: Path) -> None:
    write_baseline(tmp_path / "known.json", Analysis("root", (), ()))
    report = FileReport("a.py", Language.PYTHON, 1, skipped="no Python")
    assert without_known(Analysis("root", (), (report,)), read_baseline(tmp_path / "known.json")).files == (report,)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"schema_version": 9, "known": []}', '{"schema_version": 1, "known": [{"path": 1}]}', "[1"]
)
def test_what_is_no_baseline_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "known.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"known\.json"):
        read_baseline(path)
    with pytest.raises(DataError, match="nowhere"):
        read_baseline(tmp_path / "nowhere")
