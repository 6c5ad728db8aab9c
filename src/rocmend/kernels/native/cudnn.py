"""Plans of cuDNN's back end: an operation on tensors, what cuDNN's heuristics take for it, ready to be executed.

Numbers stand for the names of ``cudnn_graph.h`` of version 9. Torch asks the same heuristics in the same way, and takes
the first answer that works, so that its results are the same.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from rocmend.kernels import native
from rocmend.kernels.captured import LibraryCall, Setting, provides

if TYPE_CHECKING:
    from rocmend.kernels.ops.conv.conv.cudnn import Convolution

LOG = logging.getLogger("rocmend.kernels")
VERSION = 9
_TYPES = {torch.float16: 2, torch.bfloat16: 9}
_FLOAT = 0
_CORRELATION = 1
_ALIGNED_BYTES = 16
_HEURISTICS = (0, 2)
"""The instant ones, and those that name what always works, in torch's order."""
_CREATE, _SET, _FINISH, _DESTROY, _EXECUTE, _STREAM = (
    "cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute", "cudnnBackendFinalize",
    "cudnnBackendDestroyDescriptor", "cudnnBackendExecute", "cudnnSetStream",
)  # fmt: skip


class _Kind(NamedTuple):
    """A type of attributes: its number, and what holds a value."""

    number: int
    held: Any


_HANDLE, _TYPE, _MODE = _Kind(0, ctypes.c_void_p), _Kind(1, ctypes.c_int), _Kind(7, ctypes.c_int)
_INT, _REAL = _Kind(3, ctypes.c_int64), _Kind(4, ctypes.c_float)
_HEURISTIC, _DESCRIPTOR = _Kind(8, ctypes.c_int), _Kind(15, ctypes.c_void_p)


class _Operation(NamedTuple):
    """Numbers of an operation's descriptor and of its attributes."""

    descriptor: int
    alpha: int
    beta: int
    convolution: int
    weight: int
    x: int
    y: int


_OPERATIONS = {
    "forward": _Operation(10, 700, 701, 702, 703, 704, 705),
    "input": _Operation(12, 706, 707, 708, 709, 710, 711),
    "weight": _Operation(11, 712, 713, 714, 715, 716, 717),
}


class Refused(Exception):  # noqa: N818  no error: torch calls cuDNN then
    """cuDNN is not there, is another version, or has no plan for an operation."""


@provides("convolution")
def convolution(index: int, one: Convolution, settings: Sequence[Setting]) -> LibraryCall | None:
    """Return the call of a convolution, given x, the weight and y; see ``plan``."""
    try:
        found = plan(one, index)
    except Refused:
        return None
    return LibraryCall(found.work, settings, found.workspace)


class ExecutionPlan(NamedTuple):
    """What executes an operation.

    Args:
        work: An object of the C module, called with a stream and the addresses of x, weight, y and the workspace.
        workspace: Bytes of the workspace; there is none where it is 0.
    """

    work: Any
    workspace: int


@functools.lru_cache(maxsize=1024)
def plan(one: Convolution, index: int) -> ExecutionPlan:
    """Return the plan of a convolution on a device.

    Raises:
        Refused: There is none.
    """
    if native.module() is None:
        raise Refused("no C module")
    library = _library(index)
    with torch.cuda.device(index), native.relaxed():
        return _planned(one, library)


def _planned(one: Convolution, library: _Library) -> ExecutionPlan:
    tensors = [
        library.tensor(number, one.dtype, sizes) for number, sizes in enumerate((one.x, one.weight, one.y), 1)
    ]  # fmt: skip
    axes = len(one.stride)
    convolution = library.descriptor(1)
    for attribute, kind, values in (
        (100, _TYPE, (_FLOAT,)), (101, _MODE, (_CORRELATION,)), (106, _INT, (axes,)), (102, _INT, (1,) * axes),
        (103, _INT, one.stride), (104, _INT, one.padding), (105, _INT, one.padding),
    ):  # fmt: skip
        convolution.set(attribute, kind, *values)
    convolution.finish()
    numbers = _OPERATIONS[one.direction]
    operation = library.descriptor(numbers.descriptor)
    operation.set(numbers.alpha, _REAL, 1.0)
    operation.set(numbers.beta, _REAL, 0.0)
    operation.set(numbers.convolution, _DESCRIPTOR, convolution)
    for attribute, tensor in zip((numbers.x, numbers.weight, numbers.y), tensors, strict=True):
        operation.set(attribute, _DESCRIPTOR, tensor)
    operation.finish()
    graph = library.descriptor(15)
    graph.set(800, _HANDLE, library.handle)
    graph.set(801, _DESCRIPTOR, operation)
    graph.finish()
    reason: Refused | None = None
    for engine in _engines(library, graph):
        made = library.descriptor(5)
        made.set(400, _HANDLE, library.handle)
        made.set(401, _DESCRIPTOR, engine)
        try:
            made.finish()
        except Refused as refused:  # not on this GPU; the next one may be
            reason = refused
            continue
        workspace = int(made.get(402, _INT, 1)[0])
        work = native.module().DnnPlan(library.turns, made.address, workspace > 0, (made, library))
        return ExecutionPlan(work, workspace)
    raise reason or Refused("no engine is fit")


def _engines(library: _Library, graph: _Descriptor) -> Iterator[_Descriptor]:
    """Yield the configurations that cuDNN proposes, the best first."""
    for mode in _HEURISTICS:
        heuristic = library.descriptor(4)
        heuristic.set(201, _DESCRIPTOR, graph)
        heuristic.set(200, _HEURISTIC, mode)
        heuristic.finish()
        found = [library.descriptor(3) for _ in range(heuristic.count(202, _DESCRIPTOR))]
        count = len(heuristic.get(202, _DESCRIPTOR, len(found), found)) if found else 0
        for one in found[:count]:
            one.keep(heuristic)
            yield one


class _Descriptor:
    """A descriptor of the back end, and those that it was made of.

    Args:
        library: Makes it.
        kind: Its number.
    """

    def __init__(self, library: _Library, kind: int) -> None:
        self._library, self._kept, made = library, [], ctypes.c_void_p()  # type: tuple[_Library, list[Any], Any]
        library.call(_CREATE, kind, ctypes.byref(made))
        self.address: int = made.value or 0
        weakref.finalize(self, library.function(_DESTROY), self.address).atexit = False

    def set(self, attribute: int, kind: _Kind, *values: Any) -> None:
        """Set an attribute."""
        self._kept += [one for one in values if isinstance(one, _Descriptor)]
        raw = [one.address if isinstance(one, _Descriptor) else one for one in values]
        array = (kind.held * len(raw))(*raw)
        self._library.call(_SET, self.address, attribute, kind.number, len(raw), ctypes.byref(array))

    def finish(self) -> None:
        """Say that all is set."""
        self._library.call(_FINISH, self.address)

    def keep(self, other: _Descriptor) -> None:
        """Keep another one as long as this."""
        self._kept.append(other)

    def count(self, attribute: int, kind: _Kind) -> int:
        """Return how many values an attribute has."""
        count = ctypes.c_int64()
        self._library.call(
            "cudnnBackendGetAttribute", self.address, attribute, kind.number, 0, ctypes.byref(count), None
        )
        return count.value

    def get(self, attribute: int, kind: _Kind, most: int, into: Sequence[_Descriptor] = ()) -> list[Any]:
        """Return an attribute's values; descriptors are filled, not made."""
        count, array = ctypes.c_int64(), (kind.held * most)(*[one.address for one in into])
        self._library.call(
            "cudnnBackendGetAttribute", self.address, attribute, kind.number, most, ctypes.byref(count),
            ctypes.byref(array),
        )  # fmt: skip
        return list(array)[: count.value]


class _Library:
    """The library, with a handle for a device, which is the current one while this is made.

    Raises:
        Refused: It is not there, not torch's, or has no handle.
    """

    def __init__(self) -> None:
        found = torch.backends.cudnn.version()
        if found is None or found // 10000 != VERSION:
            raise Refused(f"expected version {VERSION}, got {found}")
        try:
            self._found = ctypes.CDLL(f"libcudnn.so.{VERSION}")  # torch has loaded it
            self._functions = {
                name: getattr(self._found, name)
                for name in (_CREATE, _SET, _FINISH, _DESTROY, _EXECUTE, _STREAM, "cudnnBackendGetAttribute")
            }
            version = self._found.cudnnGetVersion
            create = self._found.cudnnCreate
        except (OSError, AttributeError) as error:
            raise Refused(str(error)) from error
        version.restype = ctypes.c_size_t
        if version() != found:
            raise Refused(f"expected torch's version {found}, got {version()}")
        address, number = ctypes.c_void_p, ctypes.c_int
        self._functions[_CREATE].argtypes = (number, address)
        self._functions[_SET].argtypes = (address, number, number, ctypes.c_int64, address)
        for name in (_FINISH, _DESTROY):
            self._functions[name].argtypes = (address,)
        self._functions["cudnnBackendGetAttribute"].argtypes = (
            address, number, number, ctypes.c_int64, address, address,
        )  # fmt: skip
        handle = ctypes.c_void_p()
        if create(ctypes.byref(handle)):
            raise Refused("no handle")
        self.handle: int = handle.value or 0
        addresses = [
            ctypes.cast(self._functions[name], ctypes.c_void_p).value or 0
            for name in (_CREATE, _SET, _FINISH, _DESTROY, _EXECUTE, _STREAM)
        ]
        self.turns = native.module().DnnHandle(self.handle, tuple(addresses))

    def call(self, name: str, *args: Any) -> None:
        """Call a function.

        Raises:
            Refused: It returns another status than success.
        """
        status = self._functions[name](*args)
        if status:
            raise Refused(f"{name}: status {status}")

    def function(self, name: str) -> Any:
        """Return a function."""
        return self._functions[name]

    def descriptor(self, kind: int) -> _Descriptor:
        """Return a new descriptor."""
        return _Descriptor(self, kind)

    def tensor(self, number: int, dtype: torch.dtype, sizes: Sequence[int]) -> _Descriptor:
        """Return the descriptor of a tensor with channels last, of a number of its own."""
        made = self.descriptor(17)
        made.set(901, _TYPE, _TYPES[dtype])
        made.set(902, _INT, *sizes)
        made.set(903, _INT, *channels_last(sizes))
        made.set(906, _INT, number)
        made.set(900, _INT, _ALIGNED_BYTES)
        made.finish()
        return made


def channels_last(sizes: Sequence[int]) -> list[int]:
    """Return the strides of ``[N, C, spatial...]`` with channels side by side."""
    strides, step = [0] * len(sizes), 1
    for axis in (1, *reversed(range(2, len(sizes))), 0):
        strides[axis] = step
        step *= sizes[axis]
    return strides


@functools.cache
def _libraries(index: int) -> _Library | Refused:
    try:
        with torch.cuda.device(index), native.relaxed():
            return _Library()
    except Refused as reason:
        LOG.debug("cuDNN is called by torch: %s", reason)
        return reason


def _library(index: int) -> _Library:
    found = _libraries(index)
    if isinstance(found, Refused):
        raise found
    return found
