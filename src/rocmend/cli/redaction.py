"""The redactor of a command's output: it knows the names of this machine and of the captures that the command reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rocmend.core.redact import Redactor

_CAPTURES = "rocmend.captures"
"""Where a command's context keeps the captured machines that it reads."""

_HOSTS = "rocmend.hosts"
"""Where it keeps the names of other machines."""


def note_capture(directory: Path | None) -> None:
    """Remember that the running command reads a captured machine; None for this machine."""
    context = click.get_current_context(silent=True)
    if context is not None and directory is not None:
        context.meta.setdefault(_CAPTURES, []).append(directory)


def note_hosts(names: Iterable[str]) -> None:
    """Remember the names of other machines that the running command works with."""
    click.get_current_context().meta.setdefault(_HOSTS, set()).update(names)


def command_redactor() -> Redactor:
    """Return a redactor for the running command's output.

    Names of this machine and its people are replaced, and those of captured machines that the command has read and that
    are not redacted. The program's own words stay.
    """
    from rocmend.cli.vocabulary import vocabulary
    from rocmend.core.redact import redactor_here

    context = click.get_current_context(silent=True)
    hosts: set[str] = set(context.meta.get(_HOSTS, ())) if context is not None else set()
    users: set[str] = set()
    for directory in context.meta.get(_CAPTURES, ()) if context is not None else ():
        from rocmend.machine.people import names_in

        its_hosts, its_users = names_in(directory)
        hosts |= its_hosts
        users |= its_users
    return redactor_here(kept=vocabulary(), hosts=hosts, users=users)
