"""Every command that has a human format has a page, and -o for all formats."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from rocmend.cli.main import command_modules

Run = Callable[..., Any]

FILES = {"r.html": "<!doctype html>", "r.md": "# ", "r.json": '{\n  "schema_version"', "r.txt": "Diagnosis of "}


@pytest.mark.parametrize(
    "words", [("doctor",), ("machine", "show"), ("targets",), ("kb", "search", "gfx1151"), ("demo",)]
)
def test_a_page_on_standard_output(rocmend: Run, words: tuple[str, ...]) -> None:
    named = ("--machine", "mi300x") if words[0] in {"doctor", "machine"} else ()
    done = rocmend(*words, *named, "--format", "html")
    assert done.out.startswith("<!doctype html>")
    assert done.out.endswith("</html>\n") or done.out.endswith("</html>")


@pytest.mark.parametrize("name", list(FILES))
def test_a_file_says_by_its_name_what_it_is_to_hold(rocmend: Run, tmp_path: Path, name: str) -> None:
    done = rocmend("doctor", "--machine", "strix-halo", "-o", tmp_path / name)
    text = (tmp_path / name).read_text()
    assert text.startswith(FILES[name])
    assert "firmware-mes-0x83" in text
    assert done.out == ""
    assert f"Written: {tmp_path / name}" in done.err
    assert done.code == 1


def test_the_format_that_was_asked_for_wins(rocmend: Run, tmp_path: Path) -> None:
    rocmend("doctor", "--machine", "mi300x", "--format", "md", "-o", tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text().startswith("# ")
    rocmend("doctor", "--machine", "mi300x", "--json", "-o", tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text().startswith("{")


def test_a_script_goes_into_the_file_too(rocmend: Run, tmp_path: Path) -> None:
    done = rocmend("doctor", "--machine", "strix-halo", "--plan", "sh", "-o", tmp_path / "plan.sh")
    assert done.out == ""
    assert "sudo" in (tmp_path / "plan.sh").read_text()


def test_a_place_that_cannot_be_written_to_is_refused_before_the_work(rocmend: Run, tmp_path: Path) -> None:
    done = rocmend("doctor", "--machine", "mi300x", "-o", tmp_path / "no" / "r.html")
    assert done.code == 2
    assert "does not exist" in done.err


def test_every_command_with_formats_has_all_of_documents_and_a_file() -> None:
    for words, name in command_modules().items():
        command: click.Command = importlib.import_module(name).command
        formats = next((option for option in command.params if "--format" in option.opts), None)
        if formats is None or not isinstance(formats.type, click.Choice) or "human" not in formats.type.choices:
            continue
        assert {"human", "json", "md", "html"} <= set(formats.type.choices), words
        assert any("-o" in option.opts for option in command.params), words
