"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from rocmend.core.scratch import PartialFile

HOME_VARIABLE = "ROCMEND_HOME"


def cache_home() -> Path:
    """Return the folder for what can be made again: ``ROCMEND_HOME``, else ``rocmend`` in the user's cache folder."""
    own = os.environ.get(HOME_VARIABLE)
    if own:
        return Path(own).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "rocmend"


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write ``data`` beside ``path``, flush it to disk and move it into place.

    Args:
        path: The file to create or replace; its folder is created. What a symbolic link names is replaced, not the
            link. A device or pipe (``/dev/stdout``, ``/dev/null``) stays what it is and is written to.
        data: Bytes, or text written as UTF-8, with ``?`` for the bytes of a name that is not.
    """
    payload = data.encode(errors="replace") if isinstance(data, str) else data
    if _is_stream(path):
        with path.open("wb") as stream:
            stream.write(payload)
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with PartialFile(path) as partial:
        with os.fdopen(partial.descriptor, "wb", closefd=False) as file:
            file.write(payload)
        os.fsync(partial.descriptor)
        mask = os.umask(0)
        os.umask(mask)
        partial.path.chmod(0o666 & ~mask)  # a report is for sharing
        partial.path.replace(path)


def _is_stream(path: Path) -> bool:
    """Tell whether this is there and is neither a file nor a folder: moving a file over it would destroy it."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
