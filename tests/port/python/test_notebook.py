"""Notebooks: what is found in their cells, and where that is in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rocmend.core.errors import DataError
from rocmend.port.analyse import analyse, read
from rocmend.port.apply import apply
from rocmend.port.python.notebook import Notebook
from rocmend.port.records import Issue, Language, Outcome

COMPILED = 'f = torch.compile(f, mode="max-autotune")'


def notebook(*cells: str | list[str] | tuple[str, str], language: str = "python", **options: Any) -> bytes:
    made: list[dict[str, Any]] = []
    for cell in cells:
        kind, source = cell if isinstance(cell, tuple) else ("code", cell)
        outputs = {"outputs": [{"text": ["mode='max-autotune' [\\\"{"]}], "execution_count": None}
        made.append({"cell_type": kind, "metadata": {}, "source": source, **(outputs if kind == "code" else {})})
    document = {"cells": made, "metadata": {"kernelspec": {"language": language}}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, **{"indent": 1, **options}).encode()


def found(data: bytes) -> list[Issue]:
    report = read("a.ipynb", data)
    assert not report.skipped, report.skipped
    assert report.language is Language.PYTHON
    return list(report.issues)


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("indent", [1, None])
def test_places_are_those_of_the_file(ascii_only: bool, indent: int | None) -> None:
    data = notebook(
        ("markdown", "# Notes: torch.compile(f, mode='max-autotune')"),
        ["import torch\n", "x = 'é\\t\U0001f600'\n"],
        f'y = "a\\\\"; z = "🙂"; {COMPILED}\nprint(y)',
        ["\n", "if x:\n", f"    {COMPILED}"],
        ensure_ascii=ascii_only,
        indent=indent,
    )
    other = data.replace(b"y = ", b"y = torch.compile; ").replace(b"torch.compile(f, mode", b"torch.jit(f, mode", 2)
    issues = [issue for one in (data, other) for issue in found(one) if issue.rule == "PY02"]
    assert [issue.message.partition(": ")[0] for issue in issues] == ["cell 3, line 1", "cell 4, line 3"]
    assert "(1 more in this file.)" in issues[0].message
    for written, issue in zip((data, other), issues, strict=True):
        assert written[issue.start : issue.end] == rb"\"max-autotune\""
        line = written.split(b"\n")[issue.line - 1]
        assert line.decode()[issue.column - 1 :].startswith('\\"max-autotune\\"')
        assert issue.end_line == issue.line
        assert issue.outcome is Outcome.MANUAL
        assert issue.edits == ()
        assert issue.remedy


@pytest.mark.parametrize(
    "cell",
    [
        f"%matplotlib inline\n!pip install torch\n{COMPILED}",
        f"!pip install \\\n  torch \\\n  numpy\n{COMPILED}",
        f"files = !ls\nfor x in files:\n    %run x\n{COMPILED}",
        f"torch.compile?\n{COMPILED}",
        f"%%time\n{COMPILED}",
        f"%time {COMPILED}",
        f"x = (1\n % 2)\n{COMPILED}",
        f"await start()\n{COMPILED}",
        f"# -*- coding: latin-1 -*-\n{COMPILED}\r\nx = 1",
    ],
)
def test_what_only_notebooks_have_is_no_error(cell: str) -> None:
    (issue,) = found(notebook("import torch", cell))
    lines = cell.split("\n")
    at = next(number for number, line in enumerate(lines, 1) if COMPILED in line)
    assert issue.message.startswith(f"cell 2, line {at}: ")
    data = notebook("import torch", cell)
    assert data[issue.start : issue.end] == rb"\"max-autotune\""


@pytest.mark.parametrize("cell", [f"%%bash\n{COMPILED}", f"%%writefile a.py\n{COMPILED}", f"# {COMPILED}"])
def test_what_is_no_python_of_the_notebook_is_left_alone(cell: str) -> None:
    assert found(notebook("import torch", cell)) == []


def test_a_notebook_in_another_language_is_left_alone() -> None:
    assert found(notebook("import torch", COMPILED, language="julia")) == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (notebook("import torch", f"print 'x'\n{COMPILED}"), "cell 2: it is Python 2"),
        (b'{"worksheets": [{"cells": ["max-autotune"]}]}', "format 3"),
        (b'{"cells": [{"source": "max-autotune"', "it ends inside a value"),
        (b'{"cells": ]} "max-autotune"', "unmatched bracket"),
        (b'{"cells": [{"cell_type": "code", "source": "\\x max-autotune"}]}', "cell 1 is not a JSON string"),
        (b'{"cells": [{"cell_type": "code", "source": "\\ud83d max-autotune"}]}', "surrogates not allowed"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, reason: str) -> None:
    assert reason in read("a.ipynb", data).skipped
    with pytest.raises(DataError, match=reason.split(":", 1)[0]):
        Notebook("a.ipynb", data)


def test_a_notebook_is_not_written(tmp_path: Path) -> None:
    data = notebook("import torch", COMPILED, "import torch\ntorch.backends.cudnn.benchmark = True")
    (tmp_path / "a.ipynb").write_bytes(data)
    analysis = analyse(tmp_path, cache=False)
    assert [issue.rule for issue in analysis.issues] == ["PY02", "PY10"]
    apply(analysis, suggestions=True)
    assert (tmp_path / "a.ipynb").read_bytes() == data
