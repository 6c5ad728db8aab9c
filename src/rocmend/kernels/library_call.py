"""A vendor library's function as a step of a captured call: launched like a kernel, with everything but addresses set.

A function that computes with torch cannot be captured. If it is known which function of which library torch would
call, that is planned when the call is captured, and called on replay. Calls computed normally go through torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rocmend.kernels import executor
from rocmend.kernels import launch as launcher
from rocmend.kernels.launch import Compiled

Setting = tuple[Callable[[], bool], bool]
"""A function of torch's settings, and what it must return for the step to be used."""


class LibraryCall:
    """A library's function, in place of a kernel.

    Args:
        work: Called with a stream and addresses.
        settings: With others than these the call is computed normally.
    """

    __slots__ = ("settings", "work")

    pre_run_hooks: tuple[Any, ...] = ()

    def __init__(self, work: Any, settings: Sequence[Setting] = ()) -> None:
        self.work, self.settings = work, tuple(settings)

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
        active.launch(self, (1,), tensors, {}, None)  # type: ignore[arg-type]  # there is no tuning record

    def launch(self, _grid: Sequence[int], tensors: Sequence[Any]) -> Compiled:
        """Compute on the device of the first tensor, on torch's current stream there."""
        index = tensors[0].get_device()
        with torch.cuda.device(index):
            self.work(launcher.stream_of(index), *[one.data_ptr() for one in tensors])
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
        from rocmend.kernels.capture import NotCapturableError

        raise NotCapturableError("the stream is captured: what a library needs may have to be created", lasting=False)
    return index
