"""What every level is given: the project as it is, and the originals of what a port changed."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import Self

import msgspec

from rocmend.core.errors import DataError, UsageError
from rocmend.core.scratch import ScratchFolder
from rocmend.core.supervise import CommandResult
from rocmend.core.units import count_text
from rocmend.port.definitions.units import Builds
from rocmend.port.records import Language
from rocmend.port.state import MAX_FILE_BYTES, Generation, digest, first_and_last, generations, opened
from rocmend.port.tree import FOLDER
from rocmend.port.verify.execution import Execution, Step, execute_code, request_text
from rocmend.port.verify.records import Level, Status

__all__ = ["Job", "Part", "Progress"]

_HEADERS = (".h", ".hpp", ".cuh")
_SOURCES = (
    ".cu", ".cuh", ".h", ".hpp", ".hh", ".hxx", ".inl", ".inc", ".ipp", ".tpp", ".c", ".cc", ".cpp", ".cxx", ".hip",
    ".def", ".ptx", ".in",
)  # fmt: skip
_MAX_FILES = 200_000

Progress = Callable[[str, int, int], None]
"""Told the level, how many of its parts are done, and of how many."""


class Part(msgspec.Struct, frozen=True):
    """A file that a port changed or made.

    Attributes:
        path: Relative to the project, with forward slashes.
        before: Its bytes before the first port; None where it was not there.
        after: Its bytes now; None where it is not there.
        edited: It was changed since the port, by someone else.
    """

    path: str
    before: bytes | None
    after: bytes | None
    edited: bool


class Job:
    """One run of the verification.

    Args:
        root: The project's folder.
        targets: The gfx targets asked for.
        progress: Is told how far a level is.
        jobs: Processes at once.
        cache: Whether what was compiled before is used and kept.
        execution: How the project's code is executed; None where that was not asked for, and none is.

    Raises:
        UsageError: There is no such folder, or a target that is none.
    """

    def __init__(  # noqa: PLR0913  a run is told what to prove, for what and how
        self,
        root: Path,
        targets: Sequence[str] = (),
        progress: Progress | None = None,
        *,
        jobs: int = 2,
        cache: bool = True,
        execution: Execution | None = None,
    ) -> None:
        from rocmend.core.gfx import lookup

        if not root.is_dir():
            raise UsageError("port verify", f"{root} is not a folder.", next_step="Name the project's folder.")
        self.root = root
        self.tree = opened(root)
        self.targets = tuple(dict.fromkeys(lookup(name).name for name in targets))
        self.jobs = max(1, jobs)
        self.cache = cache
        self.execution = execution
        self._progress = progress
        self._folders = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folders.close()

    def tell(self, level: str, done: int, total: int) -> None:
        """Tell how far a level is."""
        if self._progress is not None:
            self._progress(level, done, total)

    @cached_property
    def base(self) -> Path:
        """Return the folder that holds all others of the run, and goes when it ends."""
        return self._folders.enter_context(ScratchFolder("verify"))

    def scratch(self) -> Path:
        """Return a new empty folder that goes when the run ends."""
        return Path(tempfile.mkdtemp(dir=self.base))

    def execute(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        time_limit_s: float,
        env: Mapping[str, str] | None = None,
        gpu: bool = False,
    ) -> CommandResult:
        """Execute something of the project. See ``execute_code``.

        Raises:
            UsageError: That was not asked for: no level may come here then.
        """
        if self.execution is None:
            raise UsageError("port verify", "running the project's code was not requested.", next_step="Give --run.")
        return execute_code(
            self.execution, argv, base=self.base, folder=folder, env=env or {}, time_limit_s=time_limit_s, gpu=gpu
        )

    def not_asked(self, level: str, steps: Sequence[Step]) -> Level:
        """Return the level that was not run because it executes code of the project, with what would run it."""
        count = count_text(sum(len(step.names) for step in steps), "item")
        why = f"it executes the project's code ({count}), and --run was not given"
        command = request_text(self.root, level, self.targets)
        return Level(0, "", "", Status.NOT_RUN, why=why, command=command, steps=tuple(steps))

    @cached_property
    def generations(self) -> list[Generation]:
        """Return the ports that the project has, the oldest first."""
        return generations(self.tree)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the files that a port changed or made, by path.

        Raises:
            DataError: An original cannot be read.
        """
        first, last, _ = first_and_last(self.generations)
        found = []
        for path in sorted(first):
            now = self.read(path)
            found.append(Part(path, first[path], now, digest(now) != last[path]))
        return tuple(found)

    @cached_property
    def beside(self) -> str:
        """Return the folder that holds the ROCm side where the port wrote it into one of its own; else nothing."""
        written = self.generations and self.generations[-1].manifest.style == "tree"
        return FOLDER if written and any(part.path.startswith(f"{FOLDER}/") for part in self.parts) else ""

    def read(self, path: str) -> bytes | None:
        """Return a file's bytes; None where there is no such file."""
        try:
            return self.tree.read(self.tree.within(path), MAX_FILE_BYTES)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise DataError("port verify", f"{path} cannot be read: {error.strerror}.") from error

    def holds(self, path: PurePath) -> bool:
        """Tell whether the project has a regular file there, itself or by a link that does not lead out of it."""
        file = self.root / path
        try:
            mode = file.lstat().st_mode
            if not stat.S_ISLNK(mode):
                return stat.S_ISREG(mode)
            return file.resolve().is_relative_to(self.root.resolve()) and file.is_file()
        except (OSError, RuntimeError):  # a link to itself
            return False

    @cached_property
    def sources(self) -> dict[str, bytes]:
        """Return the CUDA C++ sources and headers of the ROCm side, by path; those beyond the size limit are left out.

        They are the project's own, or those of the folder beside them.
        """
        from rocmend.port.classify import languages
        from rocmend.port.settings import settings
        from rocmend.port.steady import NotReadError, read_steady
        from rocmend.port.walk import walk

        if self.beside:
            read = {path: self.read(path) for path in self.paths}
            return {path: data for path, data in read.items() if data is not None}
        rules = settings(self.root)
        found: dict[str, bytes] = {}
        for file in walk(self.root, exclude=rules.exclude).files:
            try:
                data, _ = read_steady(self.root, file.path, rules.max_file_bytes)
            except NotReadError:
                continue
            if (kinds := languages(file.path, data)) and kinds[0] is Language.CUDA:
                found[file.path] = data
        for part in self.parts:  # what the port brought is no source of the project's own, but is compiled with it
            if part.after is not None and part.path.endswith(_HEADERS):
                found.setdefault(part.path, part.after)
        return found

    @cached_property
    def builds(self) -> Builds:
        """Return what the project's builds define."""
        return Builds(self.tree)

    @cached_property
    def built_by_torch(self) -> frozenset[str]:
        """Return the sources that PyTorch's build compiles: names in them are translated, without its headers too."""
        from rocmend.port.classify import languages
        from rocmend.port.settings import settings
        from rocmend.port.steady import NotReadError, read_steady
        from rocmend.port.torch_build import built_by_torch
        from rocmend.port.traits import traits
        from rocmend.port.walk import walk

        def read() -> Iterator[tuple[str, tuple[str, ...]]]:
            rules = settings(self.root)
            for file in walk(self.root, exclude=rules.exclude).files:
                if file.path in self.sources:
                    continue
                with suppress(NotReadError):
                    data, _ = read_steady(self.root, file.path, rules.max_file_bytes)
                    for kind in languages(file.path, data)[:1]:
                        yield file.path, traits(kind, data)

        if self.beside:
            return frozenset()
        return built_by_torch(read(), self.sources, lambda path: self.sources.get(path) or self.read(path) or b"")

    @cached_property
    def known(self) -> dict[str, bytes]:
        """Return all C and C++ of the ROCm side, by path; what cannot be read is left out."""
        found = dict(self.sources)
        for path in self.paths:
            with suppress(DataError):
                found[path] = self.sources.get(path) or self.read(path) or b""
        return found

    @cached_property
    def outside(self) -> dict[str, str]:
        """Return the sources that make a compiler read outside of the project, each with what it does."""
        from rocmend.port.verify.outside import reasons

        return reasons(self.known.items())

    @cached_property
    def paths(self) -> list[str]:
        """Return the C and C++ sources and headers of the ROCm side, relative to the project.

        Hidden folders are left out, and so is what is no file, or leads out of the project.
        """
        found: list[str] = []
        for folder, names, files in os.walk(self.root / self.beside):
            names[:] = sorted(name for name in names if not name.startswith("."))
            here = Path(folder).relative_to(self.root)
            found += [
                str(PurePosixPath(here / name))
                for name in sorted(files)
                if name.endswith(_SOURCES) and self.holds(here / name)
            ]
            if len(found) > _MAX_FILES:
                break
        return found
