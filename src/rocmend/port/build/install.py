"""A way to install what a project needs that never replaces PyTorch for ROCm, as a script to read and run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from rocmend.port.build.asked import Asked, Unread
from rocmend.port.build.audit import Audit
from rocmend.port.build.packages import Role, known

__all__ = ["InstallPlan", "LeftOut", "install_plan"]


class LeftOut(msgspec.Struct, frozen=True):
    """A requirement that is not installed, and why."""

    text: str
    reason: str
    source: str = ""


class InstallPlan(msgspec.Struct, frozen=True):
    """What is installed, in what order.

    Attributes:
        build: What builds need, installed before them, as they do not get an environment of their own.
        plain: Requirements that are installed with what they need, held to the PyTorch that is there.
        by_hand: Commands that a person chooses from: builds for ROCm that take time or depend on the GPU.
        left_out: What is not installed.
        options: Of the project's own install.
        folders: What is installed of the project itself, in order.
        unread: What was not read: what it asks for is not in the plan.
    """

    build: tuple[str, ...]
    plain: tuple[str, ...]
    by_hand: tuple[LeftOut, ...]
    left_out: tuple[LeftOut, ...]
    options: tuple[str, ...]
    folders: tuple[str, ...]
    unread: tuple[Unread, ...] = ()

    def script(self) -> str:
        """Return the plan as a script for sh."""
        return "\n".join(_script(self)) + "\n"


def install_plan(audit: Audit) -> InstallPlan:
    """Return the plan for a project in an environment."""
    build: list[str] = []
    plain: list[str] = []
    by_hand: list[LeftOut] = []
    left_out: list[LeftOut] = []
    folders: list[str] = []
    for one in audit.project.asked:
        package = known(one.name)
        role = package.role if package else None
        note, source = (package.note, package.source) if package else ("", "")
        if one.local:
            folders.append(one.local)
        elif role is Role.TORCH:
            left_out.append(LeftOut(one.text, "PyTorch for ROCm is installed first and must not be replaced", source))
        elif role in {Role.CUDA, Role.NONE, Role.PINS_TORCH}:
            left_out.append(LeftOut(one.text, note, source))
        elif one.optional:
            left_out.append(LeftOut(one.text, f"it belongs to the extra or group {one.optional!r}"))
        elif role in {Role.BUILD, Role.REPLACED}:
            by_hand.append(LeftOut(package.replacement or one.name if package else one.name, note, source))
        else:
            (build if one.build else plain).append(_without_cuda(one))
    options = ["--no-deps", "--no-build-isolation"]
    if any(finding.id == "AU13" for finding in audit.findings):
        options.append("--ignore-requires-python")
    return InstallPlan(
        _unique(build),
        _unique(plain),
        tuple(by_hand),
        tuple(left_out),
        tuple(options),
        _unique([*folders, *(["."] if audit.project.installable else [])]),
        audit.project.unread,
    )


def _unique(texts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _without_cuda(one: Asked) -> str:
    """Return a requirement without extras for CUDA."""
    if not any(extra.startswith("cuda") for extra in one.extras):
        return one.text
    head, _, tail = one.text.partition("[")
    kept = [extra for extra in one.extras if not extra.startswith("cuda")]
    return head + (f"[{','.join(kept)}]" if kept else "") + tail.partition("]")[2]


_CHECK = """import importlib.util, pathlib, re, sys
found = importlib.util.find_spec("torch")
if found is None or found.origin is None:
    sys.exit("No PyTorch is installed. Install PyTorch for ROCm first.")
text = pathlib.Path(found.origin).with_name("version.py").read_text(encoding="utf-8")
values = dict(re.findall(r"^(__version__|hip)\\b[^=\\n]*=\\s*[\\"']([^\\"']*)", text, re.M))
if not values.get("hip"):
    sys.exit("PyTorch %s is not for ROCm: torch.version.hip is None. Reinstall it." % values.get("__version__"))
print("torch==%s" % values["__version__"])"""

_HOLD = """import importlib.metadata as metadata
names = ("torch", "torchvision", "torchaudio", "triton", "pytorch-triton-rocm", "triton-rocm")
for name in names:
    try:
        print("%s==%s" % (name, metadata.version(name)))
    except metadata.PackageNotFoundError:
        pass"""


def _script(plan: InstallPlan) -> Iterator[str]:
    yield "#!/bin/sh"
    yield "# Installs the project's dependencies and keeps PyTorch for ROCm."
    yield "# Read it, then run it in the project's folder: PYTHON=/path/to/python sh install-rocm.sh"
    for file in plan.unread:
        yield f"# NOT READ, so its requirements are missing below: {_line(file.path)} {_line(file.reason)}"
    yield "set -eu"
    yield 'PYTHON="${PYTHON:-python3}"'
    yield ""
    yield "# PyTorch for ROCm must be installed first."
    yield from _python("before=", _CHECK)
    yield ""
    yield "# The installed versions are constraints below: pip stops rather than replace them."
    yield 'held="$(mktemp)"'
    yield "trap 'rm -f \"$held\"' EXIT"
    yield from _python("", _HOLD, '> "$held"')
    if plan.build:
        yield ""
        yield "# Build requirements: builds use this environment, as an isolated one would get PyTorch for CUDA."
        yield from _install(plan.build)
    if plan.plain:
        yield ""
        yield "# Dependencies. If pip stops over torch, install the package that needs another torch with --no-deps."
        yield from _install(plan.plain)
    if plan.by_hand:
        yield ""
        yield "# To be decided by hand:"
        for one in plan.by_hand:
            yield f"# {_line(one.reason)} ({one.source})"
            yield f'# "$PYTHON" -m pip install --no-deps --no-build-isolation {shlex.quote(one.text)}'
    if plan.left_out:
        yield ""
        yield "# Left out:"
        for one in plan.left_out:
            yield f"# {_line(one.text)}: {_line(one.reason)}{f' ({one.source})' if one.source else ''}"
    if plan.folders:
        yield ""
        yield "# The project itself, without dependencies."
    for folder in plan.folders:
        named = shlex.quote(folder if folder == "." else f"./{folder}")
        yield f'"$PYTHON" -m pip install {" ".join(plan.options)} -e {named}'
    yield ""
    yield "# PyTorch must be unchanged."
    yield from _python("after=", _CHECK)
    yield 'if [ "$before" != "$after" ]; then'
    yield '  echo "PyTorch was replaced: it was $before and is $after." >&2'
    yield "  exit 1"
    yield "fi"
    yield 'echo "PyTorch for ROCm is what it was: $after"'


def _python(target: str, program: str, redirect: str = "") -> Iterator[str]:
    quoted = "'" + program.replace("'", "'\"'\"'") + "'"
    if target:
        yield f'{target}"$("$PYTHON" -c {quoted})"'
    else:
        yield f'"$PYTHON" -c {quoted} {redirect}'


def _install(texts: tuple[str, ...]) -> Iterator[str]:
    yield '"$PYTHON" -m pip install -c "$held" \\'
    for number, text in enumerate(texts):
        yield f"  {shlex.quote(_line(text))}{' ' + chr(92) if number + 1 < len(texts) else ''}"


def _line(text: str) -> str:
    return " ".join(text.split())
