"""Capture a call: run it with tensors that have no data, and record what it allocates and launches.

What is captured, a ``Captured``, is replayed by ``replay.py``.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rocmend.kernels import allocate, caches, executor, select
from rocmend.kernels.common import semaphores
from rocmend.kernels.executor import Launch, Recorder
from rocmend.kernels.launch import BoundKernel, bind
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config

Arguments = Sequence[Any]
"""A call's tensors and None, followed by the numbers that vary."""
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_CREATES = {"aten::empty", "aten::empty_strided", "aten::empty_like", "aten::new_empty", "aten::new_empty_strided"}
MAX_POOLED_BYTES = 32 << 20
"""Temporary tensors of up to so much share an allocation."""
ALIGNMENT_BYTES = 256
_lock = threading.Lock()  # one capture at a time


class NotCapturableError(Exception):
    """A call cannot be captured; it then runs normally.

    Args:
        reason: Why.
        lasting: It never can; otherwise only not now.
    """

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        super().__init__(reason)
        self.lasting = lasting


class TensorArgument(NamedTuple):
    """A tensor among the arguments of a launch.

    Args:
        position: Which argument of the launch.
        base: The tensor of the call whose memory it is in: arguments come first, then allocations, then the workspace.
        offset: Its offset there, in bytes.
        like: A tensor without data of the same type, shape and strides.
    """

    position: int
    base: int
    offset: int
    like: torch.Tensor


class VaryingNumber:
    """Stands for a number of the call while that is captured: it can be passed to a launch, and nothing else.

    Args:
        index: Which argument.
    """

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def _used(self, *_: Any) -> Any:
        raise NotCapturableError("it computes with a number that varies")

    __bool__ = __index__ = __int__ = __float__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = _used
    __hash__ = _used


class CapturedLaunch(NamedTuple):
    """A captured launch.

    Args:
        kernel: The bound kernel.
        grid: Numbers of programs.
        args: Run-time arguments: numbers, ``VaryingNumber``, and None in place of tensors.
        tensors: The tensors among them.
    """

    kernel: BoundKernel
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    tensors: tuple[TensorArgument, ...]


@dataclass(frozen=True, slots=True)
class Captured:
    """A captured call. Its tensors are numbered: arguments first, then allocations, then the workspace.

    Args:
        device_index: Of the device, or -1.
        outputs: Allocate the results and temporary tensors.
        zeroed: Tensors that are filled with zeros first.
        workspace: Returns the stream's counters and scratch memory, or None if there are none now; None if no launch
            uses them.
        launches: In their order.
        results: Tensors that are returned; None for None.
        result_type: Type of the tuple that is returned, or None for a single tensor.
    """

    device_index: int
    outputs: Sequence[allocate.Output]
    zeroed: Sequence[int]
    workspace: Callable[[], Sequence[torch.Tensor] | None] | None
    launches: Sequence[CapturedLaunch]
    results: Sequence[int | None]
    result_type: Any


class CaptureExecutor(Recorder):
    """Records the launches of the thread that captures; those of other threads are carried out."""

    meta_only = True

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._owner = threading.get_ident()
        self.requested: tuple[int, int] | None = None
        """Counters and bytes of the workspace."""
        self.workspace_tensors: tuple[torch.Tensor, ...] = ()

    def workspace(self, counters: int, size_bytes: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Stand in for ``semaphores.workspace``, and record the request.

        Raises:
            NotCapturableError: It is the second workspace.
        """
        if self.requested is not None:
            raise NotCapturableError("it requests two workspaces")
        tensors = (
            torch.empty(counters, dtype=torch.int32, device="meta"),
            torch.empty(-(-size_bytes // 8), dtype=torch.int64, device="meta"),
        )
        self.requested, self.workspace_tensors = (counters, size_bytes), tensors
        return tensors

    def uses(self, memory: int) -> bool:
        """Return whether a recorded launch has a part of some memory as an argument."""
        args = [arg for launch in self.launches for arg in launch.args if isinstance(arg, torch.Tensor)]
        return any(_storage_id(arg) == memory for arg in args)

    def launch(
        self, kernel: Any, grid: Sequence[int], args: Sequence[Any], constants: Mapping[str, Any], config: Config
    ) -> None:
        """Record a launch, or carry it out."""
        if threading.get_ident() == self._owner:
            super().launch(kernel, grid, args, constants, config)
        else:
            bind(kernel, constants, config).launch(grid, args)


class CaptureMode(TorchDispatchMode):
    """Knows the memory of the arguments and of allocations, and refuses whatever computes with torch."""

    def __init__(self, arguments: Arguments, recorder: CaptureExecutor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.recorder, self.arguments = recorder, len(arguments)
        self.zeroed: set[int] = set()
        self.bases: list[torch.Tensor | None] = [arg if isinstance(arg, torch.Tensor) else None for arg in arguments]
        self._indices = {_storage_id(tensor): index for index, tensor in enumerate(self.bases) if tensor is not None}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from importing its compiler, which takes a second, to have it skip this class."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry out one operation of torch if it only allocates or views."""
        del types
        out = func(*args, **(kwargs or {}))
        name: str = func._schema.name  # noqa: SLF001  public in all but name
        if name in _CREATES and isinstance(out, torch.Tensor):
            self._indices[_storage_id(out)] = len(self.bases)
            self.bases.append(out)
            return out
        if name == "aten::zero_" and self._is_fresh(out):
            self.zeroed.add(self.base_of(out))
            return out
        results = out if isinstance(out, (tuple, list)) else (out,)
        if func._schema.is_mutable or not all(tensor in self for tensor in results if isinstance(tensor, torch.Tensor)):  # noqa: SLF001
            raise NotCapturableError(f"it computes with {name}")
        return out

    def _is_fresh(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is in memory that was allocated and that no launch has used."""
        memory = _storage_id(tensor)
        return self._indices.get(memory, -1) >= self.arguments and not self.recorder.uses(memory)

    def __contains__(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is in known memory."""
        return _storage_id(tensor) in self._indices

    def base_of(self, tensor: torch.Tensor) -> int:
        """Return the index of the tensor whose memory another is in.

        Raises:
            NotCapturableError: It is in unknown memory.
        """
        try:
            return self._indices[_storage_id(tensor)]
        except KeyError:
            raise NotCapturableError("it uses memory that is neither an argument nor allocated") from None


def _storage_id(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)  # noqa: SLF001  the identity of a storage has no other name


def capture(function: Callable[[Arguments], Any], arguments: Arguments) -> Captured:
    """Capture what a call allocates and launches; nothing is computed.

    Args:
        function: Makes the call with nothing planned yet.
        arguments: Tensors and None, of which only types, devices, shapes and strides matter, and numbers that vary.

    Raises:
        NotCapturableError: The call does something else too, or launches do not go to a GPU or the interpreter now.
    """
    tensors = [arg for arg in arguments if isinstance(arg, torch.Tensor)]
    if not tensors:
        raise NotCapturableError("it has no tensor")
    device = tensors[0].device
    if executor.switch.active is not None or select.observing():
        raise NotCapturableError("launches go elsewhere, or choices are observed", lasting=False)
    target = executor.target_for(device)
    if unavailable := executor.triton_unavailable(target):
        raise NotCapturableError(unavailable)
    for tensor in tensors:
        if tensor.device != device or type(tensor) not in _PLAIN or tensor.is_conj() or tensor.is_neg():
            raise NotCapturableError("tensors of several devices, or of a special kind")
    meta = tuple([_without_data(arg, index) for index, arg in enumerate(arguments)])
    if not _lock.acquire(blocking=False):
        raise NotCapturableError("another thread captures", lasting=False)
    try:
        with _recording(target) as recorder, CaptureMode(meta, recorder) as mode:
            try:
                result = function(meta)
            except NotCapturableError:
                raise
            except Exception as error:  # the same call has just computed: whatever this is comes of having no data
                raise NotCapturableError(f"it needs data: {error}") from error
        return _captured(mode, result, device)
    finally:
        _lock.release()


def _without_data(argument: Any, index: int) -> Any:
    """Return the placeholder of an argument during a capture: a meta tensor, None or a varying number."""
    if isinstance(argument, torch.Tensor):
        return torch.empty_strided(argument.shape, argument.stride(), dtype=argument.dtype, device="meta")
    return None if argument is None else VaryingNumber(index)


@contextlib.contextmanager
def _recording(target: Target) -> Iterator[CaptureExecutor]:
    """Record this thread's launches, with empty caches; nothing that is cached inside stays."""
    recorder = CaptureExecutor(target)
    with caches.isolated():
        executor.switch.active = recorder
        try:
            yield recorder
        finally:
            executor.switch.active = None


def _captured(mode: CaptureMode, result: Any, device: torch.device) -> Captured:
    """Return the captured call, with its tensors numbered.

    Raises:
        NotCapturableError: An argument of a launch or a result is not in known memory.
    """
    result_type: Any = type(result) if isinstance(result, tuple) else None
    values = result if isinstance(result, tuple) else (result,)
    results = [_result_index(value, mode) for value in values]
    launches = [_captured_launch(launch, mode) for launch in mode.recorder.launches]
    requested = mode.recorder.requested
    workspace = [mode.base_of(tensor) for tensor in mode.recorder.workspace_tensors]
    layouts = {
        index: base for index, base in enumerate(mode.bases) if index >= mode.arguments and index not in workspace
    }
    layouts |= {index: value for value, index in zip(values, results, strict=True) if index in layouts}
    returned = [index for index in results if index is not None]
    if len(returned) != len(set(returned)):
        raise NotCapturableError("two results share memory")
    used = sorted(({part.base for launch in launches for part in launch.tensors} | set(returned)) & set(layouts))
    pooled, size = _pool(layouts, [index for index in used if index not in returned and index not in mode.zeroed])
    used = [index for index in used if index not in pooled]
    numbers: dict[int | None, int] = {index: index for index in range(mode.arguments)}
    order = [*used, *([None] if pooled else []), *workspace]
    numbers |= {old: mode.arguments + new for new, old in enumerate(order)}
    outputs = [
        allocate.Output(tensor.shape, tensor.dtype, device, tensor.stride())
        for tensor in (layouts[index] for index in used)
        if tensor is not None
    ]
    if pooled:
        outputs.append(allocate.Output((size,), torch.uint8, device))
        numbers |= dict.fromkeys(pooled, numbers[None])

    def moved(part: TensorArgument) -> TensorArgument:
        return part._replace(base=numbers[part.base], offset=part.offset + pooled.get(part.base, 0))

    return Captured(
        device_index=-1 if device.index is None else device.index,
        outputs=outputs,
        zeroed=[numbers[index] for index in used if index in mode.zeroed],
        workspace=None if requested is None else functools.partial(semaphores.workspace, device, *requested),
        launches=[launch._replace(tensors=tuple(map(moved, launch.tensors))) for launch in launches],
        results=[None if index is None else numbers[index] for index in results],
        result_type=result_type,
    )


def _pool(layouts: Mapping[int, torch.Tensor | None], temporary: Sequence[int]) -> tuple[dict[int, int], int]:
    """Return the offsets of small temporary tensors in one that holds them all, and its size: allocations take time.

    Args:
        layouts: The allocated tensors by index.
        temporary: Those among them that are not returned.
    """
    offsets: dict[int, int] = {}
    size = 0
    for index in temporary:
        tensor = layouts[index]
        needed = 0 if tensor is None else tensor.untyped_storage().nbytes()
        if needed <= MAX_POOLED_BYTES:
            offsets[index] = size
            size += -(-needed // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return (offsets, size) if len(offsets) > 1 else ({}, 0)


def _captured_launch(launch: Launch, mode: CaptureMode) -> CapturedLaunch:
    """Return a launch with its tensors as parts of known memory."""
    tensors, args = [], list(launch.args)
    for position, arg in enumerate(launch.args):
        if isinstance(arg, torch.Tensor):
            offset = int(arg.storage_offset()) * arg.element_size()
            tensors.append(TensorArgument(position, mode.base_of(arg), offset, arg))
            args[position] = None
    bound = bind(launch.kernel, launch.constants, launch.config)
    return CapturedLaunch(bound, launch.grid, tuple(args), tuple(tensors))


def _result_index(result: Any, mode: CaptureMode) -> int | None:
    """Return the index of the tensor that a result is; None for None.

    Raises:
        NotCapturableError: It is no whole tensor.
    """
    if result is None:
        return None
    if not isinstance(result, torch.Tensor):
        raise NotCapturableError("it returns more than tensors")
    index = mode.base_of(result)
    base = mode.bases[index]
    same = base is not None and (result.dtype, result.shape, result.stride()) == (base.dtype, base.shape, base.stride())
    if index < mode.arguments:
        if not same or result.storage_offset():
            raise NotCapturableError("it returns a view of an argument")
    elif result.numel() and not same:
        reach = 1 + sum((size - 1) * stride for size, stride in zip(result.shape, result.stride(), strict=True))
        if result.storage_offset() or reach * result.element_size() != result.untyped_storage().nbytes():
            raise NotCapturableError("it returns a part of an allocation")
    return index
