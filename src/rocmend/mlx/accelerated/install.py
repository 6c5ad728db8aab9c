"""Which functions and methods remember what they record, and putting those that do in place of the plain ones."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rocmend.mlx.accelerated import native
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FUNCTIONS", "METHODS", "fast", "forget", "functions", "methods", "remembering"]

# What these record depends on shapes, types, their other arguments and the stream alone.
FUNCTIONS = (
    "abs", "add", "addmm", "argmax", "argmin", "argpartition", "argsort", "astype", "broadcast_to", "clip",
    "contiguous", "cos", "cumsum", "divide", "equal", "erf", "exp", "expand_dims", "flatten", "floor_divide",
    "gather_mm", "gather_qmm", "greater", "greater_equal", "less", "less_equal", "log", "log1p", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logsumexp", "matmul", "max", "maximum", "mean", "min", "minimum",
    "moveaxis", "multiply", "negative", "not_equal", "ones_like", "power", "quantized_matmul", "reciprocal",
    "remainder", "repeat", "reshape", "rsqrt", "sigmoid", "sin", "softmax", "sort", "sqrt", "square", "squeeze",
    "stop_gradient", "subtract", "sum", "swapaxes", "take", "take_along_axis", "tanh", "transpose", "unflatten",
    "where", "zeros_like",
)  # fmt: skip
METHODS = (
    "abs", "argmax", "argmin", "astype", "cumsum", "exp", "flatten", "log", "logsumexp", "max", "mean", "min",
    "moveaxis", "reshape", "rsqrt", "sqrt", "square", "squeeze", "sum", "swapaxes", "transpose",
)  # fmt: skip
OPERATORS = {
    "__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__truediv__": "divide", "__lt__": "less",
    "__le__": "less_equal", "__gt__": "greater", "__ge__": "greater_equal",
    # the order of two numbers does not matter here
    "__radd__": "add", "__rmul__": "multiply",
}  # fmt: skip
# in Python they do a little more than to call a function
OWN = ("__eq__", "__matmul__", "__ne__", "__neg__", "__pow__", "__rpow__", "__rsub__", "__rtruediv__")


def remembering(function: Callable[..., Any], varying: str | None = None) -> Any:
    """Return a function that remembers what it records, where recording is accelerated.

    Args:
        function: what it records must depend on the shapes, types and identity of its arrays, on its other arguments,
            and on the stream alone.
        varying: a keyword argument that, where it is an integer, is all of the changing integers of what is recorded
            and decides nothing else.
    """
    if native is None:
        return function
    return native.memo(function) if varying is None else native.memo(function, varying)


def forget() -> None:
    """Let go of everything that is remembered: calls may record something else from now on."""
    if native is not None:
        native.forget()


def functions(found: dict[str, Any], owners: dict[str, str]) -> None:
    """Put remembering functions in place of those that are public, here and in the modules that define them."""
    for name in FUNCTIONS:
        plain = found[name]
        found[name] = made = remembering(plain)
        module = sys.modules[owners[name]]
        if getattr(module, name) is plain:
            setattr(module, name, made)


def fast(namespace: dict[str, Any]) -> None:
    """Do the same for the fused operations."""
    for name in ("layer_norm", "rms_norm", "scaled_dot_product_attention"):
        namespace[name] = remembering(namespace[name])
    namespace["rope"] = remembering(namespace["rope"], "offset")


def methods(kind: Any) -> None:
    """Put registered functions in place of the operators of ``array`` that only call them, and remembering methods."""
    for method, name in OPERATORS.items():
        setattr(kind, method, getattr(ops, name))
    if native is None:
        kind.__getitem__, kind.__setitem__ = ops.getitem, ops.setitem
        return
    kind.__getitem__ = native.reading(ops.getitem)
    kind.__setitem__ = native.writing(ops.setitem)
    for method in (*METHODS, *OWN):
        setattr(kind, method, remembering(getattr(kind, method)))
    for name in ("shape", "dtype", "ndim", "__buffer__"):
        if name in vars(native.Handle):  # __buffer__ has a name from Python 3.12 on, and is there before
            setattr(kind, name, vars(native.Handle)[name])
