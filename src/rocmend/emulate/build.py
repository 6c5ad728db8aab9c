"""The engine, compiled once by the C compiler that is there and kept in the user's cache."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
from functools import cache
from importlib import util
from importlib.resources import files
from pathlib import Path
from typing import Any

from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.private import cache_folder
from rocmend.core.supervise import run_command
from rocmend.emulate import layout
from rocmend.emulate.decode.matrix import shapes
from rocmend.emulate.isa.table import source

__all__ = ["compiler", "engine"]

_FLAGS = (
    "-std=c11", "-O2", "-ftree-vectorize", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-w",
    "-shared", "-fPIC",
)  # fmt: skip
"""Without -ffp-contract=off a compiler may make one fused operation of two that the instruction rounds apart."""

_COMPILER_VARIABLE = "CC"
_LIMIT_S = 300


class NoCompilerError(RocmendError):
    """The engine could not be compiled."""

    code = "no-c-compiler"


def compiler() -> list[str]:
    """Return how the C compiler is called: ``CC``, else cc, gcc or clang, else the one that ziglang brings.

    Raises:
        UsageError: There is none.
    """
    named = os.environ.get(_COMPILER_VARIABLE)
    for name in [named] if named else ["cc", "gcc", "clang"]:
        if found := shutil.which(name):
            return [found]
    spec = util.find_spec("ziglang")
    zig = Path(*spec.submodule_search_locations, "zig") if spec and spec.submodule_search_locations else None
    if zig is not None and zig.is_file() and not named:
        return [str(zig), "cc"]
    raise UsageError(
        "emulate",
        f"there is no C compiler{f' {named!r}' if named else ''}.",
        why="The emulator is compiled for this CPU when it is first used.",
        next_step="Install gcc or clang, or: pip install ziglang",
    )


def _shapes() -> str:
    rows = ", ".join(f"{{{', '.join(map(str, shape))}}}" for shape in shapes())
    return f"const Shape shapes[] = {{{rows}}};\n"


@cache
def engine() -> Any:
    """Return the engine, compiled first where it was not yet.

    Raises:
        UsageError: There is no C compiler.
        NoCompilerError: It failed.
    """
    command = compiler()
    folder = files(__package__) / "engine"
    parts = {one.name: one.read_bytes() for one in folder.iterdir() if one.name.endswith((".c", ".h"))}
    parts["ops.inc"] = (source() + _shapes()).encode()
    digest = hashlib.sha256()
    for name in sorted(parts):
        digest.update(name.encode() + b"\0" + parts[name] + b"\0")
    said = run_command([*command, "--version"], time_limit_s=60)
    digest.update(repr((command, _FLAGS, said.stdout, _cpu())).encode())
    place = cache_folder("code", "emulate")
    library = place / f"{digest.hexdigest()[:32]}.so"
    if not library.is_file():
        _compile(command, parts, library)
    loaded = ctypes.CDLL(str(library))
    for which, structure in enumerate((layout.OPERAND, layout.INST, layout.MACHINE, layout.ALLOCATION, layout.FAULT)):
        if loaded.rocmend_sizes(which) != ctypes.sizeof(structure):
            raise NoCompilerError("emulate", f"the engine lays {structure.__name__} out otherwise than Python.")
    loaded.rocmend_run.argtypes = [ctypes.POINTER(layout.MACHINE), ctypes.POINTER(layout.LAUNCH)]
    return loaded


def _cpu() -> str:
    """Return what -march=native depends on, so that a cache in a shared home folder is not run on another CPU."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor()
    return next((line for line in text.splitlines() if line.startswith(("flags", "Features"))), platform.machine())


def _compile(command: list[str], parts: dict[str, bytes], library: Path) -> None:
    work = library.with_suffix(f".{os.getpid()}")
    work.mkdir(mode=0o700)
    try:
        for name, data in parts.items():
            (work / name).write_bytes(data)
        made = work / "engine.so"
        said = run_command(
            [*command, *_FLAGS, f"-I{work}", str(work / "engine.c"), "-o", str(made), "-lm"], time_limit_s=_LIMIT_S
        )
        if said.exit_code != 0 or not made.is_file():
            why = (said.stderr or said.stdout or str(said.ending)).strip()
            raise NoCompilerError(
                "emulate",
                f"{command[0]} could not compile the emulator: {why[-600:]}",
                next_step="Set CC to another C compiler: gcc 10 or newer, or clang 12 or newer.",
            )
        made.replace(library)
    finally:
        shutil.rmtree(work, ignore_errors=True)
