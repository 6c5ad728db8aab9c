"""What is measured: one call of an op at one size, with its peers."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from rocmend.kernels import registry
from rocmend.kernels.dtypes import BY_NAME
from rocmend.kernels.op import Tolerance, resolve
from rocmend.kernels.suite import Call, Maker
from rocmend.kernels.suite.compare import compare
from rocmend.kernels.suite.run import flatten, in_float64

Goal = tuple[str, float]
"""What a figure is held against, and how much: ``of_floor`` and ``tflops`` at least; ``of_peer:NAME`` the rate of the
fastest peer whose name begins so, at least; ``times:BENCH`` another bench's time, at most."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer that takes other arguments than our function.

    Args:
        function: What is timed.
        arguments: Makes its arguments from ours, before anything is timed.
        same: Whether its result is ours, so that the two are compared.
    """

    function: Callable[..., Any]
    arguments: Callable[[Call], Call]
    same: bool = False


@dataclass(frozen=True, slots=True)
class Bench:
    """A call of an op to be timed.

    Args:
        op: The op's name.
        name: Unique within the op: ``bf16-16384x4096``.
        make: Makes one set of arguments from a ``Maker`` (as a case of the suite does). It is called several times with
            other seeds, and the sets are used in turn, so that no cache serves them.
        dtype: Of the output (names the tolerance).
        bytes: Bytes that must travel: each operand once.
        flops: Arithmetic that must be done; 0 where only bytes count.
        rate: Which measured rate bounds the arithmetic: ``bfloat16``, ``float16``, ``float32``.
        function: Our public function, by name; None for the op's first.
        call: Our function itself, where it is none of the public ones.
        prefer: Tier or implementation that is measured; empty for the one that is chosen.
        rank: 1 for the figures that the kernels are held against, 2 for what is good to know: measured last.
        goals: What the figure is held against.
        peers: Name to a function of the same arguments (or a ``Peer``): ``torch``, ``torch.compile``, ``cudnn`` …
        mlx: ``module:function`` and its JSON arguments, called in a child process that has MLX: it returns a list of
            functions without arguments, each on data of its own, that return MLX arrays.
        gate: Says what is wrong with our output for a set of arguments, or None; by default the op's reference in
            float64 and the op's tolerance decide.
        reference: ``module:function`` for the default gate, instead of the op's.
        tolerance: For the default gate, instead of the op's.
    """

    op: str
    name: str
    make: Callable[[Maker], Call]
    dtype: str
    bytes: float
    flops: float = 0.0
    rate: str = "bfloat16"
    function: str | None = None
    call: Callable[..., Any] | None = None
    prefer: str = ""
    rank: int = 1
    goals: tuple[Goal, ...] = ()
    peers: Mapping[str, Callable[..., Any] | Peer] = field(default_factory=dict)
    mlx: tuple[str, Mapping[str, Any]] | None = None
    gate: Callable[[Call, Any], str | None] | None = None
    reference: str | None = None
    tolerance: Tolerance | None = None

    def ours(self) -> Callable[..., Any]:
        """Return our public function."""
        if self.call is not None:
            return self.call
        functions = registry.get(self.op).functions
        function: Callable[..., Any] = resolve(
            functions[self.function] if self.function else next(iter(functions.values()))
        )
        return function


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``torch.compile`` of a function, made at the first call: listing benches compiles nothing."""

    @functools.cache
    def made() -> Callable[..., Any]:
        # Each size compiles anew, and all sizes of a function count together.
        torch._dynamo.config.recompile_limit = 1024  # noqa: SLF001  the documented name
        whole: Callable[..., Any] = torch.compile(function, dynamic=False)
        return whole

    def call(*args: Any, **kwargs: Any) -> Any:
        return made()(*args, **kwargs)

    return call


def topics() -> list[str]:
    """Return the names of the topics."""
    from benchmarks.kernels import topics as package

    names = (info.name for info in pkgutil.iter_modules(package.__path__))
    return sorted(name for name in names if not name.startswith("_") and not name.endswith("_mlx"))


def benches(topic: str, *, tiny: bool = False) -> Iterator[Bench]:
    """Yield what a topic measures; ``tiny``: the same in sizes for the interpreter."""
    yield from importlib.import_module(f"benchmarks.kernels.topics.{topic}").benches(tiny=tiny)


def verdict(bench: Bench, call: Call, out: Any) -> tuple[str | None, float | None]:
    """Return what is wrong with our output, or None, and its worst error as a multiple of what is allowed."""
    if bench.gate is not None:
        return bench.gate(call, out), None
    op = registry.get(bench.op)
    tolerance = bench.tolerance or op.tolerance[bench.dtype]
    wide = call if tolerance.exact else in_float64(call)
    wanted = flatten(resolve(bench.reference or op.reference)(*wide.args, **wide.kwargs))
    got = flatten(out)
    if len(got) != len(wanted):
        return f"{len(got)} outputs, expected {len(wanted)}", None
    worst = max((compare(one, want, tolerance) for one, want in zip(got, wanted, strict=True)), key=lambda c: c.worst)
    return (None if worst.ok else worst.detail), worst.worst


def distance(out: Any, other: Any) -> float | None:
    """Return the largest difference of a peer from us, relative to the largest magnitude; None where shapes differ."""
    worst = 0.0
    ours, theirs = flatten(out), flatten(other)
    if len(ours) != len(theirs):
        return None
    for one, two in zip(ours, theirs, strict=True):
        if one.numel() != two.numel():
            return None
        if one.numel():
            first, second = one.reshape(-1).float(), two.reshape(-1).float()
            peak = first.nan_to_num(0.0, 0.0, 0.0).abs().max().clamp_min(1e-30)
            worst = max(worst, float((first - second).nan_to_num(0.0).abs().max() / peak))
    return worst


class Quick(Maker):
    """Draws on the GPU, where numbers need not be the same on every device and a set must not take seconds."""

    def normal(self, *shape: int, dtype: str = "float32", scale: float = 1.0) -> torch.Tensor:
        """Return normal random numbers times ``scale``."""
        if self.device.type == "cuda" and torch.Size(shape).numel() > _FEW:
            return self._large(shape, dtype, scale)
        return Maker.normal(self, *shape, dtype=dtype, scale=scale)

    def integers(self, low: int, high: int, *shape: int, dtype: str = "int32") -> torch.Tensor:
        """Return random integers, ``low`` included, ``high`` not."""
        if self.device.type != "cuda" or torch.Size(shape).numel() <= _FEW:
            return Maker.integers(self, low, high, *shape, dtype=dtype)
        seed = int(torch.randint(1 << 62, (1,), generator=self.generator))
        generator = torch.Generator(self.device).manual_seed(seed)
        return torch.randint(low, high, shape, generator=generator, device=self.device, dtype=BY_NAME[dtype])


_FEW = 1 << 16


def maker(device: torch.device, number: int) -> Maker:
    """Return what makes the set of arguments with a number."""
    return Quick(device, 1000 + number)
