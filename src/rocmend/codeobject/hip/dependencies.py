"""The files that a translation unit read, and whether they are still what they were."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

__all__ = ["changed", "hashed", "read"]

_NAME = re.compile(r"(?:\\.|[^\\\s])+")
_ESCAPED = re.compile(r"\\(.)")
_OF_THE_SYSTEM = ("/usr/include/", "/usr/lib/", "/usr/lib64/", "/usr/local/include/")


def read(listed: Path) -> tuple[Path, ...]:
    """Return the files that a rule for make lists (``clang -MD``); none where there is no such file."""
    try:
        text = listed.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ()
    names = _NAME.findall(text.replace("\\\n", " ").partition(":")[2])
    return tuple(Path(_ESCAPED.sub(r"\1", name).replace("$$", "$")) for name in names)


def hashed(files: Iterable[Path], own: Path) -> dict[str, str]:
    """Return the SHA-256 of each header that can change while the toolchain stays the same.

    Args:
        files: What was read.
        own: The source itself, which the key of a cache holds already.
    """
    packages = _packages()
    wanted = {
        str(file)
        for file in files
        if file != own and not str(file).startswith(_OF_THE_SYSTEM) and not str(file).startswith(packages)
    }
    return {name: _sha256(name) for name in sorted(wanted)}


def changed(files: dict[str, str]) -> bool:
    """Tell whether one of the files is not what it was."""
    return any(_sha256(name) != known for name, known in files.items())


def _sha256(name: str) -> str:
    try:
        return hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except OSError:
        return ""


def _packages() -> tuple[str, ...]:
    """Return where packages that the toolchain's fingerprint speaks for are installed."""
    from importlib.util import find_spec

    found = (find_spec(name) for name in ("triton", "ziglang", "clang"))
    return tuple(f"{place}/" for one in found if one for place in one.submodule_search_locations or ())
