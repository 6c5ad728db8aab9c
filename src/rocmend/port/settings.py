"""What a project says about its own port: ``[tool.rocmend.port]`` in its ``pyproject.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from rocmend.core.errors import UsageError

__all__ = ["Settings", "settings"]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A project's settings.

    Attributes:
        exclude: Paths that are not looked at: endings or patterns, relative to the project.
        select: Ids of rules, or their beginnings (``CU``), that are used; all where there is none.
        ignore: Ids of rules, or their beginnings, that are not.
        max_file_bytes: A larger file is skipped: sources of that size are generated.
        time_limit_s: A file that takes longer is skipped.
        memory_limit_bytes: What a process that reads files may take beyond what it starts with.
        golden: Functions, ``package.module:name``, whose results are compared between sides and machines.
    """

    exclude: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    max_file_bytes: int = 8 << 20
    time_limit_s: float = 60.0
    memory_limit_bytes: int = 2 << 30
    golden: tuple[str, ...] = ()


def settings(root: Path) -> Settings:
    """Return the settings of a project; the defaults where it has none.

    Raises:
        UsageError: The file is no TOML, or a setting is unknown or of the wrong type.
    """
    path = root / "pyproject.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return Settings()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(
            str(path), f"cannot be read: {error}.", next_step="Correct it, or move it away for the port."
        ) from error
    table = document.get("tool", {}).get("rocmend", {}).get("port", {})
    try:
        return msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(Settings))
        raise UsageError(
            str(path), f"[tool.rocmend.port] is wrong: {error}.", next_step=f"Settings: {known}."
        ) from error
