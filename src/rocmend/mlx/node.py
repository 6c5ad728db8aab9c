"""The graph: what was asked for, not yet computed.

A ``Node`` never changes what it stands for. An ``array`` (see ``array.py``) is a handle that users see: an in-place
operation gives the handle another node, and every name of that handle sees it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from rocmend.mlx.accelerated import native

if TYPE_CHECKING:
    from rocmend.mlx.device import Device, Stream
    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.primitive import Primitive

__all__ = ["Node", "State", "current"]


class Node:
    """One value of the graph. ``array.record`` makes all nodes that have an operation.

    Attributes:
        op: what computes it; None: a leaf, whose ``data`` is there from the start.
        inputs: the nodes it is computed from; emptied once it is computed (unless a transformation is under way).
        attrs: what else the operation depends on, hashable and comparable; part of the structural key of a graph.
        dyn: integers that may change from one step of a program to the next (offsets, ends of slices) with the same
            structure otherwise; not part of the key.
        shape: None for an operation with several outputs, whose values are nodes of ``ITEM``.
        dtype: element type.
        stream: where it is computed.
        data: the tensor (of ``dtype.storage``), or a tuple of tensors; None until computed.
        pos: place in the tape it was recorded on; negative for a leaf.
        outputs: (shape, type) of each value of an operation with several outputs; not set on other nodes.
    """

    __slots__ = ("__weakref__", "attrs", "data", "dtype", "dyn", "inputs", "op", "outputs", "pos", "shape", "stream")

    outputs: tuple[tuple[tuple[int, ...], Dtype], ...]

    def __init__(
        self,
        op: Primitive | None,
        inputs: tuple[Node, ...],
        attrs: Any,
        dyn: tuple[int, ...] | None,
        shape: Any,
        dtype: Dtype,
        stream: Stream,
        data: Any,
        pos: int,
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.dyn = dyn
        self.shape = shape
        self.dtype = dtype
        self.stream = stream
        self.data = data
        self.pos = pos


if TYPE_CHECKING or native is None:
    _Base = object
else:
    Node = native.Node  # the same in C, and so the three attributes of a state that recording uses
    _Base = native.StateBase


class State(_Base):
    """What holds for operations recorded by one thread.

    Attributes:
        device: the default device.
        streams: the default stream of each device, where it was set.
        stream: the stream that an operation without one is recorded on.
        tracing: how many transformations are under way; while it is not 0, computed nodes keep their inputs.
        shapeless: how many functions are being traced for shapes that may change.
        tape: the nodes recorded since the last evaluation, in order.
        made: how many threads have a state, or had one.
    """

    made = 0

    __slots__ = (
        ("device", "shapeless", "streams")
        if native is not None
        else ("device", "shapeless", "stream", "streams", "tape", "tracing")
    )

    def __init__(self) -> None:
        from rocmend.mlx import device

        State.made += 1
        self.device: Device = device.begin_thread()
        self.streams: dict[Device, Stream] = {}
        self.stream: Stream = device.default_stream_of(self.device)
        self.tracing = 0
        self.shapeless = 0
        self.tape: list[Node] = []


class _Current(threading.local):
    state: State

    def __init__(self) -> None:
        self.state = State()


# ``current.state``: this thread's
current = _Current()
if native is not None:
    native.set_current(current)
