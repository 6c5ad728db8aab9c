"""PyTorch as a build requirement.

## What it does

Finds torch in `[build-system] requires` and `setup_requires`.

## Why it matters

pip builds in an environment of its own and installs there what the build requires: the default index's torch, which is
for CUDA. An extension is then built against headers and for a platform that are not those of the torch it is loaded
into; its `setup.py` does not see ROCm.

## Use instead

Install with `--no-build-isolation`, so that the build uses the ROCm build that is installed.

## Fix safety

Nothing is rewritten: the option belongs to the install command. The install plan includes it.

## References

- <https://pip.pypa.io/en/stable/reference/build-system/#build-isolation>
- <https://peps.python.org/pep-0518/>
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.dependencies import Where
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import note
from rocmend.port.build.kinds import Kind, paths
from rocmend.port.build.packages import Role, known
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "DP07",
    "Build isolation reinstalls PyTorch",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.NOTE,
    triggers=(b"torch",),
    paths=paths(Kind.TOML, Kind.INI),
    sources=("https://pip.pypa.io/en/stable/reference/build-system/#build-isolation",),
    valid=('[build-system]\nrequires = ["setuptools", "pytorch-lightning"]\n\n[project]\ndependencies = ["torch"]\n',),
    invalid=(
        Case('[build-system]\nrequires = ["setuptools", "torch>=2.4"]\n', None, "pyproject.toml"),
        Case("[options]\nsetup_requires =\n    torch\n", None, "setup.cfg"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield PyTorch among a build's requirements."""
    for dependency in file.dependencies:
        package = known(dependency.name)
        if dependency.where is Where.BUILD and package is not None and package.role is Role.TORCH:
            yield note(
                (dependency.start, dependency.end),
                f"Build isolation installs {dependency.name} from the default index and builds against it: for CUDA.",
                "Install with --no-build-isolation, after the ROCm build of torch and the other build requirements.",
            )
