"""Steps of a recorded call that a vendor's library makes: launched like kernels, with everything but addresses decided.

A function that computes with torch cannot be recorded. Where it is known which function of which library torch would
come to, that is planned once, when the call is recorded, and called from the record in C; calls that are made as they
are written go through torch as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rocmend.kernels import executor, fast, native

Setting = tuple[Callable[[], bool], bool]
"""A function, and what it returns where the call is to be made so: of torch's settings."""


class Called:
    """What a library computes, in place of a kernel.

    Args:
        work: An object of the C module: called with a stream and addresses.
        settings: With others than these the call is made as it is written.
    """

    __slots__ = ("settings", "work")

    pre_run_hooks: tuple[Any, ...] = ()

    def __init__(self, work: Any, settings: Sequence[Setting] = ()) -> None:
        self.work, self.settings = work, tuple(settings)

    @property
    def kernel(self) -> Called:
        """What hooks would be set on: itself, and there are none."""
        return self

    def noted(self, *tensors: torch.Tensor) -> None:
        """Have the call that is recorded make this step, with these tensors.

        Raises:
            RuntimeError: No call is recorded.
        """
        notes = executor.switch.active
        if notes is None:
            raise RuntimeError("expected a call that is recorded.")
        notes.launch(self, (1,), tensors, {}, None)  # type: ignore[arg-type]  # there is no tuning record

    def launched(self, _grid: Sequence[int], tensors: Sequence[Any]) -> tuple[Any, ...]:
        """Compute on the device of the first tensor, on torch's current stream there; see ``fast.Bound.launched``."""
        index = tensors[0].get_device()
        with torch.cuda.device(index):
            self.work(fast.stream_of(index), *[one.data_ptr() for one in tensors])
        return self.run, (), (), self

    def run(self, _x: int, _y: int, _z: int, stream: int, *addresses: int) -> None:
        """Compute, as a launcher of Triton's is called."""
        self.work(stream, *addresses)


def recording() -> int | None:
    """Return the number of the device that a call is recorded for in this thread; None where none is, or not for CUDA.

    Without the C module no step of a library can be recorded.

    Raises:
        Unsuited: Not while this thread captures a graph.
    """
    notes = executor.switch.active
    index: int | None = getattr(notes, "device_index", None)
    if index is None or not getattr(notes, "mine", False) or fast.HIP or native.module() is None:
        return None
    if torch.cuda.is_current_stream_capturing():
        from rocmend.kernels.watched import Unsuited

        raise Unsuited("the stream is captured: what a library needs may have to be made", lasting=False)
    return index
