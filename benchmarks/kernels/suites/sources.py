"""What an op's code is: a digest by which it is known whether an outcome was had with the code of today."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import rocmend.kernels

ROOT = Path(rocmend.kernels.__file__).parent
HERE = "rocmend.kernels"


def digest(op: str) -> str:
    """Return the digest of an op's folder, and of the other ops' folders and common files that it reaches by imports.

    Comments, docstrings and blank lines do not count. The machinery that all ops share (``launch``, ``choose`` …) is
    not part of it.
    """
    found, waiting = set[Path](), [*(ROOT / "ops").glob(f"*/{op}")]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if path.parent.parent == ROOT / "ops":  # its kernels in back ends, and what they share
            folders = list((ROOT / "backends").glob(f"*/{path.name}"))
            waiting += [*folders, *(file for folder in folders for file in folder.parent.glob("*.py"))]
        waiting += [other for file in _files(path) for other in _reached(file)]
    together = hashlib.sha256()
    for file in sorted(file for path in found for file in _files(path)):
        together.update(f"{file.relative_to(ROOT).as_posix()}\n{_code(file)}\n".encode())
    return together.hexdigest()[:16]


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    else:
        yield from (file for file in sorted(path.rglob("*")) if file.suffix in {".py", ".toml"})


@cache
def _reached(file: Path) -> tuple[Path, ...]:
    if file.suffix != ".py":
        return ()
    names = list[str]()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{one.name}" for one in node.names]
        elif isinstance(node, ast.Import):
            names += [one.name for one in node.names]
    parts = [name.split(".") for name in names if name.startswith((f"{HERE}.ops.", f"{HERE}.common."))]
    tried = [ROOT.joinpath(*part[2:5]) if part[2] == "ops" else ROOT / part[2] / f"{part[3]}.py" for part in parts]
    return tuple(path for path in tried if path.exists())


@cache
def _code(file: Path) -> str:
    """Return the lines of a file that are code. They are told by line numbers, so every Python sees the same ones."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    told = set[int]()
    if file.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            body = getattr(node, "body", None)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and body:
                first = body[0]
                if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                    told |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    kept = (line.rstrip() for number, line in enumerate(lines, 1) if number not in told)
    return "\n".join(line for line in kept if line and not line.lstrip().startswith("#"))
