"""Phase 0 of a port: what is wrong with an environment and with what a project wants installed, before anything is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocmend.core.records import Severity
from rocmend.port.build.asked import Asked, Project, project
from rocmend.port.build.dependencies import canonical, labelled_build
from rocmend.port.build.environment import Environment, environment
from rocmend.port.build.packages import Role, known

__all__ = ["Audit", "AuditFinding", "audit", "findings"]

PYTORCH = "https://pytorch.org/get-started/locally/"
LOCAL = "https://packaging.python.org/en/latest/specifications/version-specifiers/#local-version-identifiers"


class AuditFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that is wrong, or worth knowing, before anything is installed.

    Attributes:
        id: AU01 …, stable.
        severity: How much it matters.
        message: What it is.
        remedy: What to do.
        source: Who says so, or the file and line it was read from.
    """

    id: str
    severity: Severity
    message: str
    remedy: str = ""
    source: str = ""


class Audit(msgspec.Struct, frozen=True):
    """An environment and a project's wishes, judged.

    Attributes:
        environment: What is installed.
        project: What the project asks for.
        findings: The most severe first.
    """

    environment: Environment
    project: Project
    findings: tuple[AuditFinding, ...]


def audit(root: Path, python: str | Path, *, time_limit_s: float = 30.0) -> Audit:
    """Judge the environment of an interpreter for the project in a folder; nothing is installed or imported.

    Raises:
        UsageError: The interpreter cannot be asked.
    """
    wants = project(root)
    have = environment(python, time_limit_s=time_limit_s)
    return Audit(have, wants, tuple(findings(have, wants)))


def findings(have: Environment, wants: Project) -> list[AuditFinding]:
    """Return what is wrong, the most severe first."""
    made = [
        *_unread(wants),
        *_torch(have),
        *_installed(have),
        *_asked(have, wants),
        *_variables(have),
        *_interpreter(have, wants),
    ]
    return sorted(made, key=lambda one: (one.severity.rank, one.id, one.message))


def _unread(wants: Project) -> Iterator[AuditFinding]:
    for one in wants.unread:
        message = f"Not read: {one.path} {one.reason}. Its requirements are unknown and not in the plan."
        yield AuditFinding(
            "AU16", Severity.WARNING, message, "Check it for torch and CUDA before you install.", one.path
        )


def _torch(have: Environment) -> Iterator[AuditFinding]:
    torch = have.torch
    install = "Install PyTorch for ROCm first, from the index for your GPU; then everything else with the plan."
    if not torch.folder:
        yield AuditFinding("AU01", Severity.ERROR, "No PyTorch is installed.", install, PYTORCH)
    elif not torch.hip:
        kind = f"CUDA {torch.cuda}" if torch.cuda else "the CPU"
        message = f"PyTorch {torch.version} is a build for {kind}: {torch.folder}."
        yield AuditFinding("AU02", Severity.ERROR, message, f"Uninstall it. {install}", PYTORCH)
    listed = [one for one in have.packages if canonical(one.name) == "torch"]
    versions = {one.version for one in listed}
    if torch.folder and (len(listed) > 1 or (versions and torch.version and torch.version not in versions)):
        places = ", ".join(f"{one.version} in {one.place}" for one in listed)
        message = (
            f"The PyTorch that is imported is {torch.version} in {torch.folder}; the installed packages are: {places}."
        )
        remedy = "Uninstall all of them, delete the remaining folder, and install one."
        yield AuditFinding("AU03", Severity.ERROR, message, remedy, torch.folder)


def _installed(have: Environment) -> Iterator[AuditFinding]:
    for_rocm = bool(have.torch.hip)
    names = [canonical(one.name) for one in have.packages]
    cuda = sorted({name for name in names if (package := known(name)) and package.role is Role.CUDA})
    if cuda and for_rocm:
        message = f"CUDA libraries are installed next to PyTorch for ROCm: {', '.join(cuda)}."
        yield AuditFinding("AU04", Severity.WARNING, message, f"pip uninstall {' '.join(cuda)}", have.prefix)
    for one in have.packages:
        for line in one.asks:
            wrong = _turned_down(line, have)
            if wrong:
                message = f"{one.name} {one.version} requires {line}; {wrong} is installed."
                remedy = f"Install a release of {one.name} that was built for this one, with --no-deps."
                yield AuditFinding("AU05", Severity.WARNING, message, remedy, one.place)
    if "triton" in names and for_rocm and any(name.startswith("pytorch-triton-rocm") for name in names):
        message = "triton and pytorch-triton-rocm are both installed; they write to the same folder."
        yield AuditFinding(
            "AU06", Severity.WARNING, message, "Uninstall both, and install pytorch-triton-rocm.", have.prefix
        )


def _turned_down(line: str, have: Environment) -> str:
    """Return the installed version of a package that a requirement does not accept; empty where it does."""
    try:
        requirement = Requirement(line[:_LONGEST_REQUIREMENT])
        if requirement.marker is not None and not _holds(requirement, have):
            return ""
    except (ValueError, RecursionError):  # none, or one with brackets or numbers that no real one has
        return ""
    for one in have.packages:
        if canonical(one.name) == canonical(requirement.name) and one.version:
            try:
                return "" if requirement.specifier.contains(Version(one.version), prereleases=True) else one.version
            except ValueError:
                return ""
    return ""


def _holds(requirement: Requirement, have: Environment) -> bool:
    version = ".".join(have.python.split(".")[:2])
    values = {"python_version": version, "python_full_version": have.python, "extra": ""}
    return requirement.marker is None or requirement.marker.evaluate(values)


def _asked(have: Environment, wants: Project) -> Iterator[AuditFinding]:
    for one in wants.asked:
        package = known(one.name)
        where = f"{one.path}:{one.line}"
        if package is None:
            continue
        if package.role is Role.TORCH and not one.build:
            yield from _of_torch(one, have, where)
        elif package.role is Role.TORCH:
            message = f"The build requires {one.text}, and pip reinstalls it for the build: the CUDA build."
            yield AuditFinding("AU09", Severity.WARNING, message, "Install with --no-build-isolation.", where)
        elif package.role in {Role.PINS_TORCH, Role.NONE, Role.CUDA}:
            message = f"{one.text} is not in the plan. {package.note}"
            yield AuditFinding("AU10", Severity.WARNING, message, "", f"{where}; {package.source}")
        elif package.role in {Role.BUILD, Role.REPLACED}:
            message = f"{one.text} needs a ROCm build. {package.note}"
            yield AuditFinding("AU11", Severity.ADVICE, message, "", f"{where}; {package.source}")
    for one in wants.asked:
        cuda = [extra for extra in one.extras if extra.startswith("cuda")]
        if cuda:
            message = f"{one.text} installs CUDA libraries through its extra {cuda[0]}; the plan omits the extra."
            yield AuditFinding("AU10", Severity.WARNING, message, "", f"{one.path}:{one.line}")


def _of_torch(one: Asked, have: Environment, where: str) -> Iterator[AuditFinding]:
    wrong = _turned_down(one.text, have)
    if wrong:
        message = f"The project requires {one.text}, which excludes the installed {wrong}."
        build = "the release on the ROCm index that its file names" if one.rocm else "a CUDA build"
        remedy = f"pip would replace it with {build}: install without {one.name}, as the plan does."
        yield AuditFinding("AU07", Severity.ERROR, message, remedy, f"{where}; {LOCAL}")
    elif not have.torch.folder and not one.rocm:
        build = labelled_build(one.text) or "a CUDA build on the default index"
        message = f"The project requires {one.text}, which is {build}."
        yield AuditFinding("AU08", Severity.WARNING, message, "Install PyTorch for ROCm first.", where)


_LONGEST_REQUIREMENT = 4000  # what is cut is none
_HARMFUL = (
    (
        r"TORCHINDUCTOR_MAX_AUTOTUNE\w*",
        r"(?!0$|$).*",
        "makes torch.compile's default mode autotune for minutes.",
        "Unset it.",
    ),
    (
        r"PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF",
        r"(?=.*max_split_size_mb)(?=.*expandable_segments:\s*[Tt]rue).*",
        "limits block splitting in expandable segments, which was seen to lose memory and data.",
        "Leave max_split_size_mb out.",
    ),
    (
        r"(?:PIP|UV)_(?:EXTRA_)?INDEX_URL|PIP_FIND_LINKS|UV_FIND_LINKS",
        r".*/cu1[0-9]+.*",
        "is an index of CUDA wheels, which every install searches.",
        "Unset it.",
    ),
    (
        r"HSA_OVERRIDE_GFX_VERSION",
        r".+",
        "makes the GPU report another gfx target.",
        "Unset it unless no build supports your GPU.",
    ),
)


def _variables(have: Environment) -> Iterator[AuditFinding]:
    for name, value in have.variables.items():
        for pattern, content, why, remedy in _HARMFUL:
            if re.fullmatch(pattern, name) and re.fullmatch(content, value):
                yield AuditFinding("AU12", Severity.WARNING, f"{name}={value} {why}", remedy, "the environment")


def _interpreter(have: Environment, wants: Project) -> Iterator[AuditFinding]:
    if wants.requires_python and not _accepts(wants.requires_python, have.python):
        message = f"The project requires Python {wants.requires_python}; this is {have.python}."
        remedy = "Use such a Python, or install with --ignore-requires-python, like the plan, and test."
        yield AuditFinding("AU13", Severity.WARNING, message, remedy, "pyproject.toml")
    if have.managed and not have.virtual:
        message = "The interpreter belongs to the system, which does not allow pip installs."
        yield AuditFinding(
            "AU14", Severity.ERROR, message, "Create a virtual environment.", "https://peps.python.org/pep-0668/"
        )
    for problem in have.problems:
        yield AuditFinding(
            "AU15", Severity.WARNING, f"Not all installed packages could be read: {problem}", "", have.prefix
        )


def _accepts(specifier: str, version: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(Version(version), prereleases=True)
    except ValueError:  # no version, or one with a number of thousands of digits
        return True
