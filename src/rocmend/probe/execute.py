"""Running a case on a device and on the CPU as reference, and what is watched meanwhile."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmend.probe.oracle import flatten
from rocmend.runner.torch_device import synchronize

if TYPE_CHECKING:
    import torch

    from rocmend.probe.case import Case

POISON_BYTES = tuple(1 << power for power in range(9, 23))
"""Sizes of the blocks filled with NaN before a run; a caching allocator hands them out again for results."""

_FALLBACK_WORDS = ("fall back", "fallback", "falling back")
_FALLBACK_MIN_ELEMENTS = 256  # scalars, seeds and shapes live on the CPU by right


class Subject:
    """A case made ready on a device: the operation and its inputs there.

    Args:
        case: What to run.
        device: Where.
        wide: In float64, as the reference, with the case's reference function.
    """

    def __init__(self, case: Case, device: torch.device, *, wide: bool = False) -> None:
        self.case = case
        self.device = device
        self.wide = wide
        self.call = self._module(case.reference if wide and case.reference else case.call)
        self.inputs = tuple(self._moved(value) for value in case.inputs)
        self._gradient: torch.Tensor | None = None

    def _module(self, call: Callable[..., Any]) -> Callable[..., Any]:
        import torch

        if not isinstance(call, torch.nn.Module):
            return call
        moved = copy.deepcopy(call)
        return moved.double() if self.wide else moved.to(self.device)

    def _moved(self, value: Any) -> Any:
        import torch

        if isinstance(value, list | tuple):
            return type(value)(self._moved(part) for part in value)
        if not isinstance(value, torch.Tensor):
            return value
        if not self.wide:
            return value.to(self.device)
        if value.is_complex():
            return value.to(torch.complex128)
        return value.double() if value.is_floating_point() else value

    def run(self) -> list[torch.Tensor]:
        """Run the operation once, the gradients included where they are part of the case; return all results."""
        import torch

        call, inputs = self.call, self.inputs
        if self.case.fresh:
            call = copy.deepcopy(call) if isinstance(call, torch.nn.Module) else call
            inputs = tuple(value.clone() if isinstance(value, torch.Tensor) else value for value in inputs)
        if not self.case.backward:
            with torch.no_grad() if not self.case.fresh else torch.enable_grad():
                return self._kept(flatten(call(*inputs)))
        leaves = [self._leaf(value) for value in inputs]
        parameters = list(call.parameters()) if isinstance(call, torch.nn.Module) else []
        for parameter in parameters:
            parameter.grad = None
        results = flatten(call(*leaves))
        results[0].backward(self._seed_gradient(results[0]))
        gradients = [leaf.grad for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.grad is not None]
        gradients += [parameter.grad for parameter in parameters if parameter.grad is not None]
        return self._kept([*results, *gradients])

    def _kept(self, results: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return results that the next run does not overwrite: a captured graph always writes to the same places."""
        return [tensor.detach().clone() if self.case.compile else tensor.detach() for tensor in results]

    @staticmethod
    def _leaf(value: Any) -> Any:
        import torch

        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return value.detach().requires_grad_()
        return value

    def _seed_gradient(self, result: torch.Tensor) -> torch.Tensor:
        """Return the same gradient for the device and the reference: rounded to the probe's dtype, laid out plainly."""
        import torch

        if self._gradient is None:  # made once: a traced run is not to show our own work on the CPU
            made = torch.randn(result.shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
            self._gradient = made.to(self.narrow_dtype()).to(device=result.device, dtype=result.dtype)
        return self._gradient

    def narrow_dtype(self) -> torch.dtype:
        """Return the dtype that the probe's floating inputs were rounded to."""
        import torch

        for value in self.case.inputs:
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                return value.dtype
        return torch.float32


def poison(device: torch.device) -> None:
    """Fill memory with NaN and give it back, so that a result that is never written does not look right by chance."""
    import torch

    blocks = [
        torch.full((size // 4,), float("nan"), dtype=torch.float32, device=device)
        for size in POISON_BYTES
        for _ in range(2)
    ]
    synchronize(device)
    del blocks


def timed(run: Callable[[], list[torch.Tensor]], device: torch.device) -> tuple[list[torch.Tensor], float]:
    """Return the results of a run, waited for, and its time in milliseconds."""
    start = time.perf_counter()
    results = run()
    synchronize(device)
    return results, (time.perf_counter() - start) * 1000


@dataclass
class Watch:
    """What hints at work done on the CPU in place of the device.

    Attributes:
        operators: Operators that were given tensors on the CPU, by name.
        warnings: Warnings that speak of a fall-back.
    """

    operators: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def traced(run: Callable[[], list[torch.Tensor]], device: torch.device) -> Watch:
    """Run once more and note every operator that computes on the CPU although another device was asked for."""
    import warnings

    from torch.utils._python_dispatch import TorchDispatchMode

    seen: dict[str, None] = {}

    class _Mode(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            del types
            result = func(*args, **(kwargs or {}))
            if any(
                tensor.device.type == "cpu" and tensor.numel() >= _FALLBACK_MIN_ELEMENTS for tensor in flatten(result)
            ):
                seen[str(func)] = None
            return result

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with _Mode():  # type: ignore[no-untyped-call]
            run()
            synchronize(device)
    return Watch(list(seen), fallback_warnings([str(item.message) for item in caught]))


def fallback_warnings(messages: list[str]) -> list[str]:
    """Return the warnings that speak of falling back to the CPU."""
    return [
        text for text in messages if "cpu" in text.lower() and any(word in text.lower() for word in _FALLBACK_WORDS)
    ]


def identical(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    """Whether two results are the same in every bit; NaN equals NaN."""
    import torch

    if len(first) != len(second):
        return False
    return all(
        one.shape == other.shape and bool(torch.all((one == other) | ((one != one) & (other != other))))  # noqa: PLR0124
        for one, other in zip(first, second, strict=True)
    )


class Memory:
    """The memory that an operation needs beyond what its process held before.

    Args:
        device: Whose memory. Of a GPU it is what torch's allocator has handed out, the inputs included; of the CPU what
            became resident, where the kernel counts it afresh: blocks that were free before and are used again are not
            in it.
    """

    def __init__(self, device: torch.device) -> None:
        import torch

        self._device = device
        self._held = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
        self._counts = True

    def begin(self) -> None:
        """Count from now on."""
        import ctypes

        import torch

        if self._device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._device)
            return
        with contextlib.suppress(AttributeError):  # a libc without it keeps what was freed
            ctypes.CDLL(None).malloc_trim(0)
        try:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak becomes what is resident now
            self._held = _resident_bytes("VmRSS")
        except (OSError, ValueError):
            self._counts = False

    def peak(self) -> dict[str, int]:
        """Return the most since then as ``peak_memory_bytes``; nothing where it cannot be told apart."""
        import torch

        if self._device.type == "cuda":
            return {"peak_memory_bytes": max(0, int(torch.cuda.max_memory_allocated(self._device)) - self._held)}
        if not self._counts:
            return {}
        return {"peak_memory_bytes": max(0, _resident_bytes("VmHWM") - self._held)}


def _resident_bytes(field_name: str) -> int:
    """Return a size from this process's status.

    Raises:
        ValueError: It is not there.
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name == field_name:
            return int(value.split()[0]) * 1024
    raise ValueError(field_name)
