"""What a captured call consists of: launches, library calls, allocations, and where their arguments come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels import launch as launcher
from rocmend.kernels.launch import BoundKernel, Compiled

Arguments = Sequence[Any]
"""A call's tensors and None, followed by the numbers that vary."""
ABSENT, TENSOR, NUMBER = range(3)
"""Kinds of a call's arguments."""
Setting = tuple[Callable[[], bool], bool]
"""A function of torch's settings, and what it must return for the step to be used."""


class NotCapturableError(Exception):
    """A call cannot be captured; it then runs normally.

    Args:
        reason: Why.
        lasting: It never can; otherwise only not now.
    """

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        super().__init__(reason)
        self.lasting = lasting


class LibraryCall:
    """A vendor library's function as a step of a captured call, launched like a kernel.

    A function that computes with torch cannot be captured. If it is known which function of which library torch would
    call, that is planned when the call is captured, and called on replay. Calls computed normally go through torch.

    Args:
        work: Called with a stream and addresses.
        settings: With others than these the call is computed normally.
        workspace_bytes: Size of the workspace, which is then the last address; 0 if there is none.
    """

    __slots__ = ("settings", "work", "workspace_bytes")

    pre_run_hooks: tuple[Any, ...] = ()

    def __init__(self, work: Any, settings: Sequence[Setting] = (), workspace_bytes: int = 0) -> None:
        self.work, self.settings, self.workspace_bytes = work, tuple(settings), workspace_bytes

    @property
    def kernel(self) -> LibraryCall:
        """The object that hooks would be set on: itself, and there are none."""
        return self

    def record(self, *tensors: torch.Tensor) -> None:
        """Make this a step of the call that is captured, with these tensors.

        Raises:
            RuntimeError: No call is captured.
        """
        active = executor.switch.active
        if active is None:
            raise RuntimeError("expected a call that is captured.")
        if self.workspace_bytes:
            size, device = (self.workspace_bytes,), tensors[0].device
            tensors = (*tensors, allocate.empty(size, dtype=torch.uint8, device=device))
        active.launch(self, (1,), tensors, {}, None)  # type: ignore[arg-type]  # there is no tuning record

    def launch(self, _grid: Sequence[int], tensors: Sequence[Any]) -> Compiled:
        """Compute on the device of the first tensor, on torch's current stream there."""
        index = tensors[0].get_device()
        with torch.cuda.device(index):
            self.work(launcher.stream_of(index), *[tensor.data_ptr() for tensor in tensors])
        return Compiled(self.run, (), (), self)

    def run(self, _x: int, _y: int, _z: int, stream: int, *addresses: int) -> None:
        """Compute, called as a launcher of Triton's is."""
        self.work(stream, *addresses)


def capturing_device() -> int | None:
    """Return the number of the device that this thread captures a call for; None if none is, or not for CUDA.

    Raises:
        NotCapturableError: Not while this thread captures a graph.
    """
    active = executor.switch.active
    index: int | None = getattr(active, "device_index", None)
    if index is None or not getattr(active, "in_this_thread", False) or launcher.HIP:
        return None
    if torch.cuda.is_current_stream_capturing():
        raise NotCapturableError("the stream is captured: what a library needs may have to be created", lasting=False)
    return index


_providers: dict[str, Callable[..., LibraryCall | None]] = {}
Provider = TypeVar("Provider", bound=Callable[..., LibraryCall | None])


def provides(name: str) -> Callable[[Provider], Provider]:
    """Register the function that returns the library call of a problem on a device; None if there is none."""

    def register(provider: Provider) -> Provider:
        _providers[name] = provider
        return provider

    return register


def library_call(name: str, *problem: Any) -> LibraryCall | None:
    """Return a library's function for a problem while a call is captured; None if torch must compute it.

    Args:
        name: ``matmul`` (``native/cublas.py``) or ``convolution`` (``native/cudnn.py``).
        problem: Arguments of its provider after the device's number.

    Raises:
        NotCapturableError: Not while this thread captures a graph.
    """
    provider, index = _providers.get(name), capturing_device()
    return None if provider is None or index is None else provider(index, *problem)


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


class Address(NamedTuple):
    """An argument of a launch that is the address of a tensor.

    Args:
        base: The tensor of the call.
        offset: In bytes.
    """

    base: int
    offset: int


class Number(NamedTuple):
    """An argument of a launch that is a number of the call.

    Args:
        argument: Which argument of the call.
    """

    argument: int


class CapturedLaunch(NamedTuple):
    """A captured launch.

    Args:
        kernel: The bound kernel, or a library's function in place of one.
        grid: Numbers of programs.
        args: Run-time arguments: numbers, ``Number``, and None in place of tensors.
        tensors: The tensors among them.
    """

    kernel: BoundKernel | LibraryCall
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    tensors: tuple[TensorArgument, ...]


class CompiledLaunch(NamedTuple):
    """A captured launch with its compiled kernel.

    Args:
        run: Triton's launcher, called with the grid, the stream, the prefix and the arguments.
        grid: Numbers of programs.
        prefix: See ``launch.Compiled``.
        args: ``Address``, ``Number``, numbers, None and constants.
        kernel: The compiled kernel.
    """

    run: Callable[..., Any]
    grid: tuple[int, int, int]
    prefix: tuple[Any, ...]
    args: tuple[Any, ...]
    kernel: Any


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

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels, each once."""
        return tuple(dict.fromkeys([launch.kernel.kernel for launch in self.launches]))

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings of all library calls."""
        library = [launch.kernel for launch in self.launches if isinstance(launch.kernel, LibraryCall)]
        return tuple(dict.fromkeys([setting for call in library for setting in call.settings]))
