"""The entries that come with rocmend, kept in parsed form: parsing TOML takes most of the time of a short command."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rocmend.core import kept, records, signatures
from rocmend.kb import action as action_module
from rocmend.kb import entry as entry_module
from rocmend.kb import indexes as indexes_module
from rocmend.kb.action import Action
from rocmend.kb.entry import Entry
from rocmend.kb.indexes import Index


class Compiled(msgspec.Struct, frozen=True, array_like=True):
    """Parsed entries by path, actions and indexes, and the files that they were made from."""

    stamps: tuple[kept.Stamp, ...]
    entries: dict[str, Entry]
    actions: dict[str, Action] = {}
    indexes: dict[str, Index] = {}


def stamps_of(paths: Sequence[str]) -> tuple[kept.Stamp, ...]:
    """Return the state of the files that parsed entries depend on: theirs and those that say what an entry is.

    Raises:
        OSError: One of them cannot be looked at.
    """
    return kept.stamps_of((*_CODE, *paths))


_CODE = (*(str(one.__file__) for one in (entry_module, action_module, indexes_module, records, signatures)), __file__)


def read_compiled(stamps: tuple[kept.Stamp, ...]) -> Compiled | None:
    """Return what was kept, or None where nothing was or a file has changed since."""
    made = kept.read_kept(kept.place_of(__file__), stamps, Compiled)
    return made if made is not None and made.stamps == stamps else None


def write_compiled(made: Compiled) -> None:
    """Keep parsed entries for the next time, where that is allowed and possible; stamps are taken before reading."""
    kept.write_kept(kept.place_of(__file__), made.stamps, made)
