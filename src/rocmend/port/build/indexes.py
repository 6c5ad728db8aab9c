"""Whether a package comes from an index that serves ROCm builds: then its install is right as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

from rocmend.port.build.dependencies import Dependency, Where, installs
from rocmend.port.build.file import TextFile
from rocmend.port.build.kinds import Kind
from rocmend.port.build.shell import Command

__all__ = ["CUDA_INDEX", "Serves", "of_command", "serves", "settles"]

CUDA_INDEX = re.compile(
    r"https?://[^\s\"']*?(?:/whl/(?:nightly/|test/)?cu[0-9]+|(?<!/cpu/)torch_stable\.html|//pypi\.(?:ngc\.)?nvidia\.com)[^\s\"',;)]*"
)
"""The address of an index of CUDA wheels."""
_ROCM = re.compile(r"(?i)rocm|therock|(?:amd|radeon)\.com\b|gfx[0-9]")
_PYPI = re.compile(r"(?i)//(?:www\.)?pypi\.(?:org|python\.org)/")
_DEFAULT = "https://pypi.org/simple"


class Serves(StrEnum):
    """What the indexes that are in force serve."""

    OTHER = "other"
    ROCM = "rocm"
    BOTH = "both"
    """ROCm builds, next to the default index's CUDA builds: the newer release wins."""


class _Indexes(NamedTuple):
    """The indexes that are in force.

    Attributes:
        main: In place of the default index; empty where that is in force.
        extra: Others that are searched as well.
        first: Whether the extra ones come before the main one (uv), and not the newest release of all (pip).
        backend: What uv chooses PyTorch's index by.
    """

    main: str = ""
    extra: tuple[str, ...] = ()
    first: bool = False
    backend: str = ""

    def serves(self) -> Serves:
        """Tell what they serve."""
        if self.backend and (self.backend == "auto" or _ROCM.search(self.backend)):
            return Serves.ROCM
        every = (*self.extra, self.main or _DEFAULT)
        if any(CUDA_INDEX.search(one) for one in every) or not any(_ROCM.search(one) for one in every):
            return Serves.OTHER
        if self.first:
            holds = next(one for one in every if _ROCM.search(one) or _PYPI.search(one))
            return Serves.ROCM if _ROCM.search(holds) else Serves.OTHER
        return Serves.BOTH if any(_PYPI.search(one) for one in every) else Serves.ROCM


_MAIN = {"-i", "--index-url", "--default-index", "PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "index-url"}
_EXTRA = {"--extra-index-url", "--index", "-f", "--find-links", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"}
_EXTRA |= {"UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "extra-index-url", "find-links"}
_BACKEND = {"--torch-backend", "UV_TORCH_BACKEND", "torch-backend"}
_OPTION = re.compile(
    r"(?:(?<=[\s\"'])|^)(?P<name>-i|-f|--(?:extra-)?index-url|--find-links|(?:PIP|UV)_[A-Z_]+)"
    r"(?:[ \t]*[:=][ \t]*|[ \t]+)(?P<value>[^\s\"',]+)"
)
_CONFIGURED = re.compile(
    r"(?:\bpip[0-9.]* config set (?:--\w+ )?(?:global|install|user|site)\.|(?<![-\w.]))"
    r"(?P<name>(?:extra-)?index-url|find-links)(?:[ \t]*=[ \t]*|[ \t]+)[\"']?(?P<value>https?://[^\s\"'\\]+)"
)
_VARIABLE = re.compile(r"\$+[{(]?([A-Za-z_][A-Za-z0-9_]*)(?::?-[^})]*)?[})]?")
_DECLARES = {"", "export", "declare", "typeset", "readonly", "local"}


def _joined(pairs: Iterator[tuple[str, str]] | list[tuple[str, str]], *, first: bool = False) -> _Indexes:
    """Return what options and variables put in force, the later before the earlier."""
    main, backend = "", ""
    extra: list[str] = []
    for name, value in pairs:
        if name in _MAIN:
            main = value
        elif name in _EXTRA:
            extra += value.split()
        elif name in _BACKEND:
            backend = value
        elif name == "--no-index":
            main = "none"
    return _Indexes(main, tuple(extra), first, backend)


_of_files: WeakKeyDictionary[TextFile, dict[int, Serves]] = WeakKeyDictionary()
_WHOLE = -1


def serves(file: TextFile, dependency: Dependency) -> Serves:
    """Tell what the indexes serve that a dependency comes from.

    Args:
        file: The file.
        dependency: One of its own, not conda's.
    """
    if _ROCM.search(dependency.version):
        return Serves.ROCM  # 2.8.0+rocm6.4, or a wheel's own address
    if dependency.where is Where.COMMAND:
        command = file.command_at(dependency.start)
        found = of_command(file, command) if command is not None else Serves.OTHER
    else:
        found = _known(file).get(_WHOLE, Serves.OTHER)
    # Of one release, the build with a local version is the newer one for pip.
    exact = dependency.version.startswith("==") and "*" not in dependency.version
    return Serves.ROCM if found is Serves.BOTH and exact else found


def of_command(file: TextFile, command: Command) -> Serves:
    """Tell what the indexes serve that are in force for a command which installs packages."""
    return _known(file).get(command.start, Serves.OTHER)


def settles(file: TextFile, channels: tuple[str, ...], at: int) -> bool:
    """Tell whether conda gets its packages from a channel for ROCm.

    Args:
        file: The file.
        channels: Those of an environment file.
        at: Where the package stands, for a command's own.
    """
    command = file.command_at(at)
    found = installs(command) if command is not None else None
    named = [word.value for word in found[1]] if found else []
    after = [value for before, value in pairwise(named) if before in {"-c", "--channel"}]
    after += [value.partition("=")[2] for value in named if value.startswith("--channel=")]
    return any(_ROCM.search(channel) for channel in (*channels, *after))


def _known(file: TextFile) -> dict[int, Serves]:
    found = _of_files.get(file)
    if found is None:
        found = _of_files[file] = _read(file)
    return found


def _read(file: TextFile) -> dict[int, Serves]:
    """Return what is in force for each command that installs, by its place, and for the file as a whole."""
    if file.kind in {Kind.REQUIREMENTS, Kind.CONDA, Kind.INI}:
        return {_WHOLE: _joined(list(_options(file))).serves()}
    if file.kind is Kind.TOML:
        return {_WHOLE: _joined(list(_of_tables(file)), first=True).serves()}
    events = sorted(_events(file), key=lambda event: event[0])
    values: dict[str, str] = {}
    if file.yaml:  # a job's variables hold for its steps, wherever they are written
        values = {setting.name: setting.value for setting in file.settings}
    stage = dict(values)
    found: dict[int, Serves] = {}
    for at, name, value, command in events:
        if command is not None:
            found[at] = _of_install(command, stage, values)
        elif name == "FROM":
            stage.clear()
        else:
            stage[name] = values[name] = value
    return found


def _options(file: TextFile) -> Iterator[tuple[str, str]]:
    for line in file.lines.all:
        written = file.text[line.start : line.end].strip().removeprefix("- ")
        if written.startswith(("#", ";")):
            continue
        if "--no-index" in written:
            yield "--no-index", ""
        for match in _OPTION.finditer(written):
            yield match["name"], match["value"]
        for match in _CONFIGURED.finditer(written):
            yield match["name"], match["value"]


def _of_tables(file: TextFile) -> Iterator[tuple[str, str]]:
    """Yield the indexes that uv, Poetry and PDM get a project's requirements from."""
    for value in file.values:
        if value.keys[:1] != ("tool",) or not {"uv", "poetry", "pdm"}.intersection(value.keys[1:2]):
            continue
        if value.keys[-1] == "torch-backend":
            yield "torch-backend", value.text
        elif value.string and value.text.startswith(("http:", "https:")) and "urls" not in value.keys:
            yield "extra-index-url", value.text


def _events(file: TextFile) -> Iterator[tuple[int, str, str, Command | None]]:
    """Yield what sets an index or a variable, and the commands that install, with their places."""
    for step in file.instructions:
        if step.keyword == "FROM":
            yield step.start, "FROM", "", None
    for setting in file.settings:
        command = file.command_at(setting.start)
        if command is None or command.name in _DECLARES:
            yield setting.start, setting.name, setting.value, None
    for match in _CONFIGURED.finditer(file.text):
        if not file.text[file.lines.at(match.start()).start : match.start()].lstrip().startswith("#"):
            yield match.start(), match["name"], match["value"], None
    for command in file.commands:
        if installs(command) is not None:
            yield command.start, "", "", command


def _of_install(command: Command, stage: dict[str, str], values: dict[str, str]) -> Serves:
    known = installs(command)
    if known is None:
        return Serves.OTHER
    pairs = [(name, value) for name, value in stage.items() if name in _MAIN or name in _EXTRA or name in _BACKEND]
    pairs += [(word.value.partition("=")[0], word.value.partition("=")[2]) for word in command.assignments]
    words = [word.value for word in known[1]]
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == "--no-index":
            pairs.append((name, ""))
        elif equals or number + 1 == len(words):
            pairs.append((name, value))
        else:
            pairs.append((name, words[number + 1]))
    told = [(name, _VARIABLE.sub(lambda one: values.get(one[1], one[0]), value)) for name, value in pairs]
    return _joined(told, first=any(word.value == "uv" for word in command.words)).serves()
