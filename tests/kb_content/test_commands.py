"""Every ``rocmend`` command line that an entry tells a person to run is one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rocmend.cli.main import cli
from rocmend.kb.entry import Entry
from rocmend.kb.load import Knowledge

SPAN = re.compile(r"`+([^`]+)`+")
LINE = re.compile(r"(?:^|[(;&|]\s*|\n)rocmend\s+([^\n|;&)]*)")
NOT_YET = re.compile(r"\brocmend (?:port|probe|lab|bench|emulate|bundle)\b")

NAMES = {("env",), ("wheel", "inspect"), ("kb", "show"), ("kb", "search"), ("kb", "matrix"), ("machine", "capture")}


def texts(entry: Entry) -> Iterator[str]:
    yield from (entry.title, entry.body, entry.scope.note)
    yield from (effect.condition for effect in entry.effect)
    for remedy in entry.remedy:
        yield from (remedy.text, remedy.risk_note)
    yield from (setting.why for setting in entry.setting)
    for install in entry.install:
        yield from (install.why, *(caution.text for caution in install.caution))


def command_lines(entry: Entry) -> Iterator[str]:
    """Yield what stands after ``rocmend`` in commands, and in code spans and indented blocks of texts."""
    shell = [command for remedy in entry.remedy for command in remedy.commands]
    shell += [install.command for install in entry.install]
    shell += [span for text in texts(entry) for span in SPAN.findall(text)]
    shell += [line.strip() for line in entry.body.splitlines() if line.startswith("    ")]
    for text in shell:
        yield from LINE.findall(re.sub(r"\{[^}]*\}", "value", " ".join(text.split())))


def parse(arguments: list[str]) -> list[str]:
    """Parse a command line without running it, and return the path of the command it names.

    Raises:
        click.UsageError: There is no such command or option, or a value is refused.
    """
    command: click.Group = cli
    path: list[str] = []
    context = click.Context(command, info_name="rocmend")
    while arguments:
        name, arguments = arguments[0], arguments[1:]
        found = command.get_command(context, name)
        if found is None:
            raise click.UsageError(f"no command {name}")
        path.append(name)
        if isinstance(found, click.Group):
            command, context = found, click.Context(found, info_name=name, parent=context)
            continue
        with found.make_context(name, list(arguments), parent=context):
            return path
    return path


def test_every_command_line_in_an_entry_is_one(
    knowledge: Knowledge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FOLDER").mkdir()  # what entries call a captured machine
    seen, problems = set(), []
    for entry in knowledge.entries.values():
        for line in command_lines(entry):
            try:
                seen.add(" ".join(parse(shlex.split(line))))
            except click.MissingParameter as error:
                if tuple(line.split()) not in NAMES:  # a text may name a command without a whole command line
                    problems.append(f"{entry.id}: rocmend {line}: {error.format_message()}")
            except click.UsageError as error:
                problems.append(f"{entry.id}: rocmend {line}: {error.format_message()}")
    assert problems == []
    assert {"doctor", "env", "wheel choose", "wheel inspect", "machine show"} <= seen


def test_no_entry_speaks_of_a_command_that_does_not_exist(knowledge: Knowledge) -> None:
    existing = set(cli.list_commands(click.Context(cli)))
    wrong = {
        entry.id: match.group()
        for entry in knowledge.entries.values()
        for text in texts(entry)
        if (match := NOT_YET.search(text)) and match.group().split()[1] not in existing
    }
    assert wrong == {}


@pytest.mark.parametrize(
    "line", ["wheel chose", "doctor --fro pytorch", "env", "env --for painting", "wheel inspect", "kb matrix colour"]
)
def test_a_wrong_command_line_is_recognised(line: str) -> None:
    with pytest.raises(click.UsageError):
        parse(shlex.split(line))


def test_command_lines_are_found_in_commands_and_texts(knowledge: Knowledge) -> None:
    lines = list(command_lines(knowledge.entries["install-rocm-tarball"]))
    assert any(line.startswith("env --for") for line in lines)
