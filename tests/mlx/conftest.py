"""Kernels that tests reach are computed in Triton's interpreter, asked for before triton is imported."""

import os
from pathlib import Path

import pytest

os.environ["TRITON_INTERPRET"] = "1"
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the interpreter compute lanes that are masked off: numpy warns of what no one reads."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::RuntimeWarning"))
