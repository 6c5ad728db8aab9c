"""The names that a captured machine which nobody redacted holds: its own, and those of its people."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from rocmend.core.errors import RocmendError
from rocmend.core.redact import KNOWN_GROUPS
from rocmend.core.redact.here import FIRST_PERSON_ID, NAMING_VARIABLES, listed
from rocmend.machine.captured import CapturedRoot
from rocmend.machine.root import ReadError

_HOSTNAME_FILES = ("/etc/hostname", "/proc/sys/kernel/hostname")
_FOLDERS_OF_HOMES = frozenset(
    "data export home homes lib mnt net nfs nonexistent opt root run srv tmp users usr var Users".split()  # noqa: SIM905
)
"""Folders in which homes stand, and those of accounts that have none."""


def names_in(capture: Path) -> tuple[set[str], set[str]]:
    """Return the machine's names, and those of its people, accounts and groups; none where the capture is redacted.

    Args:
        capture: The folder of a captured machine; nothing is found in one that cannot be read.
    """
    try:
        root = CapturedRoot(capture)
    except RocmendError:
        return set(), set()
    if root.manifest.redacted:
        return set(), set()
    environ: dict[str, str] = {}
    with suppress(RocmendError):
        environ = root.environ()
    hosts = {root.manifest.name, environ.get("HOSTNAME", "")}
    hosts |= {(_text(root, path).strip().splitlines() or [""])[0] for path in _HOSTNAME_FILES}
    users = {environ.get(variable, "") for variable in NAMING_VARIABLES}
    users |= {part for part in environ.get("HOME", "").split("/") if part not in _FOLDERS_OF_HOMES}
    for account, full in listed(_text(root, "/etc/passwd")).items():
        users |= {account, full if " " in full else ""}
    with suppress(RocmendError):
        users |= {group for group in root.user().groups if group not in KNOWN_GROUPS}
    for stat in root.stats():
        users |= {stat.owner if stat.uid >= FIRST_PERSON_ID else "", stat.group if stat.gid >= FIRST_PERSON_ID else ""}
    return {name for name in hosts if name and not re.match(r"gfx\d", name)}, users - {"", "root", "nobody"}


def _text(root: CapturedRoot, path: str) -> str:
    try:
        return root.read_or_none(path) or ""
    except ReadError:
        return ""
