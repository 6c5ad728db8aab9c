"""Asking for values."""

from __future__ import annotations

from typing import Any

from rocmend.mlx import evaluate
from rocmend.mlx.transforms import tree

__all__ = ["async_eval", "eval"]


def eval(*args: Any) -> None:
    """Compute arrays, and return when they are computed.

    Args:
        args: arrays and trees (lists, tuples, dictionaries) of arrays; other leaves are passed over.

    Raises:
        ValueError: an array stands for an argument of a function that ``compile`` or ``vmap`` is tracing.
    """
    evaluate.evaluate(tree.arrays_of(args), wait=True)


def async_eval(*args: Any) -> None:
    """Begin to compute arrays, and return while a GPU is still at it.

    On the CPU the arrays are computed when this returns.

    Args:
        args: arrays and trees (lists, tuples, dictionaries) of arrays; other leaves are passed over.

    Raises:
        ValueError: an array depends on an argument of a function that is being transformed.
    """
    evaluate.evaluate(tree.arrays_of(args), wait=False)
