"""The command, as a person would call it: real recording and compiling of one op."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels.compiled.table import read_table, write_table

pytestmark = [pytest.mark.cpu, pytest.mark.slow]


class Done(msgspec.Struct):
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return msgspec.json.decode(self.out)["data"]


def _compile(home: Path, *arguments: str | Path) -> Done:
    unset = {"TRITON_INTERPRET", "ROCMEND_TRITON_ALT"}
    env = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "-m", "rocmend", "kernels", "compile", *map(str, arguments)],
        env=env | {"ROCMEND_HOME": str(home), "ROCMEND_CACHE_HOME": str(home / "cache"), "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_an_op_is_compiled_once_and_compared(tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    first = _compile(tmp_path, "rms_norm", "--subset", "fast", "--targets", "gfx1100", "--write", table, "--json")
    assert first.code == 0, first.err
    report = first.data["report"]
    assert report["rows"]
    assert report["compiled"] == len(report["rows"])
    assert {row["target"] for row in report["rows"]} == {"gfx1100"}
    assert all(row["measured"]["llvm_occupancy"] >= row["measured"]["occupancy"] for row in report["rows"])

    again = _compile(tmp_path, "rms_norm", "--subset", "fast", "--targets", "gfx1100", "--diff", table)
    assert again.code == 0, again.out
    assert "from the cache" in again.out
    assert max(map(len, again.out.splitlines())) <= 80

    row, *rest = read_table(table)
    assert row.measured is not None
    other = msgspec.structs.replace(row, measured=msgspec.structs.replace(row.measured, vgprs=row.measured.vgprs + 1))
    write_table(table, [other, *rest])
    changed = _compile(tmp_path, "rms_norm", "--subset", "fast", "--targets", "gfx1100", "--diff", table, "--json")
    assert changed.code == 1
    assert [one["change"] for one in changed.data["differences"]] == [
        f"vgprs {row.measured.vgprs + 1} → {row.measured.vgprs}"
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no_such_op"], "no_such_op"),
        (["rms_norm", "--targets", "gfx9999"], "gfx9999"),
        (["rms_norm", "--targets", "cpu"], "nothing is compiled for the CPU"),
        (["rms_norm", "--targets", "gfx1010"], "needs triton >=3.6,<3.8"),
        (["--triton", "3.7.0"], "expected VERSION=PATH"),
    ],
    ids=str,
)
def test_what_cannot_be_is_said(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = _compile(tmp_path, *arguments)
    assert done.code == 2
    assert words in " ".join(done.err.split())
    assert done.out == ""
