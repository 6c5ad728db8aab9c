"""What each element-wise operation is in Triton.

Operands of half types come as fp32; the generated code rounds each result to the node's type, so that a fused chain
gives what the operations give one after another.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EXPRESSIONS", "LOGICAL", "TYPES", "literal"]

# What a generated kernel computes on; other types are left to torch.
TYPES = frozenset({dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.bool_})

_NAN = "propagate_nan=tl.PropagateNan.ALL"

EXPRESSIONS: dict[str, Callable[..., str]] = {
    "Add": "({0} + {1})".format,
    "Subtract": "({0} - {1})".format,
    "Multiply": "({0} * {1})".format,
    "Divide": "tl.div_rn({0}, {1})".format,
    "Maximum": ("tl.maximum({0}, {1}, " + _NAN + ")").format,
    "Minimum": ("tl.minimum({0}, {1}, " + _NAN + ")").format,
    "Negative": "(-{0})".format,
    "Abs": "tl.abs({0})".format,
    "Square": "({0} * {0})".format,
    "Sqrt": "tl.sqrt_rn({0})".format,
    "Rsqrt": "tl.div_rn(1.0, tl.sqrt_rn({0}))".format,
    "Reciprocal": "tl.div_rn(1.0, {0})".format,
    "Exp": "tl.exp({0})".format,
    "Log": "tl.log({0})".format,
    "Sigmoid": "tl.div_rn(1.0, 1.0 + tl.exp(-{0}))".format,
    "Erf": "tl.erf({0})".format,
    "Sin": "tl.sin({0})".format,
    "Cos": "tl.cos({0})".format,
    "Floor": "tl.floor({0})".format,
    "Ceil": "tl.ceil({0})".format,
    "Tanh": "tanh({0})".format,
    "Equal": "({0} == {1})".format,
    "NotEqual": "({0} != {1})".format,
    "Less": "({0} < {1})".format,
    "LessEqual": "({0} <= {1})".format,
    "Greater": "({0} > {1})".format,
    "GreaterEqual": "({0} >= {1})".format,
    "LogicalAnd": "({0} & {1})".format,
    "LogicalOr": "({0} | {1})".format,
    "LogicalNot": "({0} == 0)".format,
    "Select": "tl.where({0}, {1}, {2})".format,
    "AsType": "{0}".format,
    "StopGradient": "{0}".format,
}
# Their operands must be bool: on numbers they mean something else here.
LOGICAL = frozenset({"LogicalAnd", "LogicalOr", "LogicalNot"})


def literal(value: Any, dtype: Any) -> str | None:
    """Return a number as Triton's source, of the value that its type holds; None where it has no such form."""
    if dtype is dtypes.bool_:
        return "True" if value else "False"
    import torch

    held = float(torch.tensor(float(value)).to(dtype.storage))
    if not math.isfinite(held):
        return f'float("{held}")'
    return repr(held)
