"""What a project says about its own port: ``[tool.rocmend.port]`` in its ``pyproject.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from rocmend.core.beneath import Beneath
from rocmend.core.documents import LIMITS, parse_toml
from rocmend.core.errors import DataError, UsageError

__all__ = ["Settings", "project_document", "settings", "table_in"]

_Bytes = Annotated[int, msgspec.Meta(ge=1, le=1 << 30)]
_Memory = Annotated[int, msgspec.Meta(ge=64 << 20, le=16 << 30)]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A project's settings.

    Attributes:
        exclude: Paths that are not looked at: endings or patterns, relative to the project.
        select: Ids of rules, or their beginnings (``CU``), that are used; all where there is none.
        ignore: Ids of rules, or their beginnings, that are not.
        max_file_bytes: A larger file is skipped: sources of that size are generated.
        time_limit_s: A file that takes longer is skipped.
        project_time_limit_s: Files that are not read after so much time are left out.
        memory_limit_bytes: What a process that reads files may take beyond what it starts with.
        golden: Functions, ``package.module:name``, whose results are compared between sides and machines.
    """

    exclude: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    max_file_bytes: _Bytes = 8 << 20
    time_limit_s: _Seconds = 60.0
    project_time_limit_s: _Seconds = 1800.0
    memory_limit_bytes: _Memory = 2 << 30
    golden: tuple[str, ...] = ()


def project_document(project: Path | Beneath, folder: str = "") -> dict[str, Any]:
    """Return a project's ``pyproject.toml``; empty where it has none.

    Args:
        project: Its folder.
        folder: A folder in it that has one of its own.

    Raises:
        DataError: It is no regular file, lies below a link, is no TOML, or over the limits of one.
    """
    path = f"{folder}/pyproject.toml".lstrip("/")
    try:
        tree = project if isinstance(project, Beneath) else Beneath(project)
        data = tree.document(path, LIMITS.size_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return parse_toml(data, str(tree.root / path))


def table_in(document: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a table of a document; empty where there is none, or something else stands in its place."""
    table: Any = document
    for name in names:
        table = table.get(name) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}


def settings(root: Path) -> Settings:
    """Return the settings of a project; the defaults where it has none.

    Raises:
        UsageError: The file is no TOML, or a setting is unknown, of the wrong type or out of its range.
    """
    path = root / "pyproject.toml"
    try:
        table = table_in(project_document(root), "tool", "rocmend", "port")
    except DataError as error:
        next_step = error.next_step or "Correct it, or move it away for the port."
        raise UsageError(str(path), error.message, why=error.why, next_step=next_step) from error
    try:
        return msgspec.convert(table, Settings)
    except (msgspec.ValidationError, RecursionError) as error:
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(Settings))
        raise UsageError(
            str(path), f"[tool.rocmend.port] is wrong: {error}.", next_step=f"Settings: {known}."
        ) from error
