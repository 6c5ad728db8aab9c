"""A requirements file that a script installs.

## What it does

Finds `pip install -r …` in scripts and Makefiles.

## Why it matters

The script installs the original list, not the ROCm list next to it (`requirements-rocm.txt`), and so PyTorch for CUDA.

## Use instead

On ROCm machines the ROCm list, after PyTorch. Generated ROCm Dockerfiles already use it.

## Fix safety

Nothing is rewritten: whether a ROCm list exists is only known for the whole project.

## References

- <https://pip.pypa.io/en/stable/reference/requirements-file-format/>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.dependencies import installs
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import note
from rocmend.port.build.indexes import Serves, of_command
from rocmend.port.build.kinds import Kind, destination, kind_of, paths
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "DP14",
    "Requirements file is installed",
    Language.TEXT,
    severity=Severity.ADVICE,
    outcome=Outcome.NOTE,
    triggers=(b"requirements", b"constraints"),
    paths=paths(Kind.SHELL, Kind.MAKE),
    sources=("https://pip.pypa.io/en/stable/reference/requirements-file-format/",),
    valid=(
        "pip install -r requirements.txt --index-url https://example.org/whl/rocm6.4\n",
        "pip install -r requirements-rocm.txt\n# pip install -r requirements.txt\ncat requirements.txt\n",
    ),
    invalid=(
        Case("pip install -r requirements.txt\n", None, "install.sh"),
        Case("all:\n\tpython3 -m pip install --requirement=requirements/dev.txt\n", None, "Makefile"),
    ),
    once=True,
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield lists that a command installs."""
    for command in file.commands:
        if installs(command) is None or command.settled or of_command(file, command) is Serves.ROCM:
            continue
        words = command.words
        for number, word in enumerate(words):
            name = word.value.partition("=")[2] if word.value.startswith("--requirement=") else word.value
            before = words[number - 1].value if number else ""
            if (before in {"-r", "--requirement"} or name != word.value) and kind_of(name) is Kind.REQUIREMENTS:
                yield note(
                    (word.start, word.end),
                    f"{name} is installed as it is, including any PyTorch and CUDA packages in it.",
                    f"On ROCm install {destination(name)} instead if it exists, after PyTorch.",
                )
