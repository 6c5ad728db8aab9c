"""``compile``: a function that is traced once for each structure of its arguments, and recorded as one operation."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from rocmend.mlx.accelerated.install import forget, remembering
from rocmend.mlx.array import array, record_many, wrap
from rocmend.mlx.node import Node, current
from rocmend.mlx.primitive import ITEM
from rocmend.mlx.transforms import tree
from rocmend.mlx.transforms.graph import apart, placeholder
from rocmend.mlx.transforms.trace import COMPILED, Trace, gather

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["compiled", "disable", "enable"]

LIMIT = 1024  # traces that a compiled function remembers

_enabled = [not os.environ.get("MLX_DISABLE_COMPILE")]


def disable() -> None:
    """Make compiled functions call what they were made of."""
    _enabled[0] = False
    forget()


def enable() -> None:
    """Undo ``disable``."""
    _enabled[0] = True
    forget()


def record_body(
    fun: Callable[[list[array]], tuple[Any, list[array]]], arrays: Sequence[array]
) -> tuple[list[Node], Any, list[Node], list[Node], list[Node]]:
    """Call a function with placeholders for arrays.

    Args:
        fun: returns what the caller wants to keep, and the outputs.
        arrays: the inputs; only their shapes and types are used.

    Returns:
        The placeholders, what ``fun`` wants to keep, the outputs' nodes, constants and body.
    """
    with apart() as tape:
        traced = [placeholder(x._n.shape, x._n) for x in arrays]
        nodes = [x._n for x in traced]
        kept, outputs = fun(traced)
        constants, body, found = gather(nodes, [x._n for x in outputs], tape, [x._n for x in arrays])
    return nodes, kept, found, constants, body


class _Traces:
    """The traces of one compiled function."""

    __slots__ = ("fun", "inputs", "known", "outputs", "shapeless")

    def __init__(self, fun: Callable[..., Any], inputs: Any, outputs: Any, *, shapeless: bool) -> None:
        self.fun = fun
        self.inputs = inputs
        self.outputs = outputs
        self.shapeless = shapeless
        self.known: dict[tuple[Any, ...], Trace] = {}

    def find(self, key: tuple[Any, ...], arrays: list[array], args: Any, kwargs: Any, count: int) -> Trace:
        """Return a trace that was not found under ``key``: one made for other shapes, or a new one.

        Args:
            key: of the call: what the constants are and, last, the shapes and types of the arrays.
            arrays: all arrays of the call, captured ones last.
            args: positional arguments.
            kwargs: keyword arguments.
            count: number of the arrays that are not captured.
        """
        if not self.shapeless:
            trace = self._trace(arrays, args, kwargs, count)
        else:
            loose = (*key[:-1], tuple(len(one) if type(one) is tuple else one for one in key[-1]))
            found = self.known.get(loose)
            if found is None:
                self._remember(loose, trace := self._trace(arrays, args, kwargs, count))
            else:
                from rocmend.mlx.transforms.shapeless import reshaped

                trace = reshaped(found, [x._n for x in arrays])
        self._remember(key, trace)
        return trace

    def _remember(self, key: tuple[Any, ...], trace: Trace) -> None:
        self.known[key] = trace
        if len(self.known) > LIMIT:
            del self.known[next(iter(self.known))]

    def _trace(self, arrays: list[array], args: Any, kwargs: Any, count: int) -> Trace:
        """Call the function with placeholders and return what it recorded."""

        def body(traced: list[array]) -> tuple[Any, list[array]]:
            captures, originals = traced[count:], arrays[count:]
            nodes = [x._n for x in captures]
            try:
                if originals:
                    following = iter(captures)
                    tree.fill(self.inputs, lambda _: next(following))
                given = iter(traced)
                value = self.fun(*tree.rebuild(args, given), **tree.rebuild(kwargs, given))
                outputs = tree.flatten(value)
                captured = tree.flatten(self.outputs) if self.outputs is not None else []
                # What the handles hold now is what is returned: the containers get the originals back.
                outputs = [wrap(x._n) for x in (*outputs, *captured)]
            finally:
                if originals:
                    tree.restore(self.inputs, captures, nodes, originals)
            return (value, len(captured)), outputs

        state = current.state
        state.shapeless += self.shapeless
        try:
            inputs, (value, captured), outputs, constants, nodes = record_body(body, arrays)
        finally:
            state.shapeless -= self.shapeless
        # What the body does not read is no input: it need not have a value (captured state that an earlier call left).
        read = {id(child) for node in nodes for child in node.inputs}
        read.update(map(id, outputs))
        used = tuple(at for at, node in enumerate(inputs) if id(node) in read)
        return Trace(
            [inputs[at] for at in used], constants, nodes, outputs, tree=_shape_of(value), captured=captured,
            stream=current.state.stream, used=None if len(used) == len(inputs) else used,
        )  # fmt: skip


class _Leaf:
    """Stands for an array in the structure of what a function was given or returned."""


_ONE = _Leaf()


def _shape_of(value: Any) -> Any:
    """Return what a function returned with its arrays taken out; ``_ONE`` where it is one array."""
    if isinstance(value, array):
        return _ONE
    if isinstance(value, list):
        return [_shape_of(value[i]) for i in range(len(value))]
    if isinstance(value, tuple):
        return tree._like(value, [_shape_of(one) for one in value])
    if isinstance(value, dict):
        return {key: _shape_of(one) for key, one in value.items()}
    return value


def _filled(structure: Any, values: Any) -> Any:
    if structure is _ONE:
        return next(values)
    if isinstance(structure, list):
        return [_filled(one, values) for one in structure]
    if isinstance(structure, tuple):
        return tree._like(structure, [_filled(one, values) for one in structure])
    if isinstance(structure, dict):
        return {key: _filled(one, values) for key, one in structure.items()}
    return structure


def _constants(value: Any, arrays: list[array], key: list[Any]) -> None:
    """Take the arrays out of an argument and write down everything else that it is.

    Raises:
        ValueError: it holds a value of a type that is neither an array nor a constant.
    """
    if isinstance(value, array):
        arrays.append(value)
        key.append(_ONE)
    elif value is None or isinstance(value, str):
        key.append(value)
    elif isinstance(value, float):
        key.append((float, value.hex()))  # -0.0 is not 0.0, and nan is nan
    elif isinstance(value, bool | int):
        key.append((type(value), value))
    elif isinstance(value, list | tuple):
        key.append((type(value), len(value)))
        for i in range(len(value)):
            _constants(value[i], arrays, key)
    elif isinstance(value, dict):
        key.append((dict, len(value)))
        for name, one in value.items():
            if not isinstance(name, str | int):
                raise ValueError(  # noqa: TRY004  # MLX's type
                    f"[compile] Function arguments may only have strings and integers as keys, not "
                    f"{type(name).__name__}."
                )
            key.append(name)
            _constants(one, arrays, key)
    else:
        raise ValueError(
            "[compile] Function arguments must be trees of arrays or constants (floats, ints, strings, or None), but "
            f"received type {type(value).__name__}."
        )


def compiled(fun: Callable[..., Any], inputs: Any, outputs: Any, *, shapeless: bool) -> Callable[..., Any]:
    """Return the function that ``compile`` returns."""
    if not callable(fun):
        raise TypeError(f"[compile] expected a function, got {type(fun).__name__}.")
    traces = _Traces(fun, inputs, outputs, shapeless=shapeless)
    known = traces.known
    plain = inputs is None and outputs is None

    def call(*args: Any, **kwargs: Any) -> Any:
        state = current.state
        if state.tracing:
            # its body becomes part of what is being traced
            return fun(*args, **kwargs)
        if not _enabled[0]:
            # Another tape of the same nodes: a call that changes tapes is not remembered, and ``fun`` called each time.
            state.tape = [*state.tape]
            return fun(*args, **kwargs)
        # The common call: arrays only, nothing captured.
        stream = state.stream
        if plain and not kwargs:
            nodes = []
            kinds: list[Any] = []
            for x in args:
                if type(x) is not array:
                    break
                node = x._n
                nodes.append(node)
                kinds += (node.shape, node.dtype)
            else:
                key = (id(stream), tuple(kinds))
                trace = known.get(key)
                if trace is None:
                    trace = traces.find(key, list(args), args, kwargs, len(args))
                if trace.used is not None:
                    nodes = [nodes[at] for at in trace.used]
                if trace.constants:
                    nodes += trace.constants
                if trace.tree is not _ONE:
                    return _filled(trace.tree, iter(record_many(COMPILED, tuple(nodes), trace.specs, trace)))
                # ``record_many`` of one output, without its calls: this is done once a layer
                tape = state.tape
                dtype = trace.specs[0][1]
                whole = Node(COMPILED, tuple(nodes), trace, None, None, dtype, stream, None, len(tape))
                whole.outputs = trace.specs
                tape.append(whole)
                node = Node(ITEM, (whole,), 0, None, trace.specs[0][0], dtype, stream, None, len(tape))
                tape.append(node)
                return wrap(node)
        return _general(traces, stream, args, kwargs)

    functools.update_wrapper(call, fun)
    # what state was captured may have changed from call to call: only without it a call says all
    return remembering(call) if plain else call


def _general(traces: _Traces, stream: Any, args: Any, kwargs: Any) -> Any:
    """Call a compiled function with constants, keyword arguments or captured state."""
    arrays: list[array] = []
    constants: list[Any] = [id(stream)]
    _constants(args, arrays, constants)
    _constants(kwargs, arrays, constants)
    count = len(arrays)
    if traces.inputs is not None:
        arrays += tree.flatten(traces.inputs)
    kinds: list[Any] = []
    for x in arrays:
        kinds += (x._n.shape, x._n.dtype)
    key = (tuple(constants), tuple(kinds))
    trace = traces.known.get(key)
    if trace is None:
        trace = traces.find(key, arrays, args, kwargs, count)
    given = arrays if trace.used is None else [arrays[at] for at in trace.used]
    inputs = (*(x._n for x in given), *trace.constants)
    values = iter(record_many(COMPILED, inputs, trace.specs, trace))
    result = _filled(trace.tree, values)
    if trace.captured:
        tree.fill(traces.outputs, lambda old: next(values, old))
    return result
