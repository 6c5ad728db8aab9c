"""Devices identified by NVIDIA product names.

## What it does

Finds comparisons of `torch.cuda.get_device_name()` with product names.

## Why it matters

AMD GPUs match none of them: peak tables and settings use the fallback.

## Use instead

An entry for the gfx target (`torch.cuda.get_device_properties(0).gcnArchName`).

## Fix safety

Nothing is rewritten.

## References

- `torch.cuda.get_device_properties`, torch 2.13
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from rocmend.core.records import Severity
from rocmend.port.python.file import PythonFile
from rocmend.port.python.finding import told
from rocmend.port.records import Language, Outcome
from rocmend.port.rule import Case, Found, rule

_PRODUCT = re.compile(r"(?:A|H|V|P|T|B|L|GB|GH)\d{1,3}\b|RTX|Tesla|GeForce|Quadro|NVIDIA", re.IGNORECASE)


@rule(
    "PY33",
    "device identified by name",
    Language.PYTHON,
    severity=Severity.INFO,
    outcome=Outcome.NOTE,
    triggers=(b"get_device_name", b"get_device_properties"),
    sources=("torch.cuda.get_device_properties, torch 2.13",),
    valid=("import torch\n\nprint(torch.cuda.get_device_name())\n",),
    invalid=(Case("import torch\n\nif 'A100' in torch.cuda.get_device_name(0):\n    peak = 312e12\n", None),),
    once=True,
)
def device_names(file: PythonFile) -> Iterable[Found]:
    """Find comparisons."""
    for node in file.on_rocm(file.of(ast.Compare)):
        sides = [node.left, *node.comparators]
        named = any(isinstance(one, ast.Constant) and _PRODUCT.search(str(one.value)) for one in sides)
        if named and any(_is_name(file, one) for one in sides):
            yield told(
                file,
                node,
                "AMD GPUs have none of these names: the fallback branch is taken",
                outcome=Outcome.NOTE,
            )


def _is_name(file: PythonFile, node: ast.expr) -> bool:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"lower", "upper"}:
        node = node.func.value
    if isinstance(node, ast.Name):
        found = file.scope(node).lookup(node.id)
        return found is not None and any(one.value is not None and _is_name(file, one.value) for one in found[1][:1])
    if isinstance(node, ast.Attribute) and node.attr == "name" and isinstance(node.value, ast.Call):
        return file.qualified(node.value.func) == "torch.cuda.get_device_properties"
    return isinstance(node, ast.Call) and file.qualified(node.func) == "torch.cuda.get_device_name"
