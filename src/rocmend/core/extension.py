"""C extensions that are compiled on first use with the compiler at hand, and kept in the user's cache folder.

The package stays one pure wheel. A library is made once for each version of its sources, its options, Python and the
compiler.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import platform
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

from rocmend.core.private import cache_folder, is_own_file
from rocmend.core.scratch import ScratchFolder
from rocmend.core.supervise import run_command

__all__ = ["BuildError", "built", "loaded"]

OPTIONS = ("-O2", "-shared", "-fPIC", "-fno-strict-aliasing", "-fvisibility=hidden", "-w")
LIMIT = 60.0  # seconds a compiler may take; it needs about two


class BuildError(Exception):
    """There is no such extension here, and why."""


def built(name: str, sources: Path, main: str, subfolder: str) -> Path:
    """Return the library, compiled if it is not in the cache yet.

    Args:
        name: Of the module.
        sources: The folder of its C sources and headers, all of which count.
        main: The source file that includes the others.
        subfolder: Where among the cache's code it is kept.

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
    try:
        library = cache_folder("code", subfolder) / f"{name}-{_key(compiler, headers, sources)}.so"
    except OSError as error:
        raise BuildError(f"no folder for it: {error}") from error
    if not is_own_file(library):
        _compile([*compiler, *OPTIONS, f"-I{headers}", str(sources / main)], library)
    return library


def loaded(name: str, library: Path) -> Any:
    """Return the module of a library.

    Raises:
        ImportError: It cannot be loaded.
    """
    loader = importlib.machinery.ExtensionFileLoader(name, str(library))
    module = importlib.util.module_from_spec(importlib.machinery.ModuleSpec(name, loader, origin=str(library)))
    loader.exec_module(module)
    return module


def _compiler() -> list[str]:
    asked = os.environ.get("CC")
    if asked:
        return shlex.split(asked)
    for name in ("cc", "gcc", "clang"):
        found = shutil.which(name)
        if found:
            return [found]
    raise BuildError("no C compiler (cc, gcc or clang, or the one that CC names)")


def _key(compiler: list[str], headers: Path, sources: Path) -> str:
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
    for source in sorted([*sources.glob("*.c"), *sources.glob("*.h")]):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:32]


def _compile(command: list[str], library: Path) -> None:
    """Compile to a name of this process's own, and move it to its place: others see all of it or nothing."""
    try:
        with ScratchFolder("build", library.parent) as scratch:
            made = scratch / library.name
            told = [*command, "-o", str(made)]
            done = run_command(told, time_limit_s=LIMIT)
            if not done.ok:
                raise BuildError(f"the compiler failed ({done.ending}): {shlex.join(told)}\n{done.stderr[-2000:]}")
            with made.open("rb") as file:
                os.fsync(file.fileno())
            made.replace(library)
    except OSError as error:
        raise BuildError(f"the library could not be made: {error}") from error
