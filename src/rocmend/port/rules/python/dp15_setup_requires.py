"""PyTorch and CUDA packages in setup.py's requirements.

## What it does

Finds requirements of PyTorch, of CUDA's libraries and of packages that replace PyTorch in `install_requires`,
`extras_require` and `setup_requires`.

## Why it matters

`pip install .` then replaces a ROCm build of PyTorch with one for CUDA.

## Use instead

Install the project with `--no-deps --no-build-isolation`, and its dependencies with the install plan.

## Fix safety

Nothing is rewritten: a project's metadata is one for all machines. What no install for ROCm can satisfy
(`torch==2.6.0+cu124`, `onnxruntime-gpu`) is for a person to change; the rest are notes.

## References

- <https://pytorch.org/get-started/locally/>
- <https://packaging.python.org/en/latest/specifications/version-specifiers/#local-version-identifiers>
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from rocmend.core.records import Severity
from rocmend.port.build.dependencies import labelled_build, parsed
from rocmend.port.build.leave import PLAN, never_on_rocm
from rocmend.port.build.packages import Role, known
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_LISTS = {"install_requires", "extras_require", "setup_requires", "requires"}
_ROLES = {Role.TORCH, Role.PINS_TORCH, Role.CUDA, Role.REPLACED, Role.NONE}


@rule(
    "DP15",
    "PyTorch or CUDA packages in setup.py",
    Language.PYTHON,
    severity=Severity.WARNING,
    outcome=Outcome.NOTE,
    triggers=(b"install_requires", b"extras_require", b"setup_requires"),
    sources=("https://pytorch.org/get-started/locally/",),
    valid=(
        "from setuptools import setup\n\nsetup(install_requires=['numpy', 'pytorch-lightning'])\n",
        "from mine import setup\n\nsetup(install_requires=['torch'])\n",
    ),
    invalid=(
        Case("from setuptools import setup\n\nsetup(install_requires=['numpy', 'torch==2.7.1'])\n", None),
        Case("from setuptools import setup\n\nsetup(install_requires=['torch==2.6.0+cu124'])\n", None),
        Case("import setuptools\n\nneeds = ['xformers']\nsetuptools.setup(extras_require={'gpu': needs})\n", None),
    ),
)
def check(file: PythonFile) -> Iterable[Found]:
    """Find such requirements."""
    for call in file.calls("setuptools.setup", "distutils.core.setup", "skbuild.setup"):
        for keyword in call.keywords:
            if keyword.arg in _LISTS:
                yield from _of(file, keyword.value, required=keyword.arg == "install_requires")


def _of(file: PythonFile, value: ast.expr, *, required: bool) -> Iterator[Found]:
    """Yield what is found in a list of requirements, or in the lists of a dict."""
    if isinstance(value, ast.Name):
        found = file.scope(value).lookup(value.id)
        values = [binding.value for binding in found[1] if binding.value is not None] if found else []
        value = values[0] if len(values) == 1 else value
    if isinstance(value, ast.Dict):
        for entry in value.values:
            yield from _of(file, entry, required=required)
    for item in value.elts if isinstance(value, ast.List | ast.Tuple) else []:
        requirement = parsed(item.value) if isinstance(item, ast.Constant) and isinstance(item.value, str) else None
        package = known(requirement[0]) if requirement else None
        if requirement is not None and package is not None and package.role in _ROLES:
            name, _, version = requirement
            build = labelled_build(version) if package.role is Role.TORCH else ""
            message = f"{name}{version} asks for {build}." if build else f"{name}{version}: {package.note}"
            remedy = never_on_rocm(package.role, version) if required else ""
            outcome = Outcome.MANUAL if remedy else Outcome.NOTE
            yield told(file, item, message, outcome=outcome, remedy=remedy or PLAN)
