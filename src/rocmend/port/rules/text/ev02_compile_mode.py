"""A compile mode that captures graphs, in settings.

## What it does

Finds `reduce-overhead` and `max-autotune` as values in YAML, TOML, JSON and INI files, and as arguments in scripts.

## Why it matters

The program passes the value to `torch.compile`. `reduce-overhead`, and `max-autotune` since it does the same, turn on
CUDA graphs in Inductor; on ROCm these were reported to be tens of times slower than the default mode and to degrade
training.

## Use instead

`default`, or `max-autotune-no-cudagraphs`, on ROCm: at the call that gets the value (PY03), so that one configuration
serves both platforms.

## Fix safety

In scripts the argument's rewrite is a suggestion. Configuration files have no conditions and are not changed.

## References

- <https://github.com/pytorch/pytorch/issues/187715>
- `torch._inductor.list_mode_options`
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import rewrite
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_MODES = {"reduce-overhead": "default", "max-autotune": "max-autotune-no-cudagraphs"}
_ARGUMENT = re.compile(r"(?:^|[=:'\"])(reduce-overhead|max-autotune)(?=$|['\"])")
_REMEDY = "Use another torch.compile mode on ROCm, at the call that gets this value."


@rule(
    "EV02",
    "Compile mode that captures graphs",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.SUGGEST,
    triggers=(b"reduce-overhead", b"max-autotune"),
    paths=paths(Kind.YAML, Kind.TOML, Kind.JSON, Kind.INI, Kind.SHELL, Kind.DOCKERFILE, Kind.WORKFLOW, Kind.MAKE),
    sources=("https://github.com/pytorch/pytorch/issues/187715",),
    valid=("mode: max-autotune-no-cudagraphs\n# mode: reduce-overhead\n",),
    invalid=(
        Case("compile:\n  mode: reduce-overhead  # fast\n", None, "config.yaml"),
        Case('[compile]\nmode = "max-autotune"\n', None, "config.toml"),
        Case('{"compile": {"mode": "reduce-overhead"}}\n', None, "config.json"),
        Case(
            "python run.py --compile-mode reduce-overhead --fast\n",
            'if [ -n "${USE_ROCM:-}" ]; then\n  python run.py --compile-mode default --fast\n'
            "else\n  python run.py --compile-mode reduce-overhead --fast\nfi\n",
            "run.sh",
        ),
        Case(
            "time python run.py --compile-mode reduce-overhead\n",
            'if [ -n "${USE_ROCM:-}" ]; then\n  time python run.py --compile-mode default\n'
            "else\n  time python run.py --compile-mode reduce-overhead\nfi\n",
            "run.sh",
        ),
        Case(
            "FROM a\nRUN python warm.py mode=max-autotune\n",
            "FROM a\nRUN python warm.py mode=max-autotune-no-cudagraphs\n",
            "Dockerfile",
        ),
    ),
    once=True,
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield values that are such a mode."""
    words = [(word.start, word.end) for one in file.commands if not one.settled for word in one.words]
    values = [(one.start, one.end) for one in file.values if one.string]
    values += [(row.start, row.end) for row in file.rows]
    values += [(entry.start, entry.end) for entry in file.yaml if not entry.block]
    for start, end in sorted({*words, *values}):
        match = _ARGUMENT.search(file.text[start:end])
        if match is None:
            continue
        mode = match.group(1)
        edits = (Edit(start + match.start(1), start + match.end(1), _MODES[mode].encode()),)
        message = f"The mode {mode} turns on CUDA graphs in Inductor."
        outcome = Outcome.SUGGEST
        yield rewrite(file, (start, end), message, edits, remedy=_REMEDY, outcome=outcome)
