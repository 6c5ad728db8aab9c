"""pyvenv.cfg, the file that makes a folder a virtual environment.

Source: https://docs.python.org/3/library/venv.html
"""

from __future__ import annotations

import msgspec


class PyVenv(msgspec.Struct, frozen=True):
    """What a virtual environment says of itself.

    Attributes:
        home: Folder of the interpreter that it was made from.
        version: Python's version; empty where it does not say.
        system_site: Packages of the base interpreter are visible in it.
    """

    home: str = ""
    version: str = ""
    system_site: bool = False


def parse_pyvenv(text: str) -> PyVenv:
    """Read ``key = value`` lines; unknown keys and malformed lines are passed over."""
    values: dict[str, str] = {}
    for line in text[: 1 << 16].splitlines():
        key, equals, value = line.partition("=")
        if equals:
            values.setdefault(key.strip().lower(), value.strip())
    version = values.get("version_info") or values.get("version") or ""
    return PyVenv(
        home=values.get("home", ""),
        version=".".join(version.split(".")[:3]),
        system_site=values.get("include-system-site-packages", "").lower() == "true",
    )
