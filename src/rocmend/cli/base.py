"""What every command is made of: a name, a help text and examples that are printed with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


class RocmendCommand(click.Command):
    """A command whose help ends with examples.

    Args:
        examples: (command line, what it does), at least two.
    """

    def __init__(self, *args: Any, examples: tuple[tuple[str, str], ...] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = examples

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
