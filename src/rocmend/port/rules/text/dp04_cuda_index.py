"""An index of CUDA wheels.

## What it does

Finds addresses of package indexes that hold builds for one CUDA release: `…/whl/cu121`, `…/torch_stable.html`,
NVIDIA's own.

## Why it matters

An extra index is searched in every install, so any later requirement that torch does not meet brings a build for CUDA.

## Use instead

PyTorch's index for ROCm, whose address ends in `rocm` and a release instead of `cu` and a release, used once, for
torch. The lists that are written for ROCm have no such line, as torch is not in them either.

## Fix safety

Safe in lists of requirements and shell scripts: the line or option is left out for ROCm. A project's metadata is only
reported: an index there is part of its lock file.

## References

- <https://pytorch.org/get-started/locally/>
- <https://docs.astral.sh/uv/guides/integration/pytorch/>
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rocmend.core.records import Severity
from rocmend.port.build.dependencies import installs
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import commented, note, rewrite, without
from rocmend.port.build.indexes import CUDA_INDEX
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.leave import KINDS, emptied
from rocmend.port.build.shell import Command
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_REMEDY = "Install the ROCm build of torch first, from PyTorch's ROCm index, and nothing from a CUDA index."


@rule(
    "DP04",
    "Index of CUDA wheels",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.AUTO,
    triggers=(b"/whl/", b"torch_stable", b"nvidia.com"),
    paths=paths(*KINDS),
    sources=("https://pytorch.org/get-started/locally/",),
    valid=(
        "--extra-index-url https://example.org/whl/rocm7.1\nnumpy\n# -f https://example.org/whl/cu121\n",
        "-f https://example.org/whl/cpu/torch_stable.html\nnumpy\n",
        "-f https://example.org/whl/torch_stable.html\ntorch==1.13.1+rocm5.2\n",
    ),
    invalid=(
        Case(
            "--extra-index-url https://example.org/whl/cu121\nnumpy\n",
            "# ROCm: an index of CUDA wheels\n# --extra-index-url https://example.org/whl/cu121\nnumpy\n",
            "requirements.txt",
        ),
        Case(
            "pip install -r requirements.txt --extra-index-url=https://example.org/whl/cu121\n",
            'if [ -n "${USE_ROCM:-}" ]; then\n  pip install -r requirements.txt\nelse\n'
            "  pip install -r requirements.txt --extra-index-url=https://example.org/whl/cu121\n"
            "fi\n",
            "install.sh",
        ),
        Case(
            "FROM a\nRUN pip install einops --index-url https://example.org/whl/cu121\n",
            "FROM a\nRUN pip install einops\n",
            "Dockerfile",
        ),
        Case('[[tool.uv.index]]\nname = "cu"\nurl = "https://example.org/whl/cu128"\n', None, "pyproject.toml"),
    ),
    once=True,
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield indexes of wheels for CUDA."""
    told: list[tuple[int, int]] = []
    if _of_rocm_too(file):
        return
    for command in file.commands:
        if installs(command) is None or command.settled:
            continue
        for found in _of_command(file, command):
            told.append((command.start, command.end))
            yield found
    for match in CUDA_INDEX.finditer(file.text):
        place = match.span()
        line = file.lines.at(place[0])
        written = file.text[line.start : line.end].lstrip()
        if written.startswith(("#", ";")) or any(start <= place[0] < end for start, end in told):
            continue
        message = f"{match.group()} is an index of CUDA wheels."
        if file.kind is Kind.REQUIREMENTS and written.startswith("-"):
            edits = commented(file, line.start, line.end, "an index of CUDA wheels")
            yield rewrite(file, place, message, edits, remedy=_REMEDY, otherwise=Outcome.NOTE)
        elif file.kind in {Kind.TOML, Kind.INI, Kind.WORKFLOW, Kind.CONDA, Kind.YAML} and _is_value(file, place):
            yield note(place, message, _REMEDY)


def _of_rocm_too(file: TextFile) -> bool:
    """Tell whether the list of all old wheels is there for its ROCm builds: ``torch==1.13.1+rocm5.2``."""
    return "torch_stable.html" in file.text and "+rocm" in file.text


def _is_value(file: TextFile, place: tuple[int, int]) -> bool:
    """Tell whether an address is a value of its file rather than part of a comment."""
    values = [(one.start, one.end) for one in file.values]
    values += [(row.start, row.end) for row in file.rows]
    values += [(entry.start, entry.end) for entry in file.yaml]
    return any(start <= place[0] < end for start, end in values)


def _of_command(file: TextFile, command: Command) -> Iterator[Found]:
    words = command.words
    for number, word in enumerate(words):
        match = CUDA_INDEX.search(file.text, word.start, word.end)
        if match is None:
            continue
        before = words[number - 1]
        start = before.start if "=" not in word.text.split("://")[0] and before.text.startswith("-") else word.start
        edit = without(file, start, word.end)
        edits = (Edit(command.start, command.end, b"true"),) if emptied(file, command) else (edit,)
        message = f"{match.group()} is an index of CUDA wheels."
        yield rewrite(file, (start, word.end), message, edits, remedy=_REMEDY, otherwise=Outcome.NOTE)
