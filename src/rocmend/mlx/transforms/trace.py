"""A recorded body: what a compiled function is to the graph, to executors and to files.

A ``Trace`` is made once for each structure of a function's arguments. A call of the function records one ``COMPILED``
node: its ``attrs`` is the trace (compared by identity), its inputs are the call's arrays and after them the trace's
``constants``, and its values are the outputs. An executor may put the body in its place: ``nodes`` in order, with the
node's inputs for ``inputs`` and ``constants``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.array import record
from rocmend.mlx.node import Node
from rocmend.mlx.primitive import IDENTITY, ITEM, STOP_GRADIENT, Primitive
from rocmend.mlx.transforms.graph import CUSTOM, sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocmend.mlx.dtypes import Dtype

__all__ = ["COMPILED", "Trace", "gather"]

UNCAPTURED = (
    "[compile] Attempting to compile a function with uncaptured inputs is not allowed. An array that is an argument, "
    "or is computed from one, was also used from outside of the function. Pass it as an argument or in inputs=."
)


class Trace:
    """A body of nodes between inputs and outputs. Nothing of it is ever computed in place: its nodes have no data.

    Traces of one function for other shapes are equal where their bodies differ in nothing else, so that what was
    planned for one holds for the other.

    Attributes:
        inputs: placeholders for the arrays of a call, or those of them that are ``used``.
        constants: nodes from outside that the body reads: inputs of each call after its own.
        nodes: the body, each node after its inputs, which are among ``inputs``, ``constants`` and ``nodes``.
        outputs: nodes with one value each, among ``inputs``, ``constants`` and ``nodes``.
        specs: shape and type of each output.
        tree: what the function returned; its arrays stand for the outputs.
        captured: how many of the outputs, the last ones, are captured state.
        stream: the default stream while it was recorded.
        device: torch's device of all nodes; None where they differ.
        kin: the same object for equal traces.
        used: which arrays of a call the inputs are for, by number; None for all.
    """

    __slots__ = (
        "__weakref__", "_steps", "captured", "constants", "device", "inputs", "kin", "nodes", "outputs", "places",
        "specs", "stream", "tree", "used",
    )  # fmt: skip

    def __init__(
        self,
        inputs: Sequence[Node],
        constants: Sequence[Node],
        nodes: Sequence[Node],
        outputs: Sequence[Node],
        *,
        tree: Any = None,
        captured: int = 0,
        stream: Any = None,
        kin: object = None,
        used: tuple[int, ...] | None = None,
    ) -> None:
        self.kin = object() if kin is None else kin
        self.inputs = tuple(inputs)
        self.constants = tuple(constants)
        self.nodes = tuple(nodes)
        self.outputs = tuple(outputs)
        self.specs: tuple[tuple[tuple[int, ...], Dtype], ...] = tuple((node.shape, node.dtype) for node in outputs)
        self.tree = tree
        self.captured = captured
        self.stream = stream
        self.used = used
        place = {id(node): i for i, node in enumerate((*self.inputs, *self.constants, *self.nodes))}
        self.places = tuple(place[id(node)] for node in outputs)
        self._steps = self._planned(place)
        devices = {node.stream.device.torch for node in self.nodes}
        self.device = devices.pop() if len(devices) == 1 else None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Trace) and self.kin is other.kin)

    def __hash__(self) -> int:
        return hash(self.kin)

    def __repr__(self) -> str:
        return f"Trace({len(self.inputs)} inputs, {len(self.constants)} constants, {len(self.nodes)} nodes)"

    def _planned(self, place: dict[int, int]) -> list[tuple[Node, tuple[int, ...], int, tuple[int, ...]]]:
        """Return the calls of the body: a node, the places of its inputs, its own, and those not needed any more."""
        first = len(self.inputs) + len(self.constants)
        last = dict.fromkeys(self.places, -1)
        steps: list[tuple[Node, tuple[int, ...], int, tuple[int, ...]]] = []
        for number in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[number]
            ins = tuple(place[id(child)] for child in node.inputs)
            done = []
            for i in dict.fromkeys((*ins, first + number)):
                if i not in last:
                    last[i] = number
                    done.append(i)
            steps.append((node, ins, first + number, tuple(done)))
        steps.reverse()
        return steps

    def run(self, tensors: Sequence[Any], device: Any) -> tuple[Any, ...]:
        """Compute the body with torch, one call after another.

        Args:
            tensors: values of ``inputs`` and ``constants``.
            device: torch's device that they are on.
        """
        from rocmend.mlx.execute import interpreter

        values: list[Any] = [*tensors, *(None,) * len(self.nodes)]
        for node, ins, out, done in self._steps:
            given = [values[i] for i in ins]
            if self.device != device:
                given = [interpreter.moved(x, node.stream.device.torch) for x in given]
            try:
                values[out] = node.op.run(node, *given)  # type: ignore[union-attr]
            except interpreter.FAILURES as error:
                raise interpreter.failure(node, given, error) from error
            for i in done:
                values[i] = None
        return tuple(interpreter.moved(values[i], device) for i in self.places)

    def inline(self, inputs: Sequence[Node]) -> list[Node]:
        """Record the body once more, for other inputs of the same shapes, and return its outputs."""
        new = {id(old): given for old, given in zip(self.inputs, inputs, strict=True)}
        new.update((id(node), node) for node in self.constants)
        for node in self.nodes:
            children = tuple(new[id(child)] for child in node.inputs)
            made = record(node.op, children, node.shape, node.dtype, node.attrs, node.dyn, node.stream)._n  # type: ignore[arg-type]
            if node.op.outputs is not None:  # type: ignore[union-attr]
                made.outputs = node.outputs
            new[id(node)] = made
        return [new[id(node)] for node in self.outputs]


def _run(node: Node, *tensors: Any) -> tuple[Any, ...]:
    return node.attrs.run(tensors, node.stream.device.torch)  # type: ignore[no-any-return]


# One call of a compiled function. It stands in no transformation: while one is under way, a compiled function is
# called as it was written, and its body is transformed.
COMPILED = Primitive("Compiled", _run, outputs=-1)


def gather(
    inputs: Sequence[Node], outputs: Sequence[Node], tape: Sequence[Node], originals: Iterable[Node] = ()
) -> tuple[list[Node], list[Node], list[Node]]:
    """Return the constants and the body that outputs need, and the outputs in it.

    The body's nodes are new ones: without identities, and with what is computed twice computed once.

    Args:
        inputs: placeholders.
        outputs: what was returned.
        tape: all that was recorded meanwhile, in order.
        originals: what the placeholders stood for, which the body must not read in another way.

    Raises:
        ValueError: it does, or reads a placeholder of another trace.
    """
    inside = {id(node) for node in tape}
    known = {id(node) for node in inputs}
    needed: set[int] = set()
    constants: list[Node] = []
    stack = list(reversed(outputs))
    while stack:
        node = stack.pop()
        if id(node) in known:
            continue
        known.add(id(node))
        if node.data is None and id(node) in inside:
            needed.add(id(node))
            stack += reversed(node.inputs)
        else:
            constants.append(node)
    _refuse(constants, {id(node) for node in originals})
    body, found = _simplified([node for node in tape if id(node) in needed], outputs)
    read = {id(child) for node in body for child in node.inputs}
    read.update(map(id, found))
    return [node for node in constants if id(node) in read], body, found


def _alias(node: Node) -> Node | None:
    """Return the node of the same value, where an operation has a meaning for transformations alone."""
    op = node.op
    if op is IDENTITY or op is STOP_GRADIENT:
        return node.inputs[0]
    if op is ITEM and node.inputs[0].op is CUSTOM:
        whole = node.inputs[0]
        place: int = whole.attrs.count + node.attrs
        return whole.inputs[place]
    return None


def _simplified(body: Sequence[Node], outputs: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Return a body, and its outputs, without identities and with what is computed twice computed once."""
    same: dict[int, Node] = {}  # what stands for a node
    made: dict[Any, Node] = {}
    order: list[Node] = []
    for node in body:
        alias = _alias(node)
        if alias is not None:
            same[id(node)] = same.get(id(alias), alias)
            continue
        inputs = tuple(same.get(id(child), child) for child in node.inputs)
        specs = node.outputs if node.op.outputs is not None else None  # type: ignore[union-attr]
        key = (node.op, tuple(map(id, inputs)), node.attrs, node.dyn, node.shape, node.dtype, node.stream, specs)
        before = made.get(key)
        if before is not None:
            same[id(node)] = before
            continue
        new = Node(node.op, inputs, node.attrs, node.dyn, node.shape, node.dtype, node.stream, None, -1)
        if specs is not None:
            new.outputs = specs
        same[id(node)] = made[key] = new
        order.append(new)
    found = [same.get(id(node), node) for node in outputs]
    needed = {id(node) for node in found}
    kept = []
    for node in reversed(order):
        if id(node) in needed:
            needed.update(map(id, node.inputs))
            kept.append(node)
    return kept[::-1], found


def _refuse(constants: Sequence[Node], originals: set[int]) -> None:
    """Raise where a constant is one of the originals, is computed from one, or has no value."""
    seen: set[int] = set()
    stack = list(constants)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if id(node) in originals or (node.op is None and node.data is None):
            raise ValueError(UNCAPTURED)
        if node.data is None:
            stack += sources(node)
