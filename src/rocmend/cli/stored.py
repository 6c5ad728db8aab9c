"""Which store of evidence a command uses, and how its times are written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rocmend.core.errors import UsageError

if TYPE_CHECKING:
    from rocmend.store.store import Store

F = TypeVar("F", bound=Callable[..., Any])

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def store_option(function: F) -> F:
    """Add ``--store PATH``; passes ``store_path``."""
    return click.option(
        "--store",
        "store_path",
        type=click.Path(path_type=Path),
        default=None,
        metavar="PATH",
        help="The store of evidence: its file, or the folder of evidence.sqlite. Otherwise the one in ROCMEND_HOME, "
        "else in ~/.local/share/rocmend.",
    )(function)


def existing_store(path: Path | None) -> Store | None:
    """Open a store until the command ends, for looking into it; None where nothing was ever kept in the default one.

    Raises:
        UsageError: There is no store at the path given.
        DataError: It is damaged.
        StoreError: It can't be opened.
    """
    from rocmend.store.place import default_path
    from rocmend.store.store import Store

    if path is None and not default_path().exists():
        return None
    return click.get_current_context().with_resource(Store.open(path, create=False))


def parse_time(text: str, option: str) -> dt.datetime:
    """Return the time (UTC) that an option names: an age such as ``90d``, or an ISO date or time.

    Raises:
        UsageError: Neither.
    """
    number, unit = text[:-1], text[-1:]
    try:
        if number.isdecimal() and unit in _UNITS:
            return dt.datetime.now(dt.UTC) - dt.timedelta(**{_UNITS[unit]: int(number)})
        time = dt.datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            option,
            f"{text!r} is neither an age nor a date.",
            next_step="Write 30m, 12h, 90d or 2w, or a date such as 2026-01-31 (UTC).",
        ) from None
