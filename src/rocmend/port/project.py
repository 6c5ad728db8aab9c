"""Understanding a project before it is ported: what it is, what its port consists of, and how much of it is work."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path, PurePosixPath

import msgspec

from rocmend.core.errors import DataError
from rocmend.core.units import count_text
from rocmend.port import git
from rocmend.port.build.asked import Asked
from rocmend.port.build.asked import project as asked_of
from rocmend.port.build.kinds import Kind as FileKind
from rocmend.port.build.packages import Role, known
from rocmend.port.phases import Estimate, Phase, estimate, phases
from rocmend.port.records import Analysis
from rocmend.port.rocm_support import RocmSupport, rocm_support
from rocmend.port.settings import project_document, settings, table_in
from rocmend.port.survey import Survey, survey
from rocmend.port.walk import walk

__all__ = ["Dependency", "EntryPoint", "Files", "Project", "ProjectKind", "understand"]

_MOST_ENTRIES = 40
_NOT_ENTRIES = ("test", "tests", "docs", "doc", "third_party", "thirdparty", "vendor", "extern", "external")


class ProjectKind(StrEnum):
    """What a project is, by how its CUDA is written and built."""

    PYTHON = "pure Python"
    TRITON = "Python with Triton"
    EXTENSION = "PyTorch extension"
    CMAKE = "CMake"
    MAKE = "Makefile"
    MIXED = "mixed"
    SOURCES = "CUDA sources without a build"
    SETTINGS = "scripts and settings"
    NOTHING = "nothing to port"


class Dependency(msgspec.Struct, frozen=True, omit_defaults=True):
    """A package that a project asks for.

    Attributes:
        name: In its canonical form.
        version: The specifier as it is written; empty where any will do.
        path: The file that asks.
        line: Of the requirement.
        pinned: Whether it admits one version only.
        optional: The extra or group that it belongs to.
        role: What becomes of it on ROCm (``rocmend.port.build.packages.Role``); empty where it is the same.
        note: Why.
        replacement: What serves AMD GPUs instead.
    """

    name: str
    version: str
    path: str
    line: int
    pinned: bool
    optional: str = ""
    role: str = ""
    note: str = ""
    replacement: str = ""


class EntryPoint(msgspec.Struct, frozen=True):
    """Where a program begins.

    Attributes:
        kind: ``script`` (declared in the metadata), ``module``, ``python`` or ``c++``.
        name: The command's, or the file's.
        path: The file, or what is called.
    """

    kind: str
    name: str
    path: str


class Files(msgspec.Struct, frozen=True):
    """How many files become what.

    Attributes:
        read: Files that were read.
        done: Files with something to rewrite and nothing for a person.
        manual: Files that a person has to look at.
        skipped: Of those, files that could not be read.
    """

    read: int
    done: int
    manual: int
    skipped: int


class Project(msgspec.Struct, frozen=True):
    """A project and the plan of its port.

    Attributes:
        root: Its folder.
        kind: What it is.
        why: What says so.
        phases: The phases of the port, by number.
        estimate: What is automatic, suggested and manual.
        files: How many files become what.
        cuda_sources: How many sources nvcc compiles.
        python_files: How many files are Python.
        entry_points: Where programs begin, the shallowest first.
        dependencies: What it asks for.
        requires_python: Its specifier of interpreters.
        containers: Dockerfiles and compose files.
        workflows: Files of continuous integration.
        builds: Files that build CUDA.
        own_rocm: Files that are for ROCm, or tell it, already.
        submodules: Repositories within it: each is ported on its own.
        vendored: Folders of others' code within it, and how many sources they hold.
        folders: Folders that were not entered, and why.
        rocm: What it does for ROCm itself, and what of that is missing.
    """

    root: str
    kind: ProjectKind
    why: str
    phases: tuple[Phase, ...]
    estimate: Estimate
    files: Files
    cuda_sources: int
    python_files: int
    entry_points: tuple[EntryPoint, ...]
    dependencies: tuple[Dependency, ...]
    requires_python: str
    containers: tuple[str, ...]
    workflows: tuple[str, ...]
    builds: tuple[str, ...]
    own_rocm: tuple[str, ...]
    submodules: tuple[str, ...]
    vendored: dict[str, int]
    folders: dict[str, str]
    rocm: RocmSupport = RocmSupport()


def understand(root: Path, analysis: Analysis) -> Project:
    """Return what a project is and what its port consists of.

    Args:
        root: Its folder, or the one file that was analysed.
        analysis: What rules found in it.
    """
    folder = root if root.is_dir() else root.parent
    chosen = settings(folder)
    files = walk(folder, exclude=chosen.exclude).files
    if not root.is_dir():
        files = [file for file in files if file.path == root.name]
    found = survey(folder, files, chosen)
    wants = asked_of(folder)
    dependencies = tuple(_dependency(one) for one in wants.asked)
    cuda = sorted({one.name for one in dependencies if one.role in {Role.CUDA, Role.REPLACED, Role.NONE}})
    issues = analysis.issues
    kind, why = _kind(found)
    if kind is ProjectKind.NOTHING and issues:
        kind = ProjectKind.SETTINGS
    own_rocm = tuple(sorted({*found.own_rocm, *found.uses("rocm")}))
    return Project(
        root=str(folder),
        kind=kind,
        why=why,
        phases=phases(found, own_rocm, issues, cuda),
        estimate=estimate(issues),
        files=_files(analysis),
        cuda_sources=len(found.kernels),
        python_files=len(found.python),
        entry_points=tuple(_entry_points(folder, found)),
        dependencies=dependencies,
        requires_python=wants.requires_python,
        containers=tuple(sorted([*found.by_kind[FileKind.DOCKERFILE], *found.by_kind[FileKind.COMPOSE]])),
        workflows=tuple(found.by_kind[FileKind.WORKFLOW]),
        builds=tuple(sorted({*found.uses("extension"), *found.cmake, *found.make})) if found.cuda else (),
        own_rocm=own_rocm,
        submodules=tuple(sorted({*analysis.submodules, *git.submodules(folder)})),
        vendored=dict(sorted(found.vendored.items())),
        folders=analysis.folders,
        rocm=rocm_support(folder, files, found, analysis, chosen.max_file_bytes),
    )


def _kind(found: Survey) -> tuple[ProjectKind, str]:
    """Return what a project is, and what says so."""
    builds = {
        ProjectKind.EXTENSION: found.uses("extension"),
        ProjectKind.CMAKE: found.cmake,
        ProjectKind.MAKE: found.make,
    }
    used = [kind for kind, files in builds.items() if files]
    if found.kernels or (found.cuda and used):
        if not used:
            sources = count_text(len(found.kernels), "CUDA source")
            return ProjectKind.SOURCES, f"{sources}, and no known build for them"
        shown = ", ".join(f"{kind} ({builds[kind][0]})" for kind in used)
        return (used[0] if len(used) == 1 else ProjectKind.MIXED), f"CUDA is built by {shown}"
    triton = found.uses("triton")
    if triton:
        return ProjectKind.TRITON, f"Triton kernels in {count_text(len(triton), 'file')} ({triton[0]}), no CUDA C++"
    if found.python:
        return ProjectKind.PYTHON, f"{count_text(len(found.python), 'Python file')}, no CUDA C++ and no Triton"
    return ProjectKind.NOTHING, "neither CUDA C++ nor Python was found"


def _files(analysis: Analysis) -> Files:
    done = sum(1 for file in analysis.files if not file.manual and any(issue.edits for issue in file.issues))
    manual = sum(file.manual for file in analysis.files)
    skipped = sum(bool(file.skipped) for file in analysis.files)
    return Files(sum(analysis.looked_at.values()), done, manual, skipped)


def _dependency(one: Asked) -> Dependency:
    about = known(one.name)
    pinned = one.version.lstrip("( ").startswith("==") and "*" not in one.version and "," not in one.version
    role = note = replacement = ""
    if about is not None and about.role is not Role.SAME:
        role, note, replacement = about.role.value, about.note, about.replacement
        if one.rocm and about.role is Role.TORCH:
            note = "It comes from an index for ROCm."
    elif any(extra.startswith("cuda") for extra in one.extras):
        role, note = Role.CUDA.value, f"Its extra {'/'.join(one.extras)} installs CUDA's libraries."
    return Dependency(one.name, one.version, one.path, one.line, pinned, one.optional, role, note, replacement)


def _entry_points(root: Path, found: Survey) -> Iterator[EntryPoint]:
    """Yield where programs begin: what the metadata declares, then files, the shallowest first."""
    yield from _declared(root)
    cuda = set(found.cuda)
    mains = sorted(found.uses("main"), key=lambda path: (path.count("/"), path))
    shown = [path for path in mains if not any(part.lower() in _NOT_ENTRIES for part in PurePosixPath(path).parts[:-1])]
    for path in shown[:_MOST_ENTRIES]:
        name = PurePosixPath(path).name
        kind = "c++" if path in cuda else "module" if name == "__main__.py" else "python"
        yield EntryPoint(kind, name, path)


def _declared(root: Path) -> Iterator[EntryPoint]:
    try:
        table = table_in(project_document(root), "project")
    except DataError:
        return
    for key in ("scripts", "gui-scripts"):
        for name, target in sorted(table_in(table, key).items()):
            yield EntryPoint("script", name, str(target))
