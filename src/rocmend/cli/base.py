"""What every command is made of: a name, a help text and examples that are printed with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from rocmend.core.suggest import did_you_mean, nearest

__all__ = ["WORDS", "OneOf", "RewritingOption", "RocmendCommand", "parsed", "rocmend_command", "summary"]

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:  # older versions of click have no such parameter
    _Choice = click.Choice


WORDS = "rocmend.words"
"""Where a command's context keeps what followed its name on the command line."""


def summary(text: str) -> str:
    """Return the first sentence of a help text without its full stop: what a list of commands says of one."""
    return re.split(r"[.](?:\s|$)", " ".join(text.split()), maxsplit=1)[0]


def parsed(parse: Callable[[], list[str]], command: click.Command, context: click.Context) -> list[str]:
    """Parse a command line; one with an unknown option is answered with the nearest ones."""
    try:
        return parse()
    except click.NoSuchOption as error:
        known = [name for parameter in command.get_params(context) for name in parameter.opts]
        near = nearest(error.option_name, [name for name in known if name.startswith("--")])
        near = [
            f"{name} {error.option_name.lstrip('-')}" for name in _taking(error.option_name, command, context)
        ] or near
        raise click.NoSuchOption(error.option_name, possibilities=near, ctx=error.ctx or context) from None
    except click.UsageError as error:
        error.ctx = error.ctx or context  # what its parser finds has none
        raise


def _taking(option_name: str, command: click.Command, context: click.Context) -> list[str]:
    """Return the options that take what was given as an option: ``--select`` of ``--smoke``."""
    value = option_name.lstrip("-")
    found = []
    for parameter in command.get_params(context):
        known = getattr(parameter.type, "choices", None) or getattr(parameter.type, "known", tuple)()
        if parameter.opts[0].startswith("--") and value in known:
            found.append(parameter.opts[0])
    return found


class OneOf(_Choice):
    """A choice that answers a wrong word with the nearest ones.

    Args:
        choices: The words.
        meanings: Other words that people use, and the choice that serves each.
    """

    def __init__(self, choices: Iterable[str], meanings: Mapping[str, str] | None = None) -> None:
        super().__init__(list(choices))
        self.meanings = meanings or {}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the choice.

        Raises:
            BadParameter: It is none.
        """
        try:
            chosen: str = super().convert(value, param, ctx)
        except click.BadParameter as error:
            known = ", ".join(map(str, self.choices))
            other = self.meanings.get(str(value).lower())
            meant = did_you_mean(str(value), map(str, self.choices))
            meant = f"For {value!s}, use {other}." if other else meant
            text = f"{str(value)[:80]!r} is not one of: {known}. {meant}".strip()
            raise click.BadParameter(text, error.ctx, error.param) from None
        return chosen


class RewritingOption(click.Option):
    """An option that puts others in its place before the command line is parsed."""

    def rewrite(self, context: click.Context, words: list[str]) -> list[str]:
        """Return the command line that counts."""
        raise NotImplementedError


class RocmendCommand(click.Command):
    """A command whose help ends with examples.

    Args:
        examples: (command line, what it does), at least two.
    """

    def __init__(self, *args: Any, examples: tuple[tuple[str, str], ...] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse a command line; an empty text for a path is a mistake, such as an unset variable of the shell."""
        ctx.meta[WORDS] = list(args)

        def parse() -> list[str]:
            self._refuse_empty_paths(ctx, args)
            words = args if ctx.resilient_parsing or "--help" in args else self._rewritten(ctx, args)
            ctx.meta[WORDS] = list(words)
            return super(RocmendCommand, self).parse_args(ctx, words)

        return parsed(parse, self, ctx)

    def _rewritten(self, ctx: click.Context, args: list[str]) -> list[str]:
        for parameter in self.params:
            if isinstance(parameter, RewritingOption):
                args = parameter.rewrite(ctx, args)
        return args

    def _refuse_empty_paths(self, ctx: click.Context, args: list[str]) -> None:
        if ctx.resilient_parsing or not any(not word or word.endswith("=") for word in args):
            return
        given, _, _ = self.make_parser(ctx).parse_args(list(args))
        for parameter in self.get_params(ctx):
            value = given.get(parameter.name or "")
            values = value if isinstance(value, (list, tuple)) else (value,)
            if "" in values and (isinstance(parameter.type, click.Path) or getattr(parameter.type, "is_path", False)):
                raise click.BadParameter("The path is empty.", ctx, parameter)

    def get_short_help_str(self, limit: int = 0) -> str:
        """Return the first sentence of the help text, never cut."""
        del limit
        return summary(self.help or "")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the examples, then the epilog."""
        if self.examples:
            with formatter.section("Examples"):
                for line, meaning in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")
                    with formatter.indentation():
                        formatter.write_text(meaning)
        super().format_epilog(ctx, formatter)


def rocmend_command(
    name: str, *, examples: tuple[tuple[str, str], ...], **settings: Any
) -> Callable[[Callable[..., Any]], RocmendCommand]:
    """Make a function a command; its docstring is the help text.

    Args:
        name: The command's own name, without its group.
        examples: (command line, what it does), at least two.
        settings: Handed to click.
    """
    return click.command(name, cls=RocmendCommand, examples=examples, **settings)
