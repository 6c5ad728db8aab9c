"""Manual pages, made from the commands when a wheel is built."""

from __future__ import annotations

import importlib

import click

from rocmend import __version__
from rocmend.cli.base import RocmendCommand, summary
from rocmend.cli.main import cli, command_modules

_EXIT_CODES = "0 where all is clean, 1 for findings or failed trials, 2 for a wrong command line or an internal error."


def manual_pages() -> dict[str, str]:
    """Return every page's text in roff by its file name: ``rocmend.1``, and one for each command."""
    commands = {path: importlib.import_module(module).command for path, module in command_modules().items()}
    made = {f"{_name(path)}.1": _page(path, command, _examples(command)) for path, command in commands.items()}
    listed = "".join(_item(f"rocmend {path}", summary(command.help or "")) for path, command in commands.items())
    return {"rocmend.1": _page("", cli, f".SH COMMANDS\n{listed}"), **made}


def _name(path: str) -> str:
    return "-".join(("rocmend", *path.split()))


def _page(path: str, command: click.Command, further: str) -> str:
    words = f"rocmend {path}".strip()
    context = click.Context(command, info_name=words)
    first, _, rest = (command.help or "").partition("\n\n")
    options = "".join(
        _item(*record) for one in command.get_params(context) if (record := one.get_help_record(context)) is not None
    )
    usage = " ".join(command.collect_usage_pieces(context))
    return (
        f'.TH {_name(path).upper()} 1 "" "rocmend {__version__}" "rocmend manual"\n'
        f".SH NAME\n{_name(path)} \\- {_text(summary(first))}\n"
        f".SH SYNOPSIS\n.B {_text(words)}\n{_text(usage)}\n"
        f".SH DESCRIPTION\n{_text(rest or first)}\n"
        f"{further}.SH OPTIONS\n{options}.SH EXIT STATUS\n{_text(_EXIT_CODES)}\n"
    )


def _examples(command: RocmendCommand) -> str:
    return f".SH EXAMPLES\n{''.join(_item(*example) for example in command.examples)}"


def _item(term: str, meaning: str) -> str:
    return f".TP\n.B {_text(term)}\n{_text(meaning)}\n"


def _text(text: str) -> str:
    """Return a text as roff prints it, paragraph by paragraph."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    lines = (line.strip() for line in plain.splitlines())
    return "\n".join(".PP" if not line else f"\\&{line}" if line[0] in ".'" else line for line in lines)
