"""Kernels are checked in Triton's interpreter, whose warnings of numpy are let pass."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let Triton 3.6's interpreter take a number out of an array of one element, as numpy before 2.4 does."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning"))
