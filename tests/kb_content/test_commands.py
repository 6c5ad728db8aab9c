"""Every ``rocmend`` command line that an entry tells a person to run is one."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from rocmend.cli.main import cli, with_default
from rocmend.core.records import Phase
from rocmend.kb.action import Action, Variant
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
        yield from (remedy.text, remedy.risk_note, remedy.expect, remedy.undo)
    yield from (setting.why for setting in entry.setting)
    for install in entry.install:
        yield from (install.why, *(caution.text for caution in install.caution))


def command_lines(entry: Entry) -> Iterator[str]:
    """Yield what stands after ``rocmend`` in commands, and in code spans and indented blocks of texts."""
    shell = [command for remedy in entry.remedy for command in (*remedy.commands, remedy.check)]
    shell += [install.command for install in entry.install]
    shell += [span for text in texts(entry) for span in SPAN.findall(text)]
    shell += [line.strip() for line in entry.body.splitlines() if line.startswith("    ")]
    yield from rocmend_lines(shell)


def rocmend_lines(shell: Iterable[str]) -> Iterator[str]:
    for text in shell:
        filled = text.replace("{python.executable}", sys.executable).replace("{gpu.gfx_target}", "gfx1151")
        yield from LINE.findall(re.sub(r"\{[^}]*\}", "value", " ".join(filled.split())))


def action_lines(action: Action) -> Iterator[str]:
    """Yield what stands after ``rocmend`` in the commands and texts of a shared action."""
    variants = [(one.text, one.undo, *(one.commands or ())) for one in action.variant]
    shell = [action.check, *action.commands, *(line for one in variants for line in one)]
    told = (action.text, action.expect, action.undo, action.risk_note, *shell)
    yield from rocmend_lines([*shell, *(span for text in told for span in SPAN.findall(text))])


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
            arguments = with_default(name, arguments)
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
    lines = [(entry.id, line) for entry in knowledge.entries.values() for line in command_lines(entry)]
    lines += [(action.id, line) for action in knowledge.actions.values() for line in action_lines(action)]
    for where, line in lines:
        try:
            seen.add(" ".join(parse(shlex.split(line))))
        except click.MissingParameter as error:
            if tuple(line.split()) not in NAMES:  # a text may name a command without a whole command line
                problems.append(f"{where}: rocmend {line}: {error.format_message()}")
        except click.UsageError as error:
            problems.append(f"{where}: rocmend {line}: {error.format_message()}")
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
    lines = list(action_lines(knowledge.actions["install-native-torch"]))
    assert any(line.startswith("wheel inspect torch --native") for line in lines)
    wrong = Action(
        "t",
        Phase.INSTALL,
        check="true && rocmend wheel inspekt",
        undo="`rocmend undo`",
        variant=(Variant("", ("rocmend a",), undo="`rocmend b`"),),
    )
    assert set(action_lines(wrong)) == {"wheel inspekt", "undo", "a", "b"}
    lines = list(command_lines(knowledge.entries["install-rocm-tarball"]))
    assert any(line.startswith("env --for") for line in lines)
