"""A run that was cut short: how to go on with it is said, and it goes on with what it was asked for."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import click

from rocmend.cli.base import WORDS, RewritingOption
from rocmend.cli.output import tell
from rocmend.core.errors import UsageError

if TYPE_CHECKING:
    from rocmend.store.store import Store

__all__ = ["Resumable", "ResumeOption", "command_line", "option_words"]

_HERE = {"store_path", "no_store", "resume", "list_only", "output_format", "_output", "output", "no_redact", "verbose"}
"""Options that say where results go; they are no part of what a run was asked for."""
_LIMITS = {"jobs", "time_limit", "silence", "limit"}
"""Options that can be others when a run goes on: they change no result that is there."""


class Resumable:
    """Says, where a run is interrupted, how to go on with it.

    Args:
        kept: The results are kept.
        group: The run that is gone on with, if one is.
    """

    def __init__(self, *, kept: bool, group: str = "") -> None:
        self.kept = kept
        self._group = group
        self._done = self._total = 0
        self._found = False

    def note(self, group: str, done: int, total: int) -> None:
        """Take note of a result of a run: how many are done now, of how many."""
        self._group, self._done, self._total = group, done, total

    def note_found(self, group: str) -> None:
        """Take note that something was kept before the first result."""
        self._group, self._found = group, True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self.say_how()

    def say_how(self) -> None:
        """Say how to go on."""
        if not self.kept:
            tell("Nothing is kept, because of --no-store.")
        elif self._found and not self._done:
            tell(f"What was tried before the first figure is kept. To go on: {_again(self._group)}")
        elif self._total:
            tell(f"{self._done} of {self._total} are done and kept. To go on: {_again(self._group)}")
        elif self._group:
            tell(f"Nothing was added to the run. To go on: {_again(self._group)}")
        else:
            tell(f"Nothing was done yet. To start again: {command_line()}")


def command_line() -> str:
    """Return the command line as it was typed, quoted for a shell; with ``--resume`` that of the run is in it."""
    context = click.get_current_context(silent=True)
    if context is None:
        return ""
    return shlex.join([*_path(context), *context.meta.get(WORDS, ())])


def option_words(option: click.Parameter, given: dict[str, Any]) -> list[str]:
    """Return an option as it was given, in its long form."""
    name = max(option.opts, key=len)
    value = given[str(option.name)]
    if isinstance(option, click.Option) and option.is_flag:
        return [name]
    values = value if option.multiple else [value]
    return [word for one in values for word in (name, str(one))]


def _path(context: click.Context) -> list[str]:
    return ["rocmend", *context.command_path.split()[1:]]


def _again(group: str) -> str:
    """Return the command line that goes on with a run, whose other options are kept with it."""
    context = click.get_current_context()
    if not context.params.get("hosts"):
        path = _path(context)
        named = path[:-1] if path[-1] == "run" else path  # what a group does without a subcommand
        given = [option for option in context.command.params if option.name == "store_path"]
        stores = [
            word for option in given if context.params["store_path"] for word in option_words(option, context.params)
        ]
        return shlex.join([*named, "--resume", group, *stores])
    words, given = [], iter(context.meta.get(WORDS, ()))
    for word in given:
        if word == "--resume":
            next(given, None)
        elif not word.startswith("--resume="):
            words.append(word)
    return shlex.join([*_path(context), *words, "--resume", group])


class ResumeOption(RewritingOption):
    """``--resume RUN``: the options that the run was begun with count, and others that contradict them are refused.

    Args:
        find: Returns a run's id and the command line that it was begun with, empty where it does not say; it raises
            where there is no such run. Told the store, the command's name and what was given.
    """

    def __init__(self, *args: Any, find: Callable[[Store, str, str], tuple[str, str]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.find = find

    def rewrite(self, context: click.Context, words: list[str]) -> list[str]:
        """Return the command line with the options of the run that is gone on with."""
        now, _, _ = context.command.make_parser(context).parse_args(list(words))
        name = now.get("resume")
        if name is None or now.get("hosts") or now.get("no_store"):
            return words
        group, line = self._found(context, str(name), now.get("store_path"))
        begun = shlex.split(line)
        path = _path(context)
        asked = {option for option in now if option not in _HERE | _LIMITS}
        if not begun:
            if not asked:
                raise UsageError(
                    "--resume",
                    f"{group} does not say what it was asked for; an older rocmend began it.",
                    next_step="Give the options that it was begun with, too.",
                )
            tell(f"{group} does not say what it was asked for: what it lacks of the options given now is done.")
            return _with(context, now, {"resume": group})
        if begun[: len(path)] != path:
            raise UsageError(
                "--resume",
                f"{group} is a part of `{shlex.join(begun)[:80]}`.",
                next_step=f"Run that again, or name another run; `rocmend store ls --groups` lists them. "
                f"Without --resume, `{' '.join(path)}` begins a new one.",
            )
        before, _, _ = context.command.make_parser(context).parse_args(begun[len(path) :])
        _check(context, group, before, {option: now[option] for option in asked})
        kept = {option: value for option, value in before.items() if option not in _HERE}
        return _with(context, kept | now, {"resume": group})

    def _found(self, context: click.Context, name: str, path: str | None) -> tuple[str, str]:
        from pathlib import Path

        from rocmend.store.store import Store

        with Store.open(None if path is None else Path(path), create=False) as store:
            return self.find(store, context.info_name or "", name)


def _with(context: click.Context, given: dict[str, Any], changed: dict[str, Any]) -> list[str]:
    """Return options as words, in the order of the help; those that were not given are left out."""
    values = {name: value for name, value in (given | changed).items() if value is not None}
    found: list[str] = []
    for option in context.command.params:
        if option.name in values and isinstance(option, click.Option):
            value = values.pop(str(option.name))
            if option.name == "output_format":  # two options share the name: --format X and --json
                found += ["--format", str(value)]
            elif value not in ((), []):
                found += option_words(option, {str(option.name): value})
    return found


def _check(context: click.Context, group: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse options that are others than those of the run."""
    for option in context.command.params:
        name = str(option.name)
        if name not in now:
            continue
        was = before.get(name, () if option.multiple else option.get_default(context, call=True))
        if _value(option, context, was) != _value(option, context, now[name]):
            said = f"with `{shlex.join(option_words(option, before))}`" if name in before else "without it"
            raise UsageError(
                max(option.opts, key=len),
                f"{group} was begun {said}.",
                why="A run keeps what it was asked for.",
                next_step="Leave the option out to go on with that run, or leave out --resume to begin another one.",
            )


def _value(option: click.Parameter, context: click.Context, value: Any) -> Any:
    return option.type_cast_value(context, value)
