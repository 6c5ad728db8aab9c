"""What CMake files define for the compiler on ROCm: of a folder and below, and of each target that lists a source."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from rocmend.port.definitions.cmake_project import FILE, Project, Read, parsed
from rocmend.port.definitions.macros import Definitions

__all__ = ["CMake"]


class CMake:
    """The CMake files of a project.

    Args:
        read: Returns the project's files.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._projects: dict[tuple[str, str], Project | None] = {}

    def of_unit(self, unit: str, others: Iterable[str]) -> tuple[list[Definitions], Definitions]:
        """Return what each target defines that lists a unit, and what is defined for the unit's folder.

        Args:
            unit: The unit's path.
            others: Files of CMake that may list it, beside those in the folders above it.
        """
        language = "CXX" if unit.lower().endswith((".cc", ".cpp", ".cxx")) else "HIP"
        above = [(folder / FILE).as_posix() for folder in PurePosixPath(unit).parents]
        known: dict[int, Project] = {}
        for path in dict.fromkeys((*reversed(above), *others)):
            project = self._project(path, language)
            if project is not None:
                known[id(project)] = project
        ways = [way for project in known.values() for way in project.of_unit(unit)]
        own = next(filter(None, (self._project(path, language) for path in above)), None)
        return ways, own.of_folder_of(unit) if own is not None else Definitions({})

    def _project(self, path: str, language: str) -> Project | None:
        """Return the project that reads a file; None where there is no such file."""
        key = (language, path)
        if key not in self._projects:
            self._projects[key] = None
            data = self._read(path)
            if data is not None:
                project = Project(self._read, language, path, self._above(path, language, data))
                for read in project.folders:
                    self._projects[language, read] = project
        return self._projects[key]

    def _above(self, path: str, language: str, data: bytes) -> Project | None:
        """Return the project that a file belongs to which none adds; None where it is one by itself."""
        if b"project" in data.lower() and any(one.name == "project" for one in parsed(data)):
            return None
        folders = PurePosixPath(path).parent.parents
        found = (self._project((folder / FILE).as_posix(), language) for folder in folders)
        return next(filter(None, found), None)
