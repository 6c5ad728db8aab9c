"""What a wheel, a file, a folder or an installed package holds for GPUs: read, never imported, never extracted."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from rocmend.codeobject.archive import Archive, Member
from rocmend.codeobject.limits import DEFAULT_LIMITS, Limits
from rocmend.codeobject.model import Inspection
from rocmend.codeobject.naming import by_path
from rocmend.codeobject.packages import InstalledPackage, find_folder, find_package
from rocmend.codeobject.reader import FileReader, Reader
from rocmend.codeobject.survey import TEXT_MAX_BYTES, Survey
from rocmend.codeobject.walk import FoundFile, take_content, take_file, walk
from rocmend.core.errors import DataError, UsageError

Progress = Callable[[str, int, int], None]
"""Called with what is being read, bytes done, bytes in all."""

_EXPECTED = "Expected a wheel, a library, a code object, or a folder or installed package with such files."
_DIST_INFO = re.compile(r"[^/]+\.dist-info/METADATA\Z")


def inspect_path(
    path_or_package: str | Path,
    *,
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
    search_path: Sequence[str] | None = None,
    installed_in: Sequence[str] | None = None,
) -> Inspection:
    """Find what a wheel, a file, a folder or an installed package holds for GPUs.

    Args:
        path_or_package: A path; or, where there is no such path, the name of an installed distribution or package.
        limits: Bounds on what is read; raise them for files that are genuine and beyond.
        progress: Called between files (and archive members).
        search_path: Where installed packages are looked for; by default the active environment and the system.
        installed_in: Folders of the packages of one environment: then a package in these is meant, and no path.

    Returns:
        The inspection. Members and files that are damaged are listed in its ``problems``.

    Raises:
        UsageError: There is no such path and no such package, or the path is neither a file nor a folder.
        DataError: The file itself cannot be read, or is neither a wheel nor anything that can hold device code.
    """
    subject = str(path_or_package)
    if installed_in is not None:
        return _inspect_package(subject, limits, progress, installed_in)
    path = Path(path_or_package)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return _inspect_package(subject, limits, progress, search_path)
    except (OSError, ValueError) as error:
        raise UsageError("wheel inspect", f"{subject} cannot be read: {error}.") from error
    if stat.S_ISDIR(mode):
        return _inspect_folder(subject, path, limits, progress)
    if not stat.S_ISREG(mode):
        raise UsageError("wheel inspect", f"{subject} is neither a file nor a folder.")
    try:
        with FileReader(path, path.name) as reader:
            return _inspect_file(subject, path, reader, limits, progress)
    except OSError as error:
        raise UsageError("wheel inspect", f"{subject} cannot be read: {error.strerror}.") from error


def _report(survey: Survey, subject: str, kind: str, path: Path) -> Inspection:
    if not survey.seen_files and kind != "package":
        problems = "; ".join(f"{problem.path} {problem.message.rstrip('.')}" for problem in survey.problems[:3])
        raise DataError(
            subject,
            f"has no files that can be read: {problems}." if problems else "has no files in it.",
            why=_EXPECTED,
        )
    variants = survey.variants()
    if variants:
        survey.notes.append(
            f"It carries one library for each of HIP {', '.join(variants)}; which one is loaded depends on the HIP "
            "version of the PyTorch beside it."
        )
    return Inspection(
        subject=subject,
        kind=kind,
        path=str(path),
        name=survey.name,
        version=survey.version,
        backends=survey.backends(),
        targets=survey.targets(),
        components=survey.components(),
        files=tuple(survey.files),
        versions=tuple(survey.evidence),
        rocm_version=survey.best_version("rocm"),
        hip_version=survey.best_version("hip"),
        cuda_version=survey.best_version("cuda"),
        external=survey.external(),
        notes=tuple(survey.notes),
        problems=tuple(survey.problems),
        totals=survey.totals(),
    )


# -- one file ----------------------------------------------------------------------------------------------------------


def _inspect_file(subject: str, path: Path, reader: Reader, limits: Limits, progress: Progress | None) -> Inspection:
    if not reader.size:
        raise DataError(path.name, "is empty (0 bytes).", why=_EXPECTED, next_step="Download or build it again.")
    if reader.read(0, 4) in {b"PK\x03\x04", b"PK\x05\x06"}:
        return _inspect_wheel(subject, path, reader, limits, progress)
    survey = Survey(path.name.partition(".")[0].removeprefix("lib"))
    named = by_path(path.name)
    survey.saw(path.name, reader.size)
    if progress is not None:
        progress(path.name, 0, reader.size)
    if not take_content(reader, path.name, named, survey, limits):
        raise DataError(
            path.name,
            "is neither a wheel nor a library, code object, fat binary or kernel pack.",
            why="A wheel begins with PK, a library with ELF, a fat binary with __CLANG_OFFLOAD_BUNDLE__ or CCOB.",
            next_step="Unpack archives of other kinds and give the folder.",
        )
    if progress is not None:
        progress(path.name, reader.size, reader.size)
    return _report(survey, subject, "file", path)


# -- a wheel -----------------------------------------------------------------------------------------------------------


def _inspect_wheel(subject: str, path: Path, reader: Reader, limits: Limits, progress: Progress | None) -> Inspection:
    survey = Survey(of_package=True)
    archive = Archive(reader, limits)
    for name, message, read in archive.problems:
        if read:
            survey.problem(name, message)
        else:
            survey.add_unread(name, 0, message)
    # The distribution's name decides what its own libraries are called: the metadata, often last, is read first.
    members = sorted(archive.members, key=lambda member: (not _DIST_INFO.match(member.name), member.header_at))
    total = sum(member.stored_size for member in members)
    done = 0
    for member in members:
        if progress is not None:
            progress(member.name, done, total)
        if not member.is_dir:
            survey.saw(member.name, member.size)
            try:
                _take_member(archive, member, survey, limits)
            except DataError as error:
                message = " ".join(filter(None, (error.message, error.why, error.next_step)))
                survey.add_unread(member.name, member.size, message)
        done += member.stored_size
    if progress is not None:
        progress(path.name, total, total)
    survey.read_bytes = archive.inflated_bytes
    return _report(survey, subject, "wheel", path)


def _take_member(archive: Archive, member: Member, survey: Survey, limits: Limits) -> None:
    named = by_path(member.name)
    if survey.wants_text(member.name):
        survey.add_text(member.name, archive.read(member, TEXT_MAX_BYTES).decode(errors="replace"))
    elif named is not None and named.kind in {"miopen-db", "aotriton-image"}:
        survey.add_named(member.name, member.size, named)
    else:
        take_content(archive.open(member), member.name, named, survey, limits)


# -- folders and packages ----------------------------------------------------------------------------------------------


def _inspect_folder(subject: str, path: Path, limits: Limits, progress: Progress | None) -> Inspection:
    survey = Survey(path.resolve().name)
    _take_files(list(walk(path, survey, limits)), survey, limits, progress)
    return _report(survey, subject, "directory", path)


def _take_files(found: Sequence[FoundFile], survey: Survey, limits: Limits, progress: Progress | None) -> None:
    total = sum(file.size for file in found)
    for file in found:
        if progress is not None:
            progress(file.relative, survey.seen_bytes, total)
        take_file(file, survey, limits)


def _inspect_package(
    name: str, limits: Limits, progress: Progress | None, search_path: Sequence[str] | None
) -> Inspection:
    looks_like_path = os.sep in name or name.endswith((".whl", ".so", ".co", ".hsaco"))
    package = None if looks_like_path else find_package(name, search_path)
    if package is not None:
        return _inspect_files(name, package, limits, progress)
    folder = None if looks_like_path else find_folder(name, search_path)
    if folder is not None:
        return _inspect_folder(name, folder, limits, progress)
    raise UsageError(
        "wheel inspect",
        f"there is no file or folder {name!r}{'' if looks_like_path else ' and no installed package of that name'}.",
        next_step="Give a wheel (`pip download --no-deps NAME` gets one), a folder, or an installed package.",
    )


def _inspect_files(name: str, package: InstalledPackage, limits: Limits, progress: Progress | None) -> Inspection:
    survey = Survey(of_package=True)
    survey.name, survey.version = package.name, package.version
    survey.own = "PyTorch" if package.name == "torch" else package.name
    found = []
    for relative in package.files:
        path = package.root / relative
        try:
            status = path.lstat()
        except (OSError, ValueError):
            survey.problem(relative, "is listed by the distribution but not there.")
            continue
        if stat.S_ISREG(status.st_mode):
            found.append(FoundFile(path, relative, status.st_size))
    _take_files(found, survey, limits, progress)
    return _report(survey, name, "package", package.root)
