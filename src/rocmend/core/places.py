"""Where rocmend keeps things: the one module that decides it.

Two homes, which never share a folder by default:

* **data**, which cannot be made again: evidence, experiments, measured tuning records;
* **cache**, which can: what was compiled, analysed or downloaded. Code is kept here only, and only where nobody else
  can write: see ``rocmend.core.private``.

Source: https://specifications.freedesktop.org/basedir-spec/latest/ (relative paths in its variables are ignored)
"""

from __future__ import annotations

import os
from pathlib import Path

from rocmend.core.errors import UsageError

__all__ = ["CACHE_VARIABLE", "DATA_VARIABLE", "cache_home", "data_home"]

DATA_VARIABLE = "ROCMEND_HOME"
CACHE_VARIABLE = "ROCMEND_CACHE_HOME"


def data_home() -> Path:
    """Return the folder of what must be kept: ``ROCMEND_HOME``, else ``rocmend`` in the user's data folder."""
    return _home(DATA_VARIABLE, "XDG_DATA_HOME", "~/.local/share")


def cache_home() -> Path:
    """Return the folder of what can be made again: ``ROCMEND_CACHE_HOME``, else ``rocmend`` in the user's cache folder.

    Whoever loads code from it, or acts on what it holds, asks ``rocmend.core.private.cache_folder`` instead.
    """
    return _home(CACHE_VARIABLE, "XDG_CACHE_HOME", "~/.cache")


def _home(own: str, standard: str, otherwise: str) -> Path:
    try:
        named = os.environ.get(own)
        if named:
            return Path(named).expanduser().absolute()
        base = os.environ.get(standard, "")
        return (Path(base) if base.startswith("/") else Path(otherwise).expanduser()) / "rocmend"
    except RuntimeError as error:  # no HOME, and no entry in the list of users
        raise UsageError(own, f"there is no home folder: {error}.", next_step=f"Set {own} to a folder.") from error
