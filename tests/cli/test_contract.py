"""What every command promises: help with examples, the JSON envelope, coded errors, exit codes, data on stdout only."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from rocmend import __version__
from rocmend.cli.base import OneOf, RocmendCommand
from rocmend.cli.main import cli, command_modules, with_default
from rocmend.cli.quantities import MODEL_SIZE, SIZE, Duration

Run = Callable[..., Any]

ENVELOPE = {"schema_version", "command", "status", "exit_code", "redacted", "data", "errors"}
STATUS = {0: "clean", 1: "findings", 2: "error"}


def _resolve(words: list[str]) -> click.Command | None:
    """Return the command that a command line calls, or None."""
    found: click.Command | None = cli
    while isinstance(found, click.Group):
        words = with_default(found.name or "", words)
        if not words:
            return None
        found, words = found.get_command(click.Context(found), words[0]), words[1:]
    return found if isinstance(found, RocmendCommand) else None


def test_there_are_commands() -> None:
    expected = {
        "check",
        "doctor",
        "env",
        "kb lint",
        "kb matrix",
        "kb search",
        "kb show",
        "kb sources",
        "kernels check",
        "kernels explain",
        "kernels list",
        "kernels tune",
        "machine capture",
        "machine show",
        "targets",
        "wheel choose",
        "wheel inspect",
    }
    assert expected <= set(command_modules())


@pytest.mark.parametrize(("path", "module"), sorted(command_modules().items()))
def test_help_has_two_examples_that_call_real_commands(path: str, module: str, rocmend: Run) -> None:
    command = importlib.import_module(module).command
    assert isinstance(command, RocmendCommand)
    assert command.name == path.rsplit(" ", maxsplit=1)[-1]
    assert command.help
    assert len(command.examples) >= 2
    for line, meaning in command.examples:
        assert meaning
        inner = line.partition("<(")[2].rstrip(")") if "<(" in line else line
        words = shlex.split(inner)
        assert words[0] == "rocmend"
        assert _resolve(words[1:]) is not None, line
    done = rocmend(*path.split(" "), "--help")
    assert done.code == 0
    assert "Examples:" in done.out
    assert max(map(len, done.out.splitlines())) <= 100


@pytest.mark.parametrize(
    "arguments",
    [
        ["targets"],
        ["targets", "gfx1151"],
        ["kb", "search", "cwsr"],
        ["kb", "show", "gfx1151-cwsr-save-area-too-small"],
        ["kb", "matrix", "release"],
        ["kb", "sources"],
        ["kernels", "list"],
        ["kernels", "explain", "rms_norm", "dtype=float16", "rows=2", "columns=64", "--target", "gfx1151"],
        ["machine", "show", "--machine", "{machines}/strix-halo"],
        ["doctor", "--machine", "{machines}/strix-halo"],
        ["doctor", "--explain", "gfx1151-cwsr-save-area-too-small"],
        ["env", "--for", "pytorch", "--machine", "{machines}/strix-halo"],
        ["wheel", "choose", "--machine", "{machines}/strix-halo"],
    ],
    ids=" ".join,
)
def test_json_is_one_envelope(arguments: list[str], rocmend: Run, machines: object) -> None:
    done = rocmend(*(argument.format(machines=machines) for argument in arguments), "--json")
    envelope = msgspec.json.decode(done.out)
    assert set(envelope) == ENVELOPE
    assert envelope["exit_code"] == done.code
    assert envelope["status"] == STATUS[envelope["exit_code"]]
    assert envelope["data"] is not None
    assert envelope["errors"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["targets", "gfx9999"], "usage"),
        (["kb", "show", "no-such-entry"], "usage"),
        (["doctor", "--machine", "/nonexistent"], "usage"),
        (["kernels", "explain", "rms_norm", "dtype=float16"], "usage"),
        (["kernels", "check", "rms_norm", "--sizes", "huge"], "usage"),
        (["doctor", "--model-size", "huge"], "usage"),
        (["doctor", "--explain", "no-such-entry"], "usage"),
        (["wheel", "choose", "no-such-package", "--target", "gfx1151"], "usage"),
        (["wheel", "inspect", "/nonexistent.whl"], "usage"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_an_error_is_words_on_stderr_and_coded_in_json(arguments: list[str], code: str, rocmend: Run) -> None:
    done = rocmend(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("rocmend: [")
    assert "Traceback" not in done.err
    envelope = msgspec.json.decode(rocmend(*arguments, "--json").out)
    assert (envelope["status"], envelope["exit_code"], envelope["errors"][0]["code"]) == ("error", 2, code)


def test_a_mistake_in_the_command_line_is_coded_too(rocmend: Run) -> None:
    envelope = msgspec.json.decode(rocmend("env", "--for", "nonsense", "--json").out)
    assert envelope["errors"][0]["code"] == "usage"
    assert "nonsense" in envelope["errors"][0]["message"]


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["docter"], "doctor"),
        (["kb", "shwo"], "show"),
        (["doctor", "--mdel-size", "3GB"], "'--model-size'"),
        (["env", "--for", "llama"], "llama.cpp"),
        (["kb", "show", "gfx1151-cwsr-save"], "gfx1151-cwsr-save-area-too-small"),
        (["kb", "lint", "gfx1151_cwsr_save_area"], "gfx1151-cwsr-save-area-too-small"),
        (["doctor", "--explain", "save-area-cwsr"], "gfx1151-cwsr-save-area-too-small"),
        (["kernels", "explain", "rms_norm", "dtyp=float16"], "dtype"),
        (["kernels", "list", "rms_nrm"], "rms_norm"),
        (["kernels", "check", "rms_nrm", "--no-store"], "rms_norm"),
        (["kernels", "tune", "rms_nrm"], "rms_norm"),
        (["kernels", "compile", "--op", "rms_nrm"], "rms_norm"),
        (["probe", "--select", "matmull", "--list"], "matmul"),
        (["port", "--explain", "CX13"], "CU13"),
        (["port", "--select", "PZ01", "."], "PY01"),
        (["wheel", "choose", "torhc", "--target", "gfx1151"], "torch"),
        (["targets", "gfx1157"], "gfx1151"),
    ],
    ids=" ".join,
)
def test_a_wrong_name_is_answered_with_the_nearest(arguments: list[str], meant: str, rocmend: Run) -> None:
    done = rocmend(*arguments)
    assert done.code == 2
    assert "Did you mean " in done.err
    suggested = done.err.partition("Did you mean ")[2].partition("?")[0]
    assert meant in suggested
    assert suggested.count(",") < 5


def _groups(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Group]]:
    yield path, group
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from _groups(found, (*path, name))


@pytest.mark.parametrize(("path", "group"), [pytest.param(*item, id=" ".join(item[0])) for item in _groups(cli)])
def test_help_lists_every_command_with_a_whole_summary(path: tuple[str, ...], group: click.Group, rocmend: Run) -> None:
    done = rocmend(*path, "--help")
    assert done.code == 0
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.endswith("...") and not line.startswith("Usage:")]
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        said = command.get_short_help_str()
        assert len(said) > 10, f"{name}: {said}"
        assert [line for line in lines if line.split() == [name, *said.split()]], f"{name}: shorten: {said}"


def test_every_command_has_its_place_in_the_help(rocmend: Run) -> None:
    out = rocmend("--help").out
    assert "More commands" not in out
    assert out.index("  check") < out.index("Understand:")


def test_the_version_is_told_by_either_option(rocmend: Run) -> None:
    assert rocmend("-V").out == rocmend("--version").out == f"rocmend {__version__}\n"


def test_every_choice_suggests() -> None:
    for path, module in command_modules().items():
        for parameter in importlib.import_module(module).command.params:
            if isinstance(parameter.type, click.Choice):
                assert isinstance(parameter.type, OneOf), f"{path} {parameter.opts}"


def _options(kind: type | object) -> list[Any]:
    """Return (path, option) of every option of a type."""
    return [
        pytest.param(path, parameter.opts[0], id=f"{path} {parameter.opts[0]}")
        for path, module in command_modules().items()
        for parameter in importlib.import_module(module).command.params
        if parameter.type is kind or (isinstance(kind, type) and isinstance(parameter.type, kind))
    ]


@pytest.mark.parametrize(("path", "option"), [*_options(SIZE), *_options(MODEL_SIZE), *_options(Duration)])
def test_a_number_without_a_unit_is_answered_with_the_forms(path: str, option: str, rocmend: Run) -> None:
    done = rocmend(*path.split(" "), option, "18")
    assert done.code == 2
    assert done.err.startswith(f"rocmend: [{option}] '18' has no unit.\n  Write ")


def test_no_option_takes_seconds_or_bytes_without_a_unit() -> None:
    for path, module in command_modules().items():
        for parameter in importlib.import_module(module).command.params:
            assert not isinstance(parameter.type, click.types.FloatParamType), f"{path} {parameter.opts}"


def test_parameters_are_a_size_and_what_was_assumed_is_said(rocmend: Run, machines: object) -> None:
    done = rocmend("doctor", "--machine", f"{machines}/strix-halo", "--model-size", "45B", "--json")
    assert "45 billion parameters at 16 bits each, which is assumed: 83.8 GiB of weights" in done.err
    assert "at 16 bits each, which is assumed" in done.out
    plain = rocmend("doctor", "--machine", f"{machines}/strix-halo", "--model-size", "160GB", "--json")
    assert plain.err == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["store", "ls"], (0, "The store is empty.")),
        (["store", "ls", "--groups"], (0, "The store is empty.")),
        (["store", "ls", "--kind", "probe"], (0, "No record matches these options.")),
        (["store", "ls", "--kind", "foo"], (2, "no kind of evidence is called 'foo'")),
        (["store", "ls", "--kind", "prob"], (2, "Did you mean probe?")),
        (["store", "show", "x"], (2, "there is no store at")),
        (["store", "gc"], (0, "No record was removed.")),
        (["store", "rm", "x"], (2, "there is no store at")),
        (["probe", "diff", "last", "last"], (2, "there is no store at")),
        (["kb", "search", "zzzxx"], (0, "No entry is about this.")),
        (["machine", "show", "gpuu", "--machine", "strix-halo"], (2, "Did you mean gpu")),
        (["lab", "status", "none.toml"], (2, "cannot be read")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_nothing_there_is_never_silent(
    arguments: list[str], told: tuple[int, str], rocmend: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ROCMEND_HOME", str(tmp_path / "home"))
    done = rocmend(*arguments)
    assert done.code == told[0]
    assert told[1] in done.out + done.err


def test_a_probe_that_is_named_without_its_option_is_told_how(rocmend: Run) -> None:
    assert "`rocmend probe --select matmul`" in rocmend("probe", "matmul").err
    assert "Did you mean diff?" in rocmend("probe", "dif").err
