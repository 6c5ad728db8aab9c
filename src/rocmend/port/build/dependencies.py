"""Packages that a file asks for, whatever its kind: requirements, project metadata, conda, ``pip install``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from rocmend.port.build import shell
from rocmend.port.build.kinds import Kind

if TYPE_CHECKING:
    from rocmend.port.build.file import TextFile

__all__ = ["Dependency", "Where", "canonical", "installs", "labelled_build", "of_command", "parsed"]


class Where(StrEnum):
    """What asks for a package."""

    REQUIREMENTS = "requirements"
    PROJECT = "project"
    BUILD = "build"
    CONDA = "conda"
    COMMAND = "command"


class Dependency(NamedTuple):
    """A package that is asked for.

    Attributes:
        name: In its canonical form: small letters, dashes.
        extras: In small letters.
        version: The specifier, a URL after ``@``, or nothing: as it is written, without a marker.
        start: Of the requirement.
        end: After it.
        whole: The place of what is to be left out with it: a line, an item, a word of a command.
        where: What asks for it.
        optional: Whether the project installs without it: an extra, a group for development.
    """

    name: str
    extras: tuple[str, ...]
    version: str
    start: int
    end: int
    whole: tuple[int, int]
    where: Where
    optional: bool = False


_LABEL = re.compile(r"\+((?:cu\d|cpu)\w*)")
_SPECIFIER = r"(?:[<>=!~]=?=?|===)[ \t]*[^;#\s]*"
_REQUIREMENT = re.compile(
    r"[ \t]*(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)[ \t]*(?:\[(?P<extras>[^\]]*)\])?[ \t]*"
    rf"(?P<version>\(?[ \t]*{_SPECIFIER}(?:[ \t]+{_SPECIFIER})*\)?|@[ \t]*[^\s;]+)?[ \t]*"
    r"(?P<rest>;[^#\r\n]*|--hash\S*|\\|\#.*)?"
)
_CONDA = re.compile(
    r"(?:[A-Za-z0-9_.-]+::)?(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?[ \t]*(?P<version>[=<>!~][^\s#]*)?"
)
_URL = re.compile(r"(?:git\+)?https?://[^\s#]*?/(?P<name>[A-Za-z0-9][A-Za-z0-9_]*)-[0-9][^/\s]*\.whl")
_PROJECT_LISTS = {
    ("project", "dependencies"),
    ("tool", "uv", "dev-dependencies"),
    ("tool", "pdm", "dev-dependencies"),
}
_INI_LISTS = {"install_requires", "setup_requires", "requires", "deps"}


def canonical(name: str) -> str:
    """Return a package's name as indexes compare it (https://packaging.python.org/specifications/name-normalization/)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def labelled_build(version: str) -> str:
    """Return which build of PyTorch a version asks for by its label, in words; empty where it does not.

    Only PyTorch's own indexes have such releases, and no ROCm build satisfies the label.
    """
    label = _LABEL.search(version)
    if label is None:
        return ""
    return f"a {'CPU' if label[1].startswith('cpu') else 'CUDA'} build (+{label[1]})"


def parsed(text: str) -> tuple[str, tuple[str, ...], str] | None:
    """Return a requirement's name, extras and version; None where it is none."""
    match = _REQUIREMENT.match(text)
    if match is None or match.end() < len(text.rstrip()):
        url = _URL.match(text.strip())
        return (canonical(url.group("name")), (), text.strip()) if url else None
    extras = tuple(sorted(part.strip().lower() for part in (match.group("extras") or "").split(",") if part.strip()))
    return canonical(match.group("name")), extras, (match.group("version") or "").strip()


def dependencies(file: TextFile) -> Iterator[Dependency]:
    """Yield the packages that a file asks for."""
    if file.kind is Kind.REQUIREMENTS:
        yield from _of_requirements(file)
    elif file.kind is Kind.TOML:
        yield from _of_toml(file)
    elif file.kind is Kind.INI:
        for row in file.rows:
            if row.section.startswith("options.extras_require") or row.key in _INI_LISTS:
                where = Where.BUILD if row.key == "setup_requires" else Where.PROJECT
                optional = row.section.startswith("options.extras_require")
                yield from _made(row.text, row.start, row.end, (row.start, row.end), where, optional=optional)
    else:
        if file.kind is Kind.CONDA:
            yield from _of_conda(file)
        for command in file.commands:
            yield from of_command(command)


def _made(  # noqa: PLR0913  a dependency has as many parts
    text: str, start: int, end: int, whole: tuple[int, int], where: Where, *, optional: bool = False
) -> Iterator[Dependency]:
    known = parsed(text)
    if known is not None:
        yield Dependency(*known, start, end, whole, where, optional)


def _of_requirements(file: TextFile) -> Iterator[Dependency]:
    at = 0
    lines = file.lines.all
    while at < len(lines):
        first = at
        while file.text[lines[at].start : lines[at].end].rstrip().endswith("\\") and at + 1 < len(lines):
            at += 1
        line, last = lines[first], lines[at]
        at += 1
        written = file.text[line.start : line.end]
        bare = re.sub(r"(?:^|[ \t])#.*", "", written).rstrip().removesuffix("\\").split(" --", 1)[0].rstrip()
        if not bare.strip() or bare.lstrip().startswith("-"):
            continue
        start = line.start + len(bare) - len(bare.lstrip())
        yield from _made(bare.strip(), start, line.start + len(bare), (line.start, last.end), Where.REQUIREMENTS)


def _of_toml(file: TextFile) -> Iterator[Dependency]:
    for value in file.values:
        keys = value.keys
        place = (value.start, value.end)
        listed = (
            keys in _PROJECT_LISTS
            or keys[:2] == ("project", "optional-dependencies")
            or keys[:1] == ("dependency-groups",)
        )
        if keys == ("build-system", "requires") and value.string:
            yield from _made(value.text, *place, place, Where.BUILD)
        elif listed and value.string and "include-group" not in keys:
            optional = keys != ("project", "dependencies")
            yield from _made(value.text, *place, place, Where.PROJECT, optional=optional)
        elif keys[:2] == ("tool", "poetry") and "dependencies" in keys:
            name = keys[keys.index("dependencies") + 1 :]
            if len(name) == 1 or (len(name) == 2 and name[1] == "version"):
                yield Dependency(canonical(name[0]), (), value.text, *place, place, Where.PROJECT)


def _of_conda(file: TextFile) -> Iterator[Dependency]:
    for entry in file.yaml:
        if entry.key or not entry.item or not entry.keys or entry.keys[0] != "dependencies":
            continue
        line = file.lines.all[entry.line]
        whole = (line.start, line.end)
        if "pip" in entry.keys:
            yield from _made(entry.value, entry.start, entry.end, whole, Where.REQUIREMENTS)
        elif match := _CONDA.match(entry.value):
            yield Dependency(
                canonical(match.group("name")),
                (),
                match.group("version") or "",
                entry.start,
                entry.end,
                whole,
                Where.CONDA,
            )


def installs(command: shell.Command) -> tuple[str, tuple[shell.Word, ...]] | None:
    """Return the tool and the arguments of a command that installs packages: ``pip`` or ``conda``; None for others."""
    words = command.words
    begins = len(command.assignments)
    while begins < len(words) and words[begins].value in {"sudo", "uv", "time", "exec"}:
        begins += 1
    words = words[begins:]
    values = [word.value for word in words]
    if len(values) > 2 and re.match(r"(?:.*/)?python[0-9.]*\Z", values[0]) and values[1] == "-m":
        values, words = values[2:], words[2:]
    if len(values) < 2:
        return None
    tool = values[0].rpartition("/")[2]
    if re.match(r"pip[0-9.]*\Z", tool) and "install" in values[1:3]:
        return "pip", words[values.index("install") + 1 :]
    if tool in {"conda", "mamba", "micromamba"} and values[1] in {"install", "create"}:
        return "conda", words[2:]
    return None


_VALUED = {
    "-r",
    "-c",
    "-i",
    "-f",
    "-e",
    "-t",
    "--requirement",
    "--constraint",
    "--index-url",
    "--extra-index-url",
    "--find-links",
    "--target",
}
_VALUED |= {
    "--prefix",
    "--root",
    "--src",
    "--editable",
    "-n",
    "--name",
    "-p",
    "--channel",
    "--platform",
    "--python-version",
    "--no-binary",
}
_VALUED |= {
    "--only-binary",
    "--config-settings",
    "-C",
    "--cache-dir",
    "--timeout",
    "--retries",
    "--trusted-host",
    "--proxy",
    "--log",
    "--index",
    "--default-index",
    "--index-strategy",
    "--torch-backend",
    "--python",
}


def of_command(command: shell.Command) -> Iterator[Dependency]:
    """Yield the packages that a command installs."""
    found = installs(command)
    if found is None or command.settled:
        return
    tool, words = found
    skip = False
    for word in words:
        if skip or word.value.startswith("-"):
            skip = (
                not skip
                and (word.value in _VALUED or (tool == "conda" and word.value == "-c"))
                and "=" not in word.value
            )
            continue
        if word.value.startswith((".", "/", "$", "{")):
            continue
        if tool == "pip":
            yield from _made(word.value, word.start, word.end, (word.start, word.end), Where.COMMAND)
        elif match := _CONDA.match(word.value):
            yield Dependency(
                canonical(match.group("name")),
                (),
                match.group("version") or "",
                word.start,
                word.end,
                (word.start, word.end),
                Where.CONDA,
            )
