"""What a probe builds: the operation, its inputs, and how its result is judged."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

SEED = 20_260_101


class SkipProbe(Exception):  # noqa: N818  it is no error: the probe has nothing to say here
    """The probe does not apply here; the message says why."""


@dataclass
class Case:
    """An operation with its inputs.

    Attributes:
        call: The operation: a module, or a function of the inputs. It must not change its inputs, unless ``fresh``.
        inputs: Tensors on the CPU in the probe's dtype, and anything else the call takes.
        reference: The same on float64 inputs on the CPU; None where ``call`` itself serves.
        backward: Gradients of all floating inputs and of the module's parameters are compared too.
        compile: Turns the operation into the compiled one; runs in the phase ``compile``.
        exact: The result must equal the reference in every bit of its dtype.
        loosen: Factor on the dtype's tolerance, for many layers or cancellation.
        check: Judges the outputs where no reference can (random numbers): returns what is wrong, or nothing.
        fresh: Module and inputs are copied for each run, because the operation changes them.
        must_repeat: Another result from the same inputs is wrong, even within the tolerance.
        host: The operation works on the CPU too on purpose: no fall-back is looked for.
    """

    call: Callable[..., Any]
    inputs: tuple[Any, ...] = ()
    reference: Callable[..., Any] | None = None
    backward: bool = False
    compile: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    exact: bool = False
    loosen: float = 1.0
    check: Callable[[list[torch.Tensor]], str] | None = None
    fresh: bool = False
    must_repeat: bool = False
    host: bool = False


@dataclass
class Context:
    """Where and in what dtype a case is to be built, and the source of its inputs.

    Attributes:
        device: The device that is probed.
        dtype: The dtype that is probed.
        generator: Seeded; all inputs come from it, on the CPU.
    """

    device: torch.device
    dtype: torch.dtype
    generator: torch.Generator = field(repr=False)

    @classmethod
    def make(cls, device: str, dtype: str, seed: int = SEED) -> Context:
        """Return the context of a device and a dtype's name, with the seed set."""
        import torch

        torch.manual_seed(seed)
        return cls(torch.device(device), getattr(torch, dtype), torch.Generator().manual_seed(seed))

    def randn(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        """Return normally distributed values in the probe's dtype, on the CPU."""
        import torch

        wide = torch.complex128 if self.dtype.is_complex else torch.float64
        return (torch.randn(*shape, dtype=wide, generator=self.generator) * scale).to(self.dtype)

    def uniform(self, low: float, high: float, *shape: int) -> torch.Tensor:
        """Return uniformly distributed values in the probe's dtype, on the CPU."""
        import torch

        return (torch.rand(*shape, dtype=torch.float64, generator=self.generator) * (high - low) + low).to(self.dtype)

    def integers(self, low: int, high: int, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Return integers from low to high - 1 on the CPU, int64 unless told."""
        import torch

        return torch.randint(low, high, shape, generator=self.generator, dtype=dtype or torch.int64)

    def permutation(self, count: int) -> torch.Tensor:
        """Return the numbers 0 … count - 1 in random order."""
        import torch

        return torch.randperm(count, generator=self.generator)

    def distinct(self, *shape: int) -> torch.Tensor:
        """Return values of the probe's dtype of which no two are equal, in random order.

        Whole numbers: a 16-bit float holds 2048 of them (bfloat16 256) without rounding.
        """
        import math

        count = math.prod(shape)
        return (self.permutation(count) - count // 2).to(self.dtype).reshape(shape)

    def skip(self, reason: str) -> SkipProbe:
        """Return the exception that says that the probe does not apply here."""
        return SkipProbe(reason)


def missing(needs: tuple[str, ...], device: torch.device) -> str:
    """Return which of the things that a probe needs is not here, in words; empty where all are."""
    import torch

    if "cuda" in needs and device.type != "cuda":
        return f"it needs a GPU; the device probed is {device.type}"
    if "two-devices" in needs and (device.type != "cuda" or torch.cuda.device_count() < 2):
        return "it needs two GPUs"
    if "triton" in needs and importlib.util.find_spec("triton") is None:
        return "triton is not installed"
    if "compile" in needs and device.type == "cpu" and shutil.which(os.environ.get("CXX") or "g++") is None:
        return "torch.compile writes C++ for the CPU, and there is no compiler for it (g++, or the one that CXX names)"
    return ""
