"""Executors of launches: the GPU of this machine, Triton's interpreter, or a recorder for another target.

An op's host code calls ``launch`` and allocates with ``allocate``; it learns where it runs from ``target_for`` only. So
the same op runs on a GPU, is checked in the interpreter, and is compiled for a GPU that is not there: the recorder gets
tensors on torch's ``meta`` device, which have a shape and no data, and keeps every launch.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from rocmend.kernels import caches
from rocmend.kernels import target as targets
from rocmend.kernels.target import Target
from rocmend.kernels.triton_cache import use_trusted_cache

if TYPE_CHECKING:
    import torch

    from rocmend.kernels.tuning.config import Config


use_trusted_cache()  # nothing of ours launches a kernel without this module


class Executor(Protocol):
    """Carries out launches for a target."""

    target: Target

    def launch(
        self, kernel: Any, grid: Sequence[int], args: Sequence[Any], constants: Mapping[str, Any], config: Config
    ) -> None:
        """Carry out one launch; see ``rocmend.kernels.launch.launch``."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch.

    Args:
        kernel: The Triton function.
        grid: Programs along each axis.
        args: Run-time arguments: tensors, numbers, None.
        constants: Compile-time constants by name, those of the tuning record among them.
        config: The tuning record.
    """

    kernel: Any
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    constants: dict[str, Any]
    config: Config


@dataclass(slots=True)
class Recorder:
    """Keeps launches instead of carrying them out, for a target that is not there."""

    target: Target
    launches: list[Launch] = field(default_factory=list)

    def launch(
        self, kernel: Any, grid: Sequence[int], args: Sequence[Any], constants: Mapping[str, Any], config: Config
    ) -> None:
        """Keep one launch."""
        self.launches.append(Launch(kernel, tuple(grid), tuple(args), dict(constants), config))


class Switch:
    """Holds the executor in force, in a field because each launch reads it."""

    active: Executor | None = None


switch = Switch()


def active() -> Executor | None:
    """Return the executor in force, or None: the GPU at hand, or the interpreter."""
    return switch.active


@contextlib.contextmanager
def using(executor: Executor) -> Iterator[None]:
    """Send every launch inside to an executor."""
    before, switch.active = switch.active, executor
    caches.forget()
    try:
        yield
    finally:
        switch.active = before
        caches.forget()


def target_for(device: torch.device) -> Target:
    """Return the target that kernels for tensors on a device are launched on."""
    active = switch.active
    # A capture sees tensors without data only: other threads go on computing meanwhile.
    if active is None or (device.type != "meta" and getattr(active, "meta_only", False)):
        return targets.of_device(device)
    return active.target


@functools.cache
def has_triton() -> bool:
    """Return whether Triton is installed."""
    return importlib.util.find_spec("triton") is not None


def interpreting() -> bool:
    """Return whether Triton's functions were defined for its interpreter (TRITON_INTERPRET=1)."""
    if not has_triton():
        return False
    import triton

    return bool(triton.knobs.runtime.interpret)


def triton_unavailable(target: Target) -> str | None:
    """Say why no Triton kernel can run on a target here, or None."""
    if not has_triton():
        return "triton is not installed"
    if switch.active is not None:
        return None
    if target.vendor == "cpu" and not interpreting():
        return "the tensors are on the CPU, where Triton's kernels run only in its interpreter (TRITON_INTERPRET=1)"
    return None
