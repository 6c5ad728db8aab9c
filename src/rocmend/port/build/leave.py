"""Leaving a package out of what is installed for ROCm, in whatever way its file asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from rocmend.core.records import Severity
from rocmend.port.build.dependencies import Dependency, Where, installs, labelled_build, parsed
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import commented, note, rewrite, without
from rocmend.port.build.indexes import Serves, of_command, serves
from rocmend.port.build.kinds import Kind
from rocmend.port.build.packages import Role, known
from rocmend.port.build.shell import Command
from rocmend.port.records import Edit, Outcome
from rocmend.port.rule import Found

__all__ = ["KINDS", "PLAN", "dependencies", "emptied", "left_out", "never_on_rocm", "pinned"]

KINDS = (
    Kind.REQUIREMENTS,
    Kind.TOML,
    Kind.INI,
    Kind.CONDA,
    Kind.SHELL,
    Kind.DOCKERFILE,
    Kind.MAKE,
    Kind.WORKFLOW,
    Kind.YAML,
)
"""The kinds of files that packages are asked for in."""

PLAN = "Install the project with --no-deps, and its dependencies with the install plan, which omits this one."


_NOTHING_RUNS = {Role.REPLACED, Role.NONE}
_NEVER_FOR_ROCM = {Role.CUDA, Role.NONE}
_known_empty: WeakKeyDictionary[TextFile, dict[tuple[int, int], bool]] = WeakKeyDictionary()


def pinned(dependency: Dependency) -> bool:
    """Tell whether a requirement can turn down the torch that is installed, so that another one replaces it."""
    return dependency.version.startswith(("==", "~=", "<", "@", "===", "(", "=")) or ",<" in dependency.version


def never_on_rocm(role: Role, version: str) -> str:
    """Return what to do about a requirement of a project's metadata that no install for ROCm can serve; else nothing.

    Args:
        role: What becomes of the package.
        version: What is required of it.
    """
    if role is Role.TORCH and labelled_build(version):
        return "Require it without the label behind the +: a ROCm build of that release is then accepted."
    return "Make it optional (an extra): nothing of that name runs on AMD GPUs." if role in _NOTHING_RUNS else ""


def dependencies(file: TextFile, *roles: Role) -> Iterator[Dependency]:
    """Yield the dependencies of some roles; conda's own and those of a build are other rules' matter.

    What comes from an index for ROCm is right as it is.
    """
    for dependency in file.dependencies:
        package = known(dependency.name)
        if package is None or package.role not in roles or dependency.where in {Where.CONDA, Where.BUILD}:
            continue
        if package.role in _NEVER_FOR_ROCM or serves(file, dependency) is not Serves.ROCM:
            yield dependency


def left_out(  # noqa: PLR0913  what is said has as many parts as it has
    file: TextFile,
    dependency: Dependency,
    message: str,
    why: str,
    *,
    severity: Severity,
    outcome: Outcome = Outcome.AUTO,
) -> Found:
    """Return what is said of a dependency that is left out for ROCm.

    Args:
        file: The file.
        dependency: It.
        message: What is wrong with it.
        why: The reason that is written beside it, in a line.
        severity: How much it matters.
        outcome: What is done where the file has room for it.
    """
    place = (dependency.start, dependency.end)
    if dependency.where is Where.PROJECT:
        package = known(dependency.name)
        remedy = never_on_rocm(package.role, dependency.version) if package and not dependency.optional else ""
        if remedy:
            return Found(*place, message, (), Outcome.MANUAL, severity, remedy)
        return note(place, message, PLAN, severity)
    if dependency.where is Where.COMMAND:
        edits = _from_command(file, dependency)
        remedy = "On ROCm do not run this command, or omit this package."
    else:
        edits = commented(file, *dependency.whole, why)
        package = known(dependency.name)
        replaced = package is not None and package.role is Role.REPLACED
        remedy = "Omit it from the list for ROCm." if replaced else PLAN
    return rewrite(
        file, place, message, edits, remedy=remedy, outcome=outcome, severity=severity, otherwise=Outcome.NOTE
    )


def emptied(file: TextFile, command: Command) -> bool:
    """Tell whether nothing is left to install by a command once what does not serve ROCm is left out."""
    found = installs(command)
    if found is None or found[0] != "pip" or of_command(file, command) is not Serves.OTHER:
        return False
    operands = [word.value for word in found[1] if not word.value.startswith("-")]
    lists = any(word.value in {"-r", "-e", "--requirement", "--editable"} for word in found[1])
    return bool(operands) and not lists and all(_goes(value) for value in operands if not _is_value(value))


def _is_value(operand: str) -> bool:
    """Tell whether an operand is an option's value rather than a package: an index, a folder."""
    return operand.startswith(("http:", "https:")) and not operand.endswith(".whl")


def _goes(operand: str) -> bool:
    requirement = parsed(operand)
    package = known(requirement[0]) if requirement and "rocm" not in requirement[2] else None
    return package is not None and package.role in {
        Role.TORCH,
        Role.CUDA,
        Role.NONE,
        Role.PINS_TORCH,
        Role.REPLACED,
    }


def _from_command(file: TextFile, dependency: Dependency) -> tuple[Edit, ...]:
    command = file.command_at(dependency.start)
    if command is None:
        return ()
    known_ones = _known_empty.setdefault(file, {})  # a command may install a hundred thousand packages
    place = command.start, command.end
    if place not in known_ones:
        known_ones[place] = emptied(file, command)
    if known_ones[place]:
        return (Edit(command.start, command.end, b"true"),)
    return (without(file, dependency.start, dependency.end),)
