"""Kernels that tests reach are computed in Triton's interpreter, whose warnings of numpy are let pass."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the interpreter compute lanes that are masked off: numpy warns of what no one reads.

    Triton 3.6's takes numbers out of arrays of one element, which numpy before 2.4 does with a warning.
    """
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::RuntimeWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning"))
