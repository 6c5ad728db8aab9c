"""Writing environment settings in the syntax of a shell or of a tool that starts programs."""

from __future__ import annotations

import itertools
import re
import shlex
import textwrap
from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from rocmend.core.errors import UsageError


class Action(StrEnum):
    """What is done with a variable."""

    SET = "set"
    PREPEND = "prepend"
    UNSET = "unset"


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One variable, why, and who says so.

    Attributes:
        name: The variable.
        value: Its value, or what is put before its old value.
        action: What is done with it.
        why: One line.
        entry_id: The knowledge entry it comes from.
        source: Title and address of who says so.
        optional: Worth measuring, not known to help here: written commented out.
        also: What other entries say of the same variable.
        step: Which step it belongs to, where steps are taken one after the other and not at once.
    """

    name: str
    value: str
    action: Action
    why: str
    entry_id: str
    source: str = ""
    optional: bool = False
    also: tuple[str, ...] = ()
    step: str = ""


_WIDTH = 76
_OPTIONAL = "Optional: worth measuring here; take the # away to use a line"
_LATER = "Later: take the # away once what stands above a line is done"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _bash(line: Line) -> str:
    if line.action is Action.UNSET:
        return f"unset {line.name}"
    value = shlex.quote(line.value)
    if line.action is Action.PREPEND:
        return f"export {line.name}={value}${{{line.name}:+:${line.name}}}"
    return f"export {line.name}={value}"


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish(line: Line) -> str:
    if line.action is Action.UNSET:
        return f"set -e {line.name}"
    if line.action is Action.PREPEND:
        # fish keeps variables named …PATH as lists; joining with --path writes them back with colons.
        return f"set -gx --path {line.name} {_fish_quote(line.value)} ${line.name}"
    return f"set -gx {line.name} {_fish_quote(line.value)}"


def _powershell(line: Line) -> str:
    if line.action is Action.UNSET:
        return f"Remove-Item Env:{line.name} -ErrorAction SilentlyContinue"
    value = "'" + line.value.replace("'", "''") + "'"
    if line.action is Action.PREPEND:
        return f"$env:{line.name} = {value} + [IO.Path]::PathSeparator + $env:{line.name}"
    return f"$env:{line.name} = {value}"


def _double_quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


def _docker(line: Line) -> str:
    if line.action is Action.UNSET:
        # An empty value is a value, which programs and the runtime read; a Dockerfile cannot unset.
        return (
            f"# (leave {line.name} out of the image; where the base image sets it,\n"
            f"# `unset {line.name}` in the entrypoint)"
        )
    if line.action is Action.PREPEND:
        return f'ENV {line.name}={_double_quote(line.value)[:-1]}:${{{line.name}}}"'
    return f"ENV {line.name}={_double_quote(line.value)}"


def _k8s(line: Line) -> str:
    import json

    if line.action is Action.UNSET:
        return f"# (leave {line.name} out of env and of the image)"
    if line.action is Action.PREPEND:
        return f"# (put {line.value} before {line.name} in the image: a pod's env cannot extend a variable)"
    return f"- name: {line.name}\n  value: {json.dumps(line.value)}"


def _systemd(line: Line) -> str:
    if line.action is Action.UNSET:
        return f"UnsetEnvironment={line.name}"
    if line.action is Action.PREPEND:
        return f"# (put {line.value} before {line.name} in a wrapper script: Environment= cannot extend a variable)"
    value = line.value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'Environment="{line.name}={value}"'


class _Shell(msgspec.Struct, frozen=True):
    """How one target is written: a line, what stands above all lines, and the indentation below that."""

    write: Callable[[Line], str]
    head: tuple[str, ...] = ()
    indent: str = ""


_SHELLS: dict[str, _Shell] = {
    "bash": _Shell(_bash),
    "fish": _Shell(_fish),
    "powershell": _Shell(_powershell),
    "docker": _Shell(
        _docker,
        (
            "# Lines for a Dockerfile. The container also needs the devices:",
            "#   docker run --device=/dev/kfd --device=/dev/dri --group-add video --group-add render --ipc=host IMAGE",
        ),
    ),
    "k8s": _Shell(
        _k8s, ("# For a container in a pod; the GPU itself comes with resources.limits amd.com/gpu: 1.", "env:"), "  "
    ),
    "systemd": _Shell(_systemd, ("# A drop-in: systemctl edit NAME.service", "[Service]")),
}

SHELLS = tuple(_SHELLS)
"""Names that ``write`` knows."""

CONTAINERS = frozenset({"docker", "k8s"})
"""Those that start a container."""
IMAGES = frozenset({"docker", "k8s", "systemd"})
"""Those that start a program in an environment that is not the one we see."""


def write(lines: Sequence[Line], shell: str, *, title: str) -> str:
    """Return settings as text to be sourced or pasted.

    Args:
        lines: The settings, in order.
        shell: One of ``SHELLS``.
        title: A comment at the top: which machine, which workload.

    Raises:
        UsageError: A shell or variable name that can't be written.
    """
    if shell not in _SHELLS:
        raise UsageError("env", f"expected one of {', '.join(SHELLS)}, got {shell!r}.")
    form = _SHELLS[shell]
    out = [f"# {_one_line(title)}", *form.head]
    firm = [line for line in lines if not line.optional]
    later = [line for line in lines if line.optional and line.action is Action.UNSET]
    optional = [line for line in lines if line.optional and line not in later]
    body: list[str] = []
    if not lines:
        body.append("# nothing to set: no entry has a setting for this machine and workload")
    elif not firm:
        body += ["", "# Nothing has to be set."]
    body += [text for line in firm for text in _with_comment(line, form.write(line))]
    if later:
        body += ["", f"# --- {_LATER} ---"]
        body += [text for line in later for text in _with_comment(line, form.write(line))]
    if optional:
        body += ["", f"# --- {_OPTIONAL} ---"]
        for before, line in itertools.pairwise((None, *optional)):
            if line is not None:
                goes_on = _in_same_step(before, line)
                body += ["", *_comment(line.step)] if line.step and not goes_on else []
                body += _with_comment(line, form.write(line), cited=not goes_on)
    return "\n".join([*out, *(form.indent + text if text else text for text in body)]) + "\n"


def _in_same_step(before: Line | None, line: Line) -> bool:
    return before is not None and bool(line.step) and (before.entry_id, before.step) == (line.entry_id, line.step)


def _with_comment(line: Line, text: str, *, cited: bool = True) -> list[str]:
    if not _NAME.match(line.name):
        raise UsageError("env", f"{line.name!r} is no name of an environment variable.")
    comments = [line.why, *(_cited(line) if cited else ()), *line.also]
    out = [] if line.step else [""]
    out += [row for comment in comments if comment for row in _comment(comment)]
    rows = text.split("\n")
    return out + ([row if row.startswith("#") else f"# {row}" for row in rows] if line.optional else rows)


def _cited(line: Line) -> tuple[str, str]:
    """Return who says so, and on a row of its own where."""
    title, found, place = line.source.partition(", http")
    url, _, date = place.partition(", ")
    source = ", ".join(part for part in (title, date) if part)
    return (
        f"Source: {source} ({line.entry_id})" if source else f"Source: {line.entry_id}",
        f"http{url}" if found else "",
    )


def _comment(text: str) -> list[str]:
    """Return a text as rows of a comment; a word that is too long, such as an address, has a row of its own."""
    rows = textwrap.wrap(_one_line(text), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return [f"# {row}" for row in rows]


def _one_line(text: str) -> str:
    """Keep a comment a comment, whatever stands in the data."""
    return " ".join(text.split())
