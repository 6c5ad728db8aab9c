"""Finding an installed distribution's files without importing it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import msgspec

from rocmend.core.places import user_home

_OVERLAYS = (".kpack", "lib/aotriton.images", "aotriton.images")
"""Folders inside a package that device-code distributions of their own install into."""


class InstalledPackage(msgspec.Struct, frozen=True):
    """An installed distribution.

    Attributes:
        name: As its metadata writes it.
        version: Its version.
        root: The site-packages folder.
        files: Its files, relative to ``root``, device code that other distributions laid over it included.
    """

    name: str
    version: str
    root: Path
    files: tuple[str, ...]


def default_search_path() -> tuple[str, ...]:
    """Return where packages are looked for: the active environment first, then our own, the user's and the system's."""
    found: list[str] = []
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        if prefix:
            found += [str(path) for path in sorted(Path(prefix).glob("lib/python3*/site-packages"), reverse=True)]
    found += [path for path in sys.path if path]
    home = user_home()
    if home is not None:
        found += [str(path) for path in sorted(home.glob(".local/lib/python3*/site-packages"), reverse=True)]
    found += ["/usr/lib/python3/dist-packages"]
    return tuple(dict.fromkeys(found))


def find_package(name: str, search_path: Sequence[str] | None = None) -> InstalledPackage | None:
    """Return an installed distribution, or None.

    Args:
        name: Distribution name, or name of a package folder.
        search_path: site-packages folders; by default those of the active environment and the system.
    """
    path = list(search_path if search_path is not None else default_search_path())
    for found in metadata.distributions(name=name, path=path):
        files = found.files
        if files:
            root = Path(str(found.locate_file("")))
            kept = [str(file) for file in files if ".." not in file.parts and not Path(str(file)).is_absolute()]
            extra = _overlaid(root, {file.partition("/")[0] for file in kept if "/" in file})
            shown = found.metadata["Name"] or name
            return InstalledPackage(shown, found.version, root, tuple(dict.fromkeys([*kept, *extra])))
    return None


def find_folder(name: str, search_path: Sequence[str] | None = None) -> Path | None:
    """Return the folder of an importable package that belongs to no distribution, or None."""
    if not name.isidentifier():
        return None
    for folder in search_path if search_path is not None else default_search_path():
        candidate = Path(folder) / name
        if (candidate / "__init__.py").is_file():
            return candidate
    return None


def _overlaid(root: Path, tops: set[str]) -> list[str]:
    found = []
    for top in sorted(tops):
        for overlay in _OVERLAYS:
            folder = root / top / overlay
            if folder.is_dir() and not folder.is_symlink():
                found += [str(path.relative_to(root)) for path in sorted(folder.rglob("*")) if path.is_file()]
    return found
