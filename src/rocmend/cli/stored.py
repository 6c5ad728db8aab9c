"""Which store of evidence a command uses."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rocmend.core.errors import UsageError
from rocmend.core.visible import one_line

if TYPE_CHECKING:
    from rocmend.store.store import Store

F = TypeVar("F", bound=Callable[..., Any])


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
    from rocmend.store.artifacts import count_artifacts
    from rocmend.store.place import Place
    from rocmend.store.store import Store

    place = Place(path)
    if path is None and not place.database.exists() and not count_artifacts(place.artifacts):
        return None
    return click.get_current_context().with_resource(Store.open(path, create=False))


def agreed(command: str, what: str, store: Store, *, yes: bool) -> bool:
    """Ask before something is removed from a store; where there is no terminal, ``--yes`` has to be said.

    Args:
        command: Which one asks.
        what: What would be removed.
        store: From where.
        yes: It was said already.

    Raises:
        UsageError: There is no terminal to ask on.
    """
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            command,
            f"this would remove {what}, and there is no terminal to confirm on.",
            next_step="Check with --dry-run, then add --yes.",
        )
    return click.confirm(f"Remove {what} from {one_line(str(store.path))}?", err=True)
