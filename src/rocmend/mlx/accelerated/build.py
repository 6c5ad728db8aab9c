"""Compiling the C sources of this folder with the compiler at hand, once for each of its versions and of Python's."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

__all__ = ["BuildError", "built"]

NAME = "rocmend_mlx_record"
HERE = Path(__file__).parent
OPTIONS = ("-O2", "-shared", "-fPIC", "-fno-strict-aliasing", "-fvisibility=hidden", "-w")
LIMIT = 60.0  # seconds a compiler may take; it needs about two


class BuildError(Exception):
    """There is no accelerator here, and why."""


def built() -> Path:
    """Return the library, compiled if it is not in the cache yet.

    Raises:
        BuildError: no compiler, no headers of Python, an interpreter that it is not for, or a compiler that failed.
    """
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise BuildError("it is for CPython with the global lock")
    if os.name != "posix":
        raise BuildError("it is for Linux")
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        raise BuildError(f"no headers of Python in {headers} (a package such as python3-dev has them)")
    compiler = _compiler()
    library = _folder() / f"{NAME}-{_key(compiler, headers)}.so"
    if not library.is_file():
        _compile(compiler, headers, library)
    return library


def _compiler() -> list[str]:
    asked = os.environ.get("CC")
    if asked:
        return shlex.split(asked)
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found:
            return [found]
    raise BuildError("no C compiler (cc, gcc or clang, or the one that CC names)")


def _folder() -> Path:
    asked = os.environ.get("XDG_CACHE_HOME")
    try:
        base = Path(asked) if asked else Path.home() / ".cache"
    except RuntimeError as error:
        raise BuildError(f"no folder for it: {error}") from error
    return base / "rocmend" / "mlx"


def _key(compiler: list[str], headers: Path) -> str:
    """Return what the library depends on: sources, options, Python, the compiler."""
    found = shutil.which(compiler[0])
    if found is None:
        raise BuildError(f"the compiler {compiler[0]!r} is not there")
    stat = Path(found).stat()
    parts = [
        *compiler, *OPTIONS, sys.version, str(sysconfig.get_config_var("SOABI")), str(headers), platform.machine(),
        str(stat.st_size), str(stat.st_mtime_ns),
    ]  # fmt: skip
    digest = hashlib.sha256("\0".join(parts).encode())
    for source in sorted([*HERE.glob("*.c"), *HERE.glob("*.h")]):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:32]


def _compile(compiler: list[str], headers: Path, library: Path) -> None:
    """Compile to a name of this process's own, and move it to its place: others see all of it or nothing."""
    try:
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
            made = Path(scratch) / library.name
            command = [*compiler, *OPTIONS, f"-I{headers}", str(HERE / "module.c"), "-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
            if done.returncode:
                raise BuildError(f"the compiler failed: {shlex.join(command)}\n{done.stderr[-2000:]}")
            made.replace(library)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"the library could not be made: {error}") from error
