"""A list of requirements that a script installs.

## What it does

Finds `pip install -r …` in scripts and Makefiles.

## Why it matters

The list is the original. Where one for ROCm was written beside it (`requirements-rocm.txt`), nothing installs that
one, and the original brings PyTorch for CUDA.

## Use instead

The list for ROCm where a machine is for ROCm, after PyTorch. In Dockerfiles that are written for ROCm its name stands
already.

## Fix safety

Nothing is rewritten: whether a list has a ROCm side is known for a whole project only.

## References

- <https://pip.pypa.io/en/stable/reference/requirements-file-format/>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.dependencies import installs
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import note
from rocmend.port.build.kinds import Kind, destination, kind_of, paths
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "DP14",
    "A list of requirements is installed",
    Language.TEXT,
    severity=Severity.ADVICE,
    outcome=Outcome.NOTE,
    triggers=(b"requirements", b"constraints"),
    paths=paths(Kind.SHELL, Kind.MAKE),
    sources=("https://pip.pypa.io/en/stable/reference/requirements-file-format/",),
    valid=("pip install -r requirements-rocm.txt\n# pip install -r requirements.txt\ncat requirements.txt\n",),
    invalid=(
        Case("pip install -r requirements.txt\n", None, "install.sh"),
        Case("all:\n\tpython3 -m pip install --requirement=requirements/dev.txt\n", None, "Makefile"),
    ),
    once=True,
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield lists that a command installs."""
    for command in file.commands:
        if installs(command) is None or command.settled:
            continue
        words = command.words
        for number, word in enumerate(words):
            name = word.value.partition("=")[2] if word.value.startswith("--requirement=") else word.value
            before = words[number - 1].value if number else ""
            if (before in {"-r", "--requirement"} or name != word.value) and kind_of(name) is Kind.REQUIREMENTS:
                yield note(
                    (word.start, word.end),
                    f"{name} is installed whole, with PyTorch and packages for CUDA where it names such.",
                    f"Install {destination(name)} instead on ROCm where it was written, after PyTorch.",
                )
