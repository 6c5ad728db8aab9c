"""`nvidia-smi` in scripts.

## What it does

Finds commands that run `nvidia-smi` in scripts, Dockerfiles, recipes and workflows.

## Why it matters

The tool belongs to NVIDIA's driver. A script with `set -e` stops there; one that parses its output gets nothing.

## Use instead

`amd-smi`: `amd-smi static` describes the GPUs, `amd-smi monitor` shows them at work, `amd-smi metric --json` is for
programs. To count GPUs, use the program's framework.

## Fix safety

The bare command becomes `amd-smi monitor`, as a suggestion. Queries of fields have to be ported by hand, as names and
formats differ.

## References

- <https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "EV06",
    "nvidia-smi in a script",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.SUGGEST,
    triggers=(b"nvidia-smi",),
    paths=paths(Kind.SHELL, Kind.DOCKERFILE, Kind.MAKE, Kind.WORKFLOW),
    sources=("https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html",),
    valid=("echo nvidia-smi\n# nvidia-smi\nif command -v rocminfo; then rocm-smi; else nvidia-smi; fi\n",),
    invalid=(
        Case(
            "set -e\nnvidia-smi\n",
            'set -e\nif [ -n "${USE_ROCM:-}" ]; then\n  amd-smi monitor\nelse\n  nvidia-smi\nfi\n',
            "run.sh",
        ),
        Case("gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)\n", None, "run.sh"),
        Case("jobs:\n  a:\n    steps:\n      - run: nvidia-smi\n", None, ".github/workflows/a.yml"),
    ),
    once=True,
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield commands that run the tool."""
    for command in file.commands:
        if command.name != "nvidia-smi" or command.settled:
            continue
        plain = not command.arguments or command.arguments[0].text.startswith(">")
        word = command.words[len(command.assignments)]
        edits = (Edit(word.start, word.end, b"amd-smi monitor"),) if plain and not command.inner else ()
        yield rewrite(
            file,
            (command.start, command.end),
            "nvidia-smi comes with NVIDIA's driver and is missing on ROCm.",
            edits,
            remedy="Use amd-smi on ROCm: amd-smi static, amd-smi monitor, amd-smi metric --json.",
            outcome=Outcome.SUGGEST,
            otherwise=Outcome.NOTE if file.kind is Kind.WORKFLOW else Outcome.MANUAL,
        )
