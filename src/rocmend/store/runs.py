"""A run of the store by its id, or by a beginning of it that no other has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocmend.core.errors import UsageError
from rocmend.core.suggest import unknown

if TYPE_CHECKING:
    from rocmend.store.store import Store

__all__ = ["LISTED", "find_run"]

LISTED = "rocmend store ls --groups"
"""What lists the runs."""


def find_run(store: Store, name: str, *, kinds: Sequence[str], subject: str, what: str) -> str:
    """Return the id of the run that begins with a name.

    Args:
        store: Where it is.
        name: Its id, or a beginning that no other id has.
        kinds: How the ids begin among which it is looked for: ``bench-``, ``shared-``; none for all.
        subject: What the error is about: ``--resume``.
        what: What such a run is called: ``run of a benchmark``.

    Raises:
        UsageError: No run has such an id, or several begin so.
    """
    known = store.group_names(*kinds)
    if name in known:
        return name
    found = [group for group in known if name and group.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(found[:3] + ["…"] * (len(found) > 3))
        raise UsageError(subject, f"several runs begin with {name!r}: {some}.", next_step="Give more of the id.")
    if not known:
        raise UsageError(subject, f"the store has no {what}.", next_step=f"`{LISTED}` lists what it has.")
    raise unknown(subject, what, name, known, listed=LISTED)
