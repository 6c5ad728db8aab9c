"""JAX with its CUDA extra.

## What it does

Finds `jax[cuda12]`, `jax[cuda13-local]` and the like.

## Why it matters

The extra installs CUDA's libraries and JAX's plugin for them: gigabytes that no AMD GPU uses. In a project with JAX
and PyTorch, the two then conflict over versions of libraries that neither needs.

## Use instead

Plain `jax`, which runs on the CPU, if the project mainly uses PyTorch. JAX supports AMD GPUs with `jax[rocm7-local]`
and a ROCm installation of that release.

## Fix safety

A suggestion: JAX then runs on the CPU, which is too slow if the project relies on it.

## References

- <https://docs.jax.dev/en/latest/installation.html>
- <https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/3rd-party/jax-install.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.dependencies import Where
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import note, rewrite
from rocmend.port.build.kinds import paths
from rocmend.port.build.leave import KINDS, PLAN
from rocmend.port.records import Edit, Language, Outcome
from rocmend.port.rule import Case, Found, rule

_EXTRA = re.compile(r"\[[^\]]*\]")


@rule(
    "DP02",
    "JAX with its CUDA extra",
    Language.TEXT,
    severity=Severity.ERROR,
    outcome=Outcome.SUGGEST,
    triggers=(b"jax",),
    paths=paths(*KINDS),
    sources=("https://docs.jax.dev/en/latest/installation.html",),
    valid=("jax==0.5.3\njax[tpu]\n# jax[cuda12]\n",),
    invalid=(
        Case("flax\njax[cuda12]==0.5.3\n", "flax\njax==0.5.3\n", "requirements.txt"),
        Case("jax[cuda12,k8s]>=0.5\n", "jax[k8s]>=0.5\n", "requirements.txt"),
        Case(
            'pip install "jax[cuda12]" flax\n',
            'if [ -n "${USE_ROCM:-}" ]; then\n  pip install "jax" flax\nelse\n  pip install "jax[cuda12]" flax\nfi\n',
            "install.sh",
        ),
        Case('[project]\nname = "a"\ndependencies = [\n    "jax[cuda12]==0.5.3",\n]\n', None, "pyproject.toml"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield requirements of JAX with an extra for CUDA."""
    for dependency in file.dependencies:
        cuda = [extra for extra in dependency.extras if extra.startswith("cuda")]
        if dependency.name not in {"jax", "jaxlib"} or not cuda:
            continue
        place = (dependency.start, dependency.end)
        message = f"{dependency.name}[{cuda[0]}] installs CUDA libraries and JAX's CUDA plugin."
        remedy = "Use plain jax (CPU), or jax[rocm7-local] with that ROCm release installed."
        if dependency.where in {Where.PROJECT, Where.BUILD}:
            yield note(place, message, f"{remedy} {PLAN}")
            continue
        extras = _EXTRA.search(file.text, *place)
        if extras is None:
            continue
        kept = [extra for extra in extras.group()[1:-1].split(",") if not extra.strip().lower().startswith("cuda")]
        edit = Edit(*extras.span(), f"[{','.join(kept)}]".encode() if kept else b"")
        yield rewrite(file, place, message, (edit,), remedy=remedy, outcome=Outcome.SUGGEST, otherwise=Outcome.NOTE)
