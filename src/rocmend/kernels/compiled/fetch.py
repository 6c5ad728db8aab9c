"""Fetching a Triton with pip into a folder of its own: only what is known by its hash, and only whole.

A fetched Triton is a program that will run. Its wheel is pinned by SHA-256, it is unpacked beside its place and named
when it is complete, and it lies in a part of the cache that nobody else can write to.
"""

from __future__ import annotations

import logging
import re
import sys
import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from packaging.version import InvalidVersion, Version

from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.places import cache_home, data_home
from rocmend.core.private import UntrustedError, private_folder
from rocmend.core.scratch import ScratchFolder
from rocmend.core.sealed import building, is_complete
from rocmend.core.supervise import Ending, run_command
from rocmend.kernels.compiled.toolchain import Toolchain

__all__ = ["fetch", "fetched", "is_version", "known_hashes"]

log = logging.getLogger("rocmend.kernels")

_FOLDERS = ("code", "triton")
_TIME_LIMIT_S = 3600.0
_GOT = re.compile(r"\bGot +([0-9a-f]{64})\b")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


def is_version(text: str) -> bool:
    """Tell whether a text is a version as ``3.7.0``, as pip and a folder's name can take it."""
    try:
        return str(Version(text)) == text
    except InvalidVersion:
        return False


def known_hashes() -> dict[str, tuple[str, ...]]:
    """Return the SHA-256 of the wheels of each version of Triton that is known."""
    text = resources.files("rocmend.kernels.compiled").joinpath("tritons.toml").read_text(encoding="utf-8")
    return {version: tuple(files.values()) for version, files in tomllib.loads(text).items()}


def fetched() -> list[Toolchain]:
    """Return the Tritons that were fetched for this Python; why a Triton is left out is told in the log."""
    for old in {data_home() / "triton", cache_home() / "triton"}:
        if any(old.glob("*/triton")):
            log.warning(
                "[kernels compile] %s holds Tritons that an earlier rocmend fetched. They are not used any more. "
                "--fetch-triton VERSION fetches them again, to where others cannot write; the folder can be removed.",
                old,
            )
    if not cache_home().joinpath(*_FOLDERS).is_dir():
        return []
    try:
        root = private_folder(*_FOLDERS)
    except (UntrustedError, OSError) as error:
        log.warning("%s", error)
        return []
    found = []
    for at in sorted(root.glob(f"[0-9]*{_suffix()}")):
        version = at.name.removesuffix(_suffix())
        if is_complete(at):
            found.append(Toolchain(version, at))
        else:
            log.warning(
                "[%s] This Triton is not used: it is not what was fetched. --fetch-triton %s fetches it again.",
                at,
                version,
            )
    return found


def _suffix() -> str:
    """Return the end of a folder's name: a Triton is built for one version of Python."""
    return f"-{sys.implementation.cache_tag}"


def fetch(version: str, *, sha256: Sequence[str] = (), unpinned: bool = False) -> Toolchain:
    """Install a version of Triton into a folder of its own, with pip, and return it.

    Args:
        version: The version.
        sha256: Of the wheels that may be installed; none for those that are known.
        unpinned: Install whatever the index has under this version.

    Raises:
        UsageError: It is no version, no hash of it is known, or a hash is none.
        UntrustedError: Others can write to the cache folder.
        RocmendError: pip could not.
    """
    requirement = _requirement(version, sha256, unpinned=unpinned)
    root = private_folder(*_FOLDERS)
    folder = root / f"{version}{_suffix()}"
    if sha256 or not is_complete(folder, thorough=True):
        with building(folder) as made:
            _install(version, requirement, made)
    return Toolchain(version, folder)


def _requirement(version: str, sha256: Sequence[str], *, unpinned: bool) -> str:
    """Return the line that tells pip what to install, and what it may be."""
    if not is_version(version):
        raise UsageError("kernels compile", f"--fetch-triton: expected a version as 3.7.0, got {version!r}.")
    wrong = next((digest for digest in sha256 if not _SHA256.match(digest)), None)
    if wrong is not None:
        raise UsageError("kernels compile", f"--triton-sha256: expected 64 digits 0-9a-f, got {wrong!r}.")
    if unpinned:
        return f"triton=={version}"
    known = known_hashes()
    hashes = tuple(sha256) or known.get(version, ())
    if not hashes:
        raise UsageError(
            "kernels compile",
            f"--fetch-triton: no hash of triton {version} is known; known are {', '.join(known)}.",
            why="What is fetched runs on this machine, and without a hash it can be anything.",
            next_step="Give its wheel's hash with --triton-sha256, or --unpinned to take what the index has.",
        )
    return " ".join((f"triton=={version}", *(f"--hash=sha256:{digest}" for digest in hashes)))


def _install(version: str, requirement: str, folder: Path) -> None:
    with ScratchFolder("fetch") as scratch:
        listed = scratch / "requirements.txt"
        listed.write_text(requirement + "\n", encoding="utf-8")
        pinned = ["--require-hashes"] if "--hash" in requirement else []
        done = run_command(
            [
                # -P: a pip.py in the folder that we stand in is not pip
                sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check",
                "--no-deps", "--only-binary=:all:", *pinned, "--target", str(folder), "-r", str(listed),
            ],
            time_limit_s=_TIME_LIMIT_S,
        )  # fmt: skip
    if done.ok and (folder / "triton" / "__init__.py").is_file():
        return
    if done.ok:
        said = "there is no triton in what it installed"
    elif got := _GOT.search(done.stderr):
        said = f"what the index has is not what is known: its SHA-256 is {got[1]}. It was not unpacked"
    elif done.ending is Ending.EXITED:
        said = done.stderr.strip()[-800:]
    else:
        said = f"it ended with: {done.ending.value}"
    raise RocmendError(
        "kernels compile",
        f"pip could not install triton {version} in {folder.parent}: {said}.",
        next_step="Unpack a wheel of it yourself and name the folder: --triton VERSION=PATH.",
    )
