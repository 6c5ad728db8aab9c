"""A case of an op's suite: fresh random inputs of given shapes and types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import torch

from rocmend.kernels.dtypes import BY_NAME

Size = Literal["tiny", "small", "large"]


def size_of(count: int, tiny: int, small: int) -> Size:
    """Return the class of sizes of a number of elements, given the most elements of ``tiny`` and ``small``."""
    return "tiny" if count <= tiny else "small" if count <= small else "large"


def sizes(shape: Sequence[int]) -> str:
    """Return a shape as in the names of cases: ``7x4096``."""
    return "x".join(map(str, shape))


KEPT = 1 << 18
"""Elements from which on a draw is kept for the next maker."""


class Draw(NamedTuple):
    """What a maker drew.

    Args:
        values: The tensor.
        state: Of the generator afterwards.
    """

    values: torch.Tensor
    state: torch.Tensor


class Maker:
    """Makes inputs on a device from a seed: random numbers are drawn on the CPU, so that every device gets the same.

    Args:
        device: Where the tensors go; on ``meta`` they have a shape and no data.
        seed: Of the generator.
        draws: Large draws of an earlier maker of this device and seed, or an empty list that this maker fills: they are
            copied on the device then, which spares seconds. Nothing else differs: a copy is a tensor of its own, and
            the generator goes on from where it stood.
    """

    def __init__(self, device: torch.device, seed: int, draws: list[Draw] | None = None) -> None:
        self.device = device
        self.generator = torch.Generator().manual_seed(seed)
        self.draws, self.at = draws, 0

    def normal(self, *shape: int, dtype: str = "float32", scale: float = 1.0) -> torch.Tensor:
        """Return normal random numbers times ``scale``."""
        if self.device.type == "meta":
            return torch.empty(shape, dtype=BY_NAME[dtype], device=self.device)
        if self.device.type == "cuda" and torch.Size(shape).numel() > 1 << 24:
            return self._large(shape, dtype, scale)

        def draw() -> torch.Tensor:
            values = torch.randn(shape, generator=self.generator) * scale
            return values.to(BY_NAME[dtype]).to(self.device)

        return self._drawn(torch.Size(shape).numel(), draw)

    def _drawn(self, count: int, draw: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Draw, or copy what the earlier maker drew at this place."""
        if self.draws is None or count < KEPT:
            return draw()
        if self.at == len(self.draws):
            values = draw()
            self.draws.append(Draw(values, self.generator.get_state()))
        values, state = self.draws[self.at]
        self.generator.set_state(state)
        self.at += 1
        return values.clone()

    def _large(self, shape: Sequence[int], dtype: str, scale: float) -> torch.Tensor:
        """Draw on the device: gigabytes through the CPU's generator take minutes."""
        seed = int(torch.randint(1 << 62, (1,), generator=self.generator))
        generator = torch.Generator(self.device).manual_seed(seed)
        return torch.randn(shape, generator=generator, device=self.device, dtype=BY_NAME[dtype]).mul_(scale)

    def integers(self, low: int, high: int, *shape: int, dtype: str = "int32") -> torch.Tensor:
        """Return random integers, ``low`` included, ``high`` not."""
        if self.device.type == "meta":
            return torch.empty(shape, dtype=BY_NAME[dtype], device=self.device)

        def draw() -> torch.Tensor:
            values = torch.randint(low, high, shape, generator=self.generator, dtype=torch.int64)
            return values.to(BY_NAME[dtype]).to(self.device)

        return self._drawn(torch.Size(shape).numel(), draw)

    def of(self, values: Any, dtype: str) -> torch.Tensor:
        """Return given values as a tensor."""
        return torch.tensor(values, dtype=BY_NAME[dtype], device="cpu").to(self.device)

    def edges(self, *shape: int, dtype: str, largest: bool = True) -> torch.Tensor:
        """Return normal numbers with NaN, both infinities, both zeros, denormals and the largest number strewn in.

        Args:
            shape: The tensor's shape.
            dtype: Its type.
            largest: Among them the largest number; False for sums that are computed in fp32 and would overflow there.
        """
        if self.device.type == "meta" or 0 in shape:
            return self.normal(*shape, dtype=dtype)
        info = torch.finfo(BY_NAME[dtype])
        odd = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, info.tiny / 4, -info.tiny / 2]
        odd += [info.max, info.min] if largest else []
        # Each place once and on the CPU: writing one twice gives either value on a GPU.
        flat = torch.randn(torch.Size(shape).numel(), generator=self.generator).to(BY_NAME[dtype])
        places = torch.randperm(flat.numel(), generator=self.generator)[: max(len(odd), flat.numel() // 8)]
        chosen = torch.tensor(odd, dtype=torch.float64).repeat(len(places) // len(odd) + 1)[: len(places)]
        flat[places] = chosen.to(flat.dtype)
        return flat.reshape(shape).to(self.device)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an op's public function.

    Args:
        args: Positional arguments.
        kwargs: Arguments by name.
        exact: Names or positions of floating arguments that stay as they are when the reference is computed in float64
            (scales whose very bits matter).
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    exact: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A case of an op's suite.

    Args:
        name: Unique within the op, e.g. ``bf16-7x4096``.
        make: Makes the call.
        dtype: Of the output, which names the tolerance.
        size: ``tiny`` and ``small`` run in the interpreter; ``large`` needs a GPU. An emulator takes ``tiny`` only.
        function: Public function to call; None for the op's first.
        reference: Name of the reference beside the op's, or ``module:function``; None for the public function's name.
        compiled: Shapes are those of real use: the launches it makes are compiled for every gfx target.
        edges: What is special: ``nan``, ``empty``, ``one``, ``strides``, ``odd`` …
        deterministic: Two runs must agree bit by bit; False only where atomics on floats are documented.
        tolerance: Instead of the op's.
        implementation: What the case is about; where it does not support the case, what is selected there runs.
    """

    name: str
    make: Callable[[Maker], Call]
    dtype: str
    size: Size = "small"
    function: str | None = None
    reference: str | None = None
    compiled: bool = False
    edges: tuple[str, ...] = ()
    deterministic: bool = True
    tolerance: Any = None
    implementation: str = ""

    def by(self, implementation: str) -> Case:
        """Return the case for one implementation."""
        return replace(self, name=f"{self.name}-{implementation}", implementation=implementation)

    @property
    def preferences(self) -> tuple[str, ...]:
        """What the case is run under: see ``select.prefer``."""
        return (self.implementation, "triton") if self.implementation else ("triton",)
