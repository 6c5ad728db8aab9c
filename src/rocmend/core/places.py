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

__all__ = ["CACHE_VARIABLE", "DATA_VARIABLE", "cache_home", "data_home", "expanded", "user_home"]

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


def user_home() -> Path | None:
    """Return the user's home folder: HOME, else what the list of users says; None where there is none."""
    home = _home_of("~")
    return Path(home) if home else None


def expanded(path: str | Path, subject: str, next_step: str = "Write the whole path.") -> Path:
    """Return a path with the home folder in place of ``~`` or ``~user`` at its beginning.

    Args:
        path: As it was given.
        subject: The option or variable that it was given with.
        next_step: What to do where there is no such home folder.

    Raises:
        UsageError: There is no such home folder.
    """
    first, *rest = Path(path).parts or ("",)
    if not first.startswith("~"):
        return Path(path)
    home = _home_of(first)
    if home:
        return Path(home, *rest)
    why = "HOME is not set, and the list of users has no home folder for you"
    if first != "~":
        why = f"no user is called {first[1:]!r}"
    elif "HOME" in os.environ:
        why = f"HOME={os.environ['HOME']!r} is not an absolute path"
    raise UsageError(subject, f"{str(path)!r} stands for no folder: {why}.", next_step=next_step)


def _home_of(tilde: str) -> str:
    """Return what ``~`` or ``~user`` stands for, or an empty text; never a folder relative to the working folder."""
    home = os.path.expanduser(tilde)  # noqa: PTH111  pathlib raises where there is none
    return home if os.path.isabs(home) else ""  # noqa: PTH117


def _home(own: str, standard: str, otherwise: str) -> Path:
    named = os.environ.get(own)
    if named:
        return expanded(named, own).absolute()
    base = os.environ.get(standard, "")
    return (Path(base) if base.startswith("/") else expanded(otherwise, own, f"Set {own} to a folder.")) / "rocmend"
