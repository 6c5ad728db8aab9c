"""What level 6 executes of a project: found by its files and settings, without executing any of it."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from rocmend.port.settings import settings
from rocmend.port.verify.execution import Step
from rocmend.port.verify.job import Job

__all__ = [
    "PYTEST", "golden_steps", "imported_here", "interpreter", "module_of", "reached_files", "roots_of", "steps",
    "test_files",
]  # fmt: skip

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
_NO_MODULES = {"setup.py", "conftest.py", "noxfile.py", "conf.py", "__main__.py"}


def steps(job: Job) -> list[Step]:
    """Return what is executed here: modules that are imported, tests, functions; none where the port reached none."""
    paths, entries = reached_files(job), settings(job.root).golden
    if not paths and not entries:
        return []
    python = interpreter(job)
    found = []
    imported = tuple(imported_here(job, paths))
    if imported:
        source = "the Python files that the port changed or made"
        found.append(Step("python", "import", imported, f"{python} -c 'import ...'", source))
    tests = tuple(test_files(job.root))
    if tests:
        command = shlex.join([python, *PYTEST])
        found.append(Step("python", "tests", tests, command, f"files called test_*.py or *_test.py{_tuned(job.root)}"))
    return [*found, *(_golden_step("python", python, entries) if entries else ())]


def golden_steps(job: Job) -> list[Step]:
    """Return what keeping golden vectors executes."""
    return list(_golden_step("golden", interpreter(job), settings(job.root).golden))


def _golden_step(level: str, python: str, entries: Sequence[str]) -> Iterator[Step]:
    if entries:
        command = f"{python} -c 'import ...; function(tensor)'"
        yield Step(level, "golden", tuple(entries), command, "[tool.rocmend.port] golden in pyproject.toml")


def _tuned(root: Path) -> str:
    """Return the files of the project that change what pytest does, or that it executes first."""
    names = ("conftest.py", "tests/conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml")
    there = [name for name in names if (root / name).is_file()]
    return f"; pytest reads {', '.join(there)}" if there else ""


def reached_files(job: Job) -> list[str]:
    """Return the Python files that the port changed or made."""
    return [part.path for part in job.parts if part.path.endswith(".py") and part.after is not None]


def interpreter(job: Job) -> str:
    """Return the project's own interpreter, else the one that is activated, else this one; a container's own in one."""
    if job.execution is not None and job.execution.container:
        return "python3"
    root = job.root
    own = [root / name / "bin" / "python" for name in (".venv", "venv")]
    active = os.environ.get("VIRTUAL_ENV")
    found = [*own, *([Path(active) / "bin" / "python"] if active else [])]
    return next((str(path.absolute()) for path in found if path.exists()), sys.executable)


def roots_of(root: Path, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the folders that modules are found in: above each package, ``src``, and the project itself."""
    roots = {module_of(root, path)[0] for path in paths}
    return tuple(sorted(roots | {"src"} & {item.name for item in root.iterdir()} | {""}))


def module_of(root: Path, path: str) -> tuple[str, str]:
    """Return the folder that a file's module is found in, and its dotted name; no name for a file of no package."""
    where = PurePosixPath(path)
    parts = [] if where.name == "__init__.py" else [where.stem]
    folder = where.parent
    while str(folder) != "." and (root / folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    top = "" if str(folder) == "." else str(folder)
    dotted = ".".join(parts)
    inside = folder != where.parent and all(part.isidentifier() for part in parts)
    return top, dotted if inside else ""


def imported_here(job: Job, paths: Sequence[str]) -> list[str]:
    """Return the files that are imported: not those that tools execute, nor programs that work when loaded."""
    return [path for path in paths if PurePosixPath(path).name not in _NO_MODULES and not _works_at_once(job, path)]


def _works_at_once(job: Job, path: str) -> bool:
    """Whether a file of no package is a program that does its work when it is loaded: that is not tried."""
    return not module_of(job.root, path)[1] and b"__main__" not in (job.read(path) or b"")


def test_files(root: Path) -> Iterator[str]:
    """Yield the files that pytest finds by name, relative to the project."""
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith(".") and name != "node_modules")
        names[:] = [name for name in names if not (Path(folder, name) / "pyvenv.cfg").exists()]
        for name in sorted(files):
            if name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py")):
                yield (Path(folder) / name).relative_to(root).as_posix()
