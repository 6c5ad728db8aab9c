"""Element-wise functions from one definition each: name, torch function, summary, types and derivative.

``exp = unary("exp", torch.exp, "Return ``e**a``, element by element.", FLOAT, slope(lambda node, x, y: y))`` makes the
primitive ``Exp`` and the public function with its signature and docstring. A rule of types says which types are
computed as they are, what becomes of others, and what the docstring says about them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.conversion import cast_node
from rocmend.mlx.dtypes import DTYPES, Dtype, bool_, complex64, float32, uint8
from rocmend.mlx.ops.elementwise import operands, simple
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Callable

    from rocmend.mlx.node import Node

__all__: list[str] = []

ANY = frozenset(DTYPES)
INEXACT = frozenset(dtype for dtype in DTYPES if dtype.is_inexact)
FLOATS = INEXACT - {complex64}


class Types(NamedTuple):
    """A rule of types.

    Attributes:
        returns: what the docstring says of the result.
        takes: types that are computed as they are.
        other: what becomes of others. Of one operand: ``other(name, node, stream)`` returns the node to compute, or
            the result as an array. Of two: ``other(name, dtype, x, y)`` returns the type to compute in, where the
            operands meet in ``dtype``.
        operand: what the docstring says of each operand.
        raises: what it says of exceptions.
        result: the type of the result, where it is not the type that is computed.
        weak: whether a number takes the type of the other operand.
    """

    returns: str
    takes: frozenset[Dtype] = ANY
    other: Callable[..., Any] = lambda *_: None
    operand: tuple[str, ...] = ("any array or number.",)
    raises: tuple[str, ...] = ()
    result: Callable[[Dtype], Dtype] | None = None
    weak: bool = True


# -- rules for one operand


def _to_float(name: str, x: Node, stream: Any) -> Node:
    return cast_node(x, float32, stream)


def _real_to_float(name: str, x: Node, stream: Any) -> Node:
    return cast_node(_real(name, x), float32, stream)


def _unchanged(name: str, x: Node, stream: Any) -> array:
    return wrap(_real(name, x))


def _real(name: str, x: Node) -> Node:
    if x.dtype is complex64:
        raise ValueError(f"[{name}] Not supported for complex64.")
    return x


_LIKE = "An array of the shape and type of ``a``"
_REAL = {"operand": ("a real array or number.",), "raises": ("ValueError: ``a`` is complex.",)}
SAME = Types(f"{_LIKE}.")
FLOAT = Types(f"{_LIKE}; float32 for integers.", INEXACT, _to_float)
REAL = Types(f"{_LIKE}; float32 for integers.", FLOATS, _real_to_float, **_REAL)  # type: ignore[arg-type]
WHOLE = Types(f"{_LIKE}.", FLOATS, _unchanged, **_REAL)  # type: ignore[arg-type]  # integers are what they are
TRUTH = Types("A bool array of the shape of ``a``.", result=lambda dtype: bool_)


def tested(of_integers: bool) -> Types:
    """Return the rule of a test of floating values, which integers all pass or all fail."""
    return TRUTH._replace(
        takes=INEXACT, other=lambda name, x, stream: ops.full(x.shape, of_integers, bool_, stream=stream)
    )


# -- rules for two operands


def _float32(name: str, dtype: Dtype, x: Node, y: Node) -> Dtype:
    return float32


def _no_complex(name: str, dtype: Dtype, x: Node, y: Node) -> Dtype:
    raise ValueError(f"[{name}] Complex type not supported.")


def _bits(name: str, dtype: Dtype, x: Node, y: Node) -> Dtype:
    if dtype is bool_:
        return uint8
    one, other = (node.dtype.name.removesuffix("_") for node in (x, y))
    raise RuntimeError(f"[{name}] Only allowed on integer or boolean types but got types {one} and {other}.")


_SHAPES = "ValueError: the shapes cannot be broadcast."
_OR_COMPLEX = ("ValueError: an operand is complex, or the shapes cannot be broadcast.",)
MEET = Types(
    "An array of the shape in which both meet, in the type in which they meet.",
    operand=("array or number.",) * 2,
    raises=(_SHAPES,),
)
MEET_FLOAT = MEET._replace(
    returns="An array of the shape in which both meet; float32 where both are integers.", takes=INEXACT, other=_float32
)
MEET_REAL = MEET._replace(takes=ANY - {complex64}, other=_no_complex, raises=_OR_COMPLEX)
MEET_BITS = MEET._replace(
    takes=ANY - INEXACT,
    other=_bits,
    operand=("integer or bool array or number.",) * 2,
    raises=("RuntimeError: an operand is not integer or bool.", _SHAPES),
)
MEET_SHIFT = MEET_BITS._replace(
    returns="An array of the shape in which both meet, in the type in which they meet; uint8 for bool.",
    takes=MEET_BITS.takes - {bool_},
)
COMPARE = MEET._replace(returns="A bool array of the shape in which both meet.", result=lambda dtype: bool_)
LOGIC = COMPARE._replace(weak=False)  # a number need not fit the other operand's type: it is 0 or not


# -- functions


def unary(
    name: str,
    function: Callable[..., Any] | Primitive,
    summary: str,
    types: Types = SAME,
    derivative: Callable[[Primitive], None] | None = None,
    *,
    positional: bool = False,
) -> Callable[..., array]:
    """Return a public function of one operand.

    Args:
        name: its name, from which that of its primitive is made: ``log_it`` gives ``LogIt``.
        function: of a tensor; or the primitive.
        summary: the first line of its docstring.
        types: which types it computes.
        derivative: ``slope(…)``, ``flat``, or another function that gives the primitive its rules; None: torch's.
        positional: the stream may be given by position.
    """
    op = _primitive(name, function, derivative)
    takes, other, result = types.takes, types.other, types.result

    def compute(a: Any, stream: Any) -> array:
        x = a._n if type(a) is array else to_array(a)._n
        if stream is not None:
            stream = as_stream(stream)
        if x.dtype not in takes:
            x = other(name, x, stream)
            if type(x) is array:
                return x
        dtype = x.dtype if result is None else result(x.dtype)
        return record(op, (x,), x.shape, dtype, None, None, stream)

    def keyword(a: array, /, *, stream: Any = None) -> array:
        return compute(a, stream)

    def free(a: array, stream: Any = None) -> array:
        return compute(a, stream)

    return _named(free if positional else keyword, name, summary, types)


def binary(
    name: str,
    function: Callable[..., Any] | Primitive,
    summary: str,
    types: Types = MEET,
    derivative: Callable[[Primitive], None] | None = None,
    *,
    positional: bool = True,
) -> Callable[..., array]:
    """Return a public function of two operands.

    Args:
        name: its name, from which that of its primitive is made.
        function: of two tensors; or the primitive. Where the result is of another type than the operands, ``attrs`` of
            its nodes is the type of these.
        summary: the first line of its docstring.
        types: which types it computes.
        derivative: ``slopes(…)``, ``flat``, or another function that gives the primitive its rules; None: torch's.
        positional: operands may be given by name, and the stream by position.
    """
    op = _primitive(name, function, derivative)
    takes, other, result, weak = types.takes, types.other, types.result, types.weak

    def compute(a: Any, b: Any, stream: Any) -> array:
        if stream is not None:
            stream = as_stream(stream)
        if not weak:
            a, b = to_array(a), to_array(b)
        if (
            type(a) is array
            and type(b) is array
            and (x := a._n).dtype is (y := b._n).dtype
            and x.shape == y.shape
            and x.dtype in takes
        ):  # what most calls are, without one more
            shape, dtype = x.shape, x.dtype
        else:
            x, y, shape, dtype = operands(a, b, stream, takes, other, name)
        if result is not None:
            return record(op, (x, y), shape, result(dtype), dtype, None, stream)
        return record(op, (x, y), shape, dtype, None, None, stream)

    def keyword(a: Any, b: Any, /, *, stream: Any = None) -> array:
        return compute(a, b, stream)

    def free(a: Any, b: Any, stream: Any = None) -> array:
        return compute(a, b, stream)

    return _named(free if positional else keyword, name, summary, types)


def _primitive(
    name: str, function: Callable[..., Any] | Primitive, derivative: Callable[[Primitive], None] | None
) -> Primitive:
    if not isinstance(function, Primitive):
        function = simple("".join(word.capitalize() for word in name.split("_")), function)
    if derivative is not None:
        derivative(function)
    return function


def _named(function: Callable[..., array], name: str, summary: str, types: Types) -> Callable[..., array]:
    """Give a function its name, the module that defines it, and its docstring."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = sys._getframe(2).f_globals["__name__"]
    arguments = [f"{key}: {text}" for key, text in zip("ab", types.operand, strict=False)]
    lines = [summary, "", "Args:", *_indented(*arguments, "stream: where to compute it."), "", "Returns:"]
    lines += _indented(types.returns)
    if types.raises:
        lines += ["", "Raises:", *_indented(*types.raises)]
    function.__doc__ = "\n".join(lines)
    return function


def _indented(*lines: str) -> list[str]:
    return ["    " + line for line in lines]
