"""Arithmetic in ``tuning.toml``: conditions on a candidate, its LDS, trips of a loop. Nothing but numbers and names."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "ceil": math.ceil}


class ExpressionError(ValueError):
    """An expression uses something else, or a name that has no value."""


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression such as ``BLOCK_M * BLOCK_N <= 64 * lanes``.

    Args:
        text: Numbers, names, ``+ - * / // %``, comparisons, ``and or not``, ``min max ceil``.
        values: Name to value.

    Raises:
        ExpressionError: It holds something else, a name has no value, or it divides by zero.
    """
    try:
        return _value(_parse(text), values)
    except ZeroDivisionError:
        raise ExpressionError(f"{text!r} divides by zero") from None


@functools.cache
def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"{text!r} is no expression: {error.msg}") from None


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    result: Any = None
    match node:
        case ast.Constant(value=bool() | int() | float()):
            result = node.value
        case ast.Name(id=name) if name in values:
            result = values[name]
        case ast.Name(id=name):
            raise ExpressionError(f"{name} has no value")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            result = _OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _OPERATORS:
            result = _OPERATORS[type(op)](_value(operand, values))
        case ast.BoolOp(op=op, values=parts):
            result = (all if isinstance(op, ast.And) else any)(_value(part, values) for part in parts)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            result = _OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            result = _FUNCTIONS[name](*(_value(one, values) for one in args))
        case _:
            raise ExpressionError(f"{ast.unparse(node)!r} is not allowed in an expression")
    return result
