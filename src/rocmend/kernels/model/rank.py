"""Order the candidates of a kernel by what the model says of them. Imports neither torch nor triton: workers do."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rocmend.kernels.compiled.pool import Pool
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.model.estimate import Estimate
from rocmend.kernels.tuning.config import Value

LIMIT_S = 40.0
"""Of compiling one candidate for all cases: a candidate that takes longer spills without end."""


class _TimeUpError(Exception):
    """No more candidates are to be begun."""


class Wanted(msgspec.Struct, frozen=True):
    """What is to be estimated.

    Attributes:
        op: The op.
        kernel: Of the record.
        shape_class: Of the record.
        cases: Cases of the suite that launch it.
        target: The gfx target.
        product: The product; None for the target's widest.
    """

    op: str
    kernel: str
    shape_class: str
    cases: tuple[str, ...]
    target: str
    product: str | None = None


class Ranked(msgspec.Struct, frozen=True):
    """A candidate and what the model says.

    Attributes:
        config: The candidate.
        time_us: Estimated time of all launches of all cases; 0 where there is none.
        bound: What limits the longest launch.
        spills: Registers spilled.
        error: Why there is no estimate.
        launches: Each launch.
    """

    config: dict[str, Value]
    time_us: float = 0.0
    bound: str = ""
    spills: int = 0
    error: str = ""
    launches: tuple[Estimate, ...] = ()

    @property
    def order(self) -> tuple[int, float, float]:
        """What candidates are sorted by: no error, then no spills, then the time, then what else the units do."""
        rest = sum(sum(launch.units_us.values()) for launch in self.launches)
        return (2 if self.error else 1 if self.spills else 0), round(self.time_us, 2), rest


def rank(
    wanted: Wanted,
    configs: Sequence[dict[str, Value]],
    toolchain: Toolchain,
    *,
    until: float = float("inf"),
    tell: Callable[[str], None] = lambda _text: None,
) -> list[Ranked]:
    """Estimate candidates and return them, the most promising first; those with spills come after all without.

    Args:
        wanted: What they are candidates for.
        configs: The candidates.
        toolchain: The Triton to compile with.
        until: ``time.monotonic()`` from which no more are begun; those left out are not returned.
        tell: Told what is going on.
    """
    found: list[Ranked] = []

    def done(number: int, answer: dict[str, Any]) -> None:
        found.append(_ranked(configs[number], answer))
        tell(f"{wanted.op} {wanted.kernel} {wanted.shape_class}: estimated {len(found)} of {len(configs)}")
        if time.monotonic() >= until:
            raise _TimeUpError

    about = {
        "do": "estimate",
        "op": wanted.op,
        "kernel": wanted.kernel,
        "class": wanted.shape_class,
        "cases": list(wanted.cases),
        "target": wanted.target,
        "product": wanted.product,
    }
    tasks = [(number, toolchain, {**about, "config": config}) for number, config in enumerate(configs)]
    if time.monotonic() < until:
        with contextlib.suppress(_TimeUpError):
            Pool[int](os.cpu_count() or 1, LIMIT_S).map(tasks, done)
    return sorted(found, key=lambda candidate: candidate.order)


def _ranked(config: dict[str, Value], answer: dict[str, Any]) -> Ranked:
    if "ok" not in answer:
        return Ranked(config, error=str(answer["error"]).strip().splitlines()[-1][:300])
    launches = tuple(msgspec.convert(estimate, Estimate) for estimate in answer["ok"])
    if not launches:
        return Ranked(config, error="the cases launch nothing")
    longest = max(launches, key=lambda launch: launch.time_us)
    return Ranked(
        config,
        sum(launch.time_us for launch in launches),
        longest.bound,
        sum(launch.spills for launch in launches),
        "",
        launches,
    )
