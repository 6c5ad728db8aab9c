"""For pytest: ``pytest -p rocmend.emulate.pytest_plugin --amd-targets gfx1100,gfx942``.

A test that asks for ``emulated`` runs once for each target, and calls Triton kernels as machine code of that target:
``emulated(kernel)[grid](x, y, n, BLOCK=64)``. ``amd_target`` is the target's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rocmend.emulate.generation import TARGETS
from rocmend.emulate.triton import Emulated, emulate

DEFAULT = "gfx1100,gfx942"
"""Wavefronts of 32 lanes and of 64."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--amd-targets``."""
    parser.addoption("--amd-targets", default=DEFAULT, help=f"gfx targets for the fixture emulated ({DEFAULT})")


def pytest_report_header(config: pytest.Config) -> str:
    """Say for which targets the tests run."""
    return f"AMD targets: {config.getoption('--amd-targets')}"


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a target whose code is not executed, once and at the start."""
    for one in config.getoption("--amd-targets").split(","):
        if one not in TARGETS:
            raise pytest.UsageError(f"--amd-targets: {one!r} is not among {', '.join(TARGETS)}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each target."""
    if "amd_target" in metafunc.fixturenames:
        metafunc.parametrize("amd_target", metafunc.config.getoption("--amd-targets").split(","))


@pytest.fixture
def emulated(amd_target: str) -> Callable[[Any], Emulated]:
    """Return what makes a Triton kernel run as machine code for the target."""
    return lambda kernel: emulate(kernel, amd_target)
