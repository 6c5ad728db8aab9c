"""Leaving out of a capture what no diagnosis needs: other packages, other folders, unrelated lines of the kernel log.

What is left gives the same facts: only things that no collector used further are dropped.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

import msgspec

from rocmend.core.supervise import CommandResult
from rocmend.machine.parse.distributions import parse_folder
from rocmend.machine.parse.kernel_log import relevant_lines
from rocmend.machine.recording import Recording

KERNEL_LOG_TOOLS = frozenset({"dmesg", "journalctl"})
KERNEL_LOG_FILES = frozenset({"/var/log/kern.log"})

_HOME = re.compile(r"(?:/var)?/home/[^/]+|/root|/Users/[^/]+")
_SHARED = frozenset({"/", "/opt", "/mnt", "/srv", "/media", "/data", "/usr/local"})
_PACKAGES = frozenset({"site-packages", "dist-packages"})
_OF_INTEREST = re.compile(r"(?i)rocm|therock|\bhip|hsa|amd|gfx|vulkan|torch|triton|miopen|conda|venv|llama|ollama")
_SYSTEM = re.compile(r"/(?:usr|bin|sbin|lib|lib64|opt/rocm|opt/amdgpu)(?:/|[-.\d]*\Z|[-.\d]+/)")


def trim(record: Recording) -> Recording:
    """Return a recording without what no collector used.

    Args:
        record: What was read.
    """
    touched = _touched(record)
    return Recording(
        files={
            path: relevant_lines(data.decode(errors="replace")).encode() if path in KERNEL_LOG_FILES else data
            for path, data in record.files.items()
        },
        stats=record.stats,
        links=record.links,
        lists={path: _names(path, names, touched, record.environ) for path, names in record.lists.items()},
        denied=record.denied,
        errors=record.errors,
        commands={slug: _command(result) for slug, result in record.commands.items()},
        environ={name: _search_path(name, value, touched) for name, value in record.environ.items()},
        user=record.user,
        measurements=record.measurements,
    )


def _touched(record: Recording) -> set[str]:
    """Return every path that was read in some way, and all folders above."""
    measured = [key.partition("|")[2] for key in record.measurements]
    paths: Iterable[str] = (
        *record.files,
        *record.stats,
        *record.links,
        *record.lists,
        *record.denied,
        *record.errors,
        *measured,
    )
    found: set[str] = set()
    for start in paths:
        path = start
        while path not in found and path not in {"", "/"}:
            found.add(path)
            path = posixpath.dirname(path)
    return found


def _names(folder: str, names: list[str], touched: set[str], environ: dict[str, str]) -> list[str]:
    """Drop names that say what else a person keeps in a folder."""
    in_packages = posixpath.basename(folder) in _PACKAGES
    personal = _HOME.fullmatch(folder) or folder in _SHARED or folder == environ.get("HOME", "").rstrip("/")
    if not in_packages and not personal:
        return names
    return [
        name
        for name in names
        if posixpath.join(folder, name) in touched
        or (_is_ml_package(name) if in_packages else _OF_INTEREST.search(name) is not None)
    ]


def _is_ml_package(name: str) -> bool:
    from rocmend.machine.collectors.python import is_ml

    parsed = parse_folder(name)
    return parsed is not None and is_ml(parsed[0])


def _search_path(name: str, value: str, touched: set[str]) -> str:
    """Drop the folders of PATH in which nothing was found: they tell what else a person uses."""
    if name != "PATH":
        return value
    entries = (entry.rstrip("/") for entry in value.split(":"))
    return ":".join(entry for entry in entries if _SYSTEM.match(entry) or entry in touched)


def _command(result: CommandResult) -> CommandResult:
    if not result.argv or result.argv[0] not in KERNEL_LOG_TOOLS:
        return result
    return msgspec.structs.replace(result, stdout=relevant_lines(result.stdout))
