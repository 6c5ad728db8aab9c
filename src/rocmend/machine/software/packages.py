"""Versions of the distribution's own packages."""

from __future__ import annotations

from pathlib import Path

from rocmend.machine.parse.packages import parse_dpkg_status, parse_pacman_folders, parse_rpm_list
from rocmend.machine.root import ReadError, Root
from rocmend.machine.software.reading import is_dir, measured

DPKG_STATUS = "/var/lib/dpkg/status"
PACMAN_LOCAL = "/var/lib/pacman/local"
RPM_DATABASES = ("/usr/lib/sysimage/rpm", "/var/lib/rpm")
RPM_COMMAND = ("rpm", "-qa", "--qf", r"%{NAME} %{VERSION}-%{RELEASE}\n")

MAX_STATUS_BYTES = 32 << 20
"""A desktop with 5,000 packages has 8 MB."""


def installed_packages(root: Root) -> tuple[dict[str, str], str]:
    """Return the packages that matter here (name to version) and where they were read.

    dpkg's and pacman's databases are read as files; rpm's is binary, so its tool is asked.
    """
    try:
        if root.exists(DPKG_STATUS):
            return _dpkg(root), DPKG_STATUS
        if is_dir(root, PACMAN_LOCAL):
            return _pacman(root), PACMAN_LOCAL
    except ReadError:
        return {}, ""
    if any(is_dir(root, path) for path in RPM_DATABASES):
        result = root.run(RPM_COMMAND, time_limit_s=3.0)
        if result.ok:
            return parse_rpm_list(result.stdout), " ".join(RPM_COMMAND)
    return {}, ""


def _dpkg(root: Root) -> dict[str, str]:
    """Read dpkg's status file; a capture keeps the wanted versions instead of the file's megabytes."""

    def select(path: Path) -> dict[str, str]:
        with path.open("rb") as file:
            return parse_dpkg_status(file.read(MAX_STATUS_BYTES))

    found = measured(
        root,
        "packages",
        DPKG_STATUS,
        select,
        lambda: parse_dpkg_status(root.read_bytes(DPKG_STATUS, max_bytes=MAX_STATUS_BYTES)),
    )
    return _texts(found)


def _pacman(root: Root) -> dict[str, str]:
    """List pacman's folders; a capture keeps the wanted versions instead of thousands of names."""

    def select(path: Path) -> dict[str, str]:
        return parse_pacman_folders(entry.name for entry in path.iterdir())

    found = measured(root, "packages", PACMAN_LOCAL, select, lambda: parse_pacman_folders(root.list_dir(PACMAN_LOCAL)))
    return _texts(found)


def _texts(value: object) -> dict[str, str]:
    """Check a measurement that a capture file supplied: names to versions, nothing else."""
    if not isinstance(value, dict):
        return {}
    return {name: version for name, version in value.items() if isinstance(name, str) and isinstance(version, str)}
