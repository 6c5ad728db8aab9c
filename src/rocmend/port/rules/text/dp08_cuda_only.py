"""Packages that need another build for ROCm, or have none.

## What it does

Finds requirements such as flash-attn, xformers, cupy-cuda12x, bitsandbytes, onnxruntime-gpu, tensorrt, vllm.

## Why it matters

Some require one exact torch version and so replace a ROCm build with a CUDA build. Some are CUDA wheels that install
silently and fail when imported or called. Some build against whatever torch is installed, which must then be the ROCm
build.

## Use instead

See the message: another distribution, a source build without isolation, or none, with the port's attention fallback.

## Fix safety

What would replace torch, what has nothing for AMD GPUs, and what another distribution serves them for, is left out of
the list for ROCm, as a suggestion: a program that imports it then needs the other distribution, or its import guarded.
In a project's own dependencies that is for a person to do. The others are only reported.

## References

- <https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/index.html>
- Each package's own, in `build/data/packages.toml`
"""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.build.dependencies import Dependency
from rocmend.port.build.file import TextFile
from rocmend.port.build.found import note
from rocmend.port.build.kinds import paths
from rocmend.port.build.leave import KINDS, dependencies, left_out
from rocmend.port.build.packages import Package, Role, known
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule


@rule(
    "DP08",
    "Package that needs a ROCm build",
    Language.TEXT,
    severity=Severity.WARNING,
    outcome=Outcome.SUGGEST,
    triggers=(
        *(
            b"flash",
            b"xformers",
            b"cupy",
            b"bitsandbytes",
            b"onnxruntime",
            b"tensorrt",
            b"dali",
            b"transformer",
            b"vllm",
        ),
        *(
            b"sglang",
            b"cuda",
            b"deep",
            b"apex",
            b"mamba",
            b"conv1d",
            b"gptq",
            b"awq",
            b"torch",
            b"detectron2",
            b"cutlass",
        ),
        *(b"cuml", b"cudf", b"raft", b"rmm", b"faiss", b"sgl", b"nvidia"),
    ),
    paths=paths(*KINDS),
    sources=("https://rocm.docs.amd.com/en/latest/how-to/rocm-for-ai/index.html",),
    valid=("transformers==4.53.2\nonnxruntime\ndeepdiff\n",),
    invalid=(
        Case(
            "xformers==0.0.28\nnumpy\n",
            "# ROCm: xformers replaces torch\n# xformers==0.0.28\nnumpy\n",
            "requirements.txt",
        ),
        Case("numpy\ntensorrt\n", "numpy\n# ROCm: tensorrt has nothing for AMD GPUs\n# tensorrt\n", "requirements.txt"),
        Case("flash-attn==2.6.3\nbitsandbytes==0.43\n", None, "requirements.txt"),
        Case(
            "cupy-cuda12x\nnumpy\n",
            "# ROCm: cupy-cuda12x is for CUDA, use cupy\n# cupy-cuda12x\nnumpy\n",
            "requirements.txt",
        ),
        Case("[project]\nname = 'a'\ndependencies = ['onnxruntime-gpu']\n", None, "pyproject.toml"),
        Case("[project]\nname = 'a'\noptional-dependencies.gpu = ['flash-attn']\n", None, "pyproject.toml"),
    ),
)
def check(file: TextFile) -> Iterable[Found]:
    """Yield requirements that do not serve AMD GPUs as they stand."""
    for dependency in dependencies(file, Role.PINS_TORCH, Role.NONE, Role.REPLACED):
        package = known(dependency.name)
        if package is None:
            continue
        pins = package.role is Role.PINS_TORCH
        message = f"{dependency.name}: {package.note}"
        if package.replacement:
            why = f"{dependency.name} is for CUDA, use {package.replacement}"
            message += f" Use {package.replacement}."
        else:
            why = f"{dependency.name} {'replaces torch' if pins else 'has nothing for AMD GPUs'}"
        severity = Severity.ERROR if pins else Severity.WARNING
        yield left_out(file, dependency, message, why, severity=severity, outcome=Outcome.SUGGEST)
    for dependency in dependencies(file, Role.BUILD):
        package = known(dependency.name)
        if package is not None and not _served(package, dependency):
            remedy = "Build it against the ROCm build of torch."
            yield note((dependency.start, dependency.end), f"{dependency.name}: {package.note}", remedy)


def _served(package: Package, dependency: Dependency) -> bool:
    """Tell whether the release that is asked for serves AMD GPUs as it is."""
    if not package.minimum:
        return False
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    try:
        specifiers = SpecifierSet(dependency.version)
    except ValueError:
        return False
    return bool(dependency.version) and not any(
        specifiers.contains(Version(older)) for older in ("0.37", "0.41", "0.43", "0.45", "0.47")
    )
