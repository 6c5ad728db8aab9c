"""Installed Python distributions: names of metadata folders, METADATA headers, direct_url.json.

Source: https://packaging.python.org/en/latest/specifications/recording-installed-packages/
"""

from __future__ import annotations

import re

import msgspec

from rocmend.core.documents import MALFORMED

_FOLDER = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]{0,200}?)-(v?\d[^-/]{0,100})(?:-py\d[^/]{0,60})?\.(?:dist|egg)-info$")
_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]{0,200})")
MAX_HEADER_CHARS = 1 << 17


def normalise(name: str) -> str:
    """Return the canonical form of a distribution's name: ``Flash_Attn`` is ``flash-attn``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_folder(name: str) -> tuple[str, str] | None:
    """Return (canonical name, version) of a ``.dist-info`` or ``.egg-info`` folder's name, or None for other names.

    ``rocm_sdk_core-7.11.0.dist-info`` gives ``("rocm-sdk-core", "7.11.0")``.
    """
    match = _FOLDER.match(name)
    return (normalise(match[1]), match[2]) if match else None


class Metadata(msgspec.Struct, frozen=True):
    """Headers of a METADATA file that say what a distribution is.

    Attributes:
        name: Canonical name.
        version: As written.
        requires: Canonical names of what it depends on, extras included.
    """

    name: str = ""
    version: str = ""
    requires: tuple[str, ...] = ()


def parse_metadata(text: str) -> Metadata:
    """Read the headers of METADATA; the description after the first empty line is not looked at."""
    head = text[:MAX_HEADER_CHARS].replace("\r\n", "\n").split("\n\n", 1)[0]
    name = version = ""
    requires: dict[str, None] = {}
    for line in head.split("\n"):
        key, colon, value = line.partition(":")
        if not colon:
            continue
        key = key.strip().lower()
        if key == "name" and not name:
            name = normalise(value.strip())
        elif key == "version" and not version:
            version = value.strip()
        elif key == "requires-dist" and (match := _REQUIREMENT.match(value)):
            requires[normalise(match[1])] = None
    return Metadata(name, version, tuple(requires))


def parse_direct_url(text: str) -> str | None:
    """Return the URL of direct_url.json without user name, password, query and fragment, or None.

    Source: https://packaging.python.org/en/latest/specifications/direct-url/
    """
    try:
        document = msgspec.json.decode(text[:MAX_HEADER_CHARS])
    except MALFORMED:
        return None
    url = document.get("url") if isinstance(document, dict) else None
    if not isinstance(url, str) or not url:
        return None
    url = re.split(r"[?#]", url[:2000], maxsplit=1)[0]
    return re.sub(r"^([a-z][a-z0-9+.-]*://)[^/@]*@", r"\1", url)
