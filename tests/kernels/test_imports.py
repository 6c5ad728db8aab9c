"""Who may import torch and Triton as it is loaded: the kernels and the fallbacks for programs that use torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rocmend

SOURCE = Path(rocmend.__file__).parent
HEAVY = {"torch", "triton", "numpy", "mlx"}
ALLOWED = (
    "kernels/",
    "fallbacks/",
    "emulate/",  # its modules are imported as a kernel is executed
    "mlx/",
    "bench/networks/",  # what a workload imports as it is made
    "bench/workloads/",  # imported in the child alone
    "probe/catalogue/_",  # what probes import as they run
    "examples/",  # projects as a stranger wrote them
    "port/support/",  # modules that are written into the projects that are ported; rocmend reads them as text
)


def _at_load(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the packages that a module imports as it is loaded, type checking aside."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from _at_load([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _at_load([*node.body, *node.orelse, *node.finalbody])
        elif isinstance(node, ast.ClassDef):
            yield from _at_load(node.body)


def test_only_kernels_and_fallbacks_import_torch_as_they_are_loaded() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(ALLOWED) and HEAVY & set(_at_load(ast.parse(path.read_text(encoding="utf-8")).body)):
            found.append(name)
    assert found == []


def test_an_ops_declaration_imports_neither_torch_nor_triton() -> None:
    found = [
        path.parent.name
        for path in (SOURCE / "kernels" / "ops").glob("*/*/__init__.py")
        if HEAVY & set(_at_load(ast.parse(path.read_text(encoding="utf-8")).body))
    ]
    assert found == []


@pytest.mark.slow
def test_every_public_function_is_there_without_triton() -> None:
    """Each op has a reference in torch: on Windows, say, that is all there is."""
    pytest.importorskip("torch")
    program = (
        "import sys; sys.modules['triton'] = None\n"
        "from rocmend.kernels import registry\n"
        "for name in registry.exports(): registry.exported(name)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
