"""How arrays are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from rocmend.mlx import evaluate
from rocmend.mlx.exchange import values_of
from rocmend.mlx.registry import register

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocmend.mlx.node import Node

__all__ = ["PrintOptions", "get_printoptions", "printoptions", "set_printoptions"]

EDGE = 3  # elements shown at each end of an axis that is cut short


class PrintOptions:
    """How arrays are printed.

    Attributes:
        precision: decimal places of floating numbers; -1: six significant digits.
    """

    __slots__ = ("precision",)

    def __init__(self, precision: int = -1) -> None:
        self.precision = precision


_current = PrintOptions()


def set_printoptions(precision: int = -1) -> None:
    """Set how arrays are printed from now on.

    Args:
        precision: decimal places of floating numbers; -1: six significant digits.
    """
    _current.precision = precision


def get_printoptions() -> PrintOptions:
    """Return how arrays are printed."""
    return PrintOptions(_current.precision)


class _PrintOptionsContext:
    def __init__(self, options: PrintOptions, /) -> None:
        self.wanted = options
        self.before: list[int] = []

    def __enter__(self) -> Self:
        self.before.append(_current.precision)
        _current.precision = self.wanted.precision
        return self

    def __exit__(self, *args: object) -> None:
        _current.precision = self.before.pop()


def printoptions(precision: int = -1) -> _PrintOptionsContext:
    """Return a context in which arrays are printed otherwise.

    Args:
        precision: decimal places of floating numbers; -1: six significant digits.
    """
    return _PrintOptionsContext(PrintOptions(precision))


def _number(value: float) -> str:
    return f"{value:g}" if _current.precision == -1 else f"{value:.{_current.precision}f}"


def _complex(value: complex) -> str:
    imag = value.imag
    # the sign of -0 stays with it: 0 is not below 0
    sign, size = ("-", -imag) if imag < 0 else ("+", imag)
    return f"{_number(value.real)}{sign}{_number(size)}j"


@register
def text_of(node: Node) -> str:
    """Return the text of an array: its elements (the ends of long axes) and its type."""
    tensor = evaluate.value(node)
    shown: list[list[int | None]] = []
    for axis, size in enumerate(node.shape):
        if size > 2 * EDGE:
            tensor = _ends(tensor, axis, size)
            shown.append([*range(EDGE), None, *range(EDGE, 2 * EDGE)])
        else:
            shown.append([*range(size)])
    dtype = node.dtype
    write: Callable[[Any], str] = _number if dtype.is_float else _complex if dtype.is_complex else str
    values = values_of(node, tensor)
    body = _rows(values, shown, write) if node.shape else write(values)
    return f"array({body}, dtype={dtype.name.removesuffix('_')})"


def _ends(tensor: Any, axis: int, size: int) -> Any:
    import torch

    return torch.cat([tensor.narrow(axis, 0, EDGE), tensor.narrow(axis, size - EDGE, EDGE)], axis)


def _rows(values: Any, shown: list[list[int | None]], write: Callable[[Any], str], depth: int = 0) -> str:
    last = depth == len(shown) - 1
    parts = [
        "..." if i is None else write(values[i]) if last else _rows(values[i], shown, write, depth + 1)
        for i in shown[depth]
    ]
    return "[" + (", " if last else ",\n" + " " * (7 + depth)).join(parts) + "]"
