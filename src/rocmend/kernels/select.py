"""Select the implementation of an op, by its rules or by a measured choice; the reason is always given."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from rocmend.core.errors import RocmendError
from rocmend.kernels import caches, executor
from rocmend.kernels.op import Implementation, Op, Problem, Tier, resolve
from rocmend.kernels.target import Target

if TYPE_CHECKING:
    import torch

log = logging.getLogger("rocmend.kernels")
PREFER_VARIABLE = "ROCMEND_KERNELS"
_TIERS: tuple[Tier, ...] = ("vendor", "triton", "reference")


class UnsupportedError(RocmendError):
    """No implementation that was allowed can compute the problem."""

    code = "unsupported"


class Rejected(NamedTuple):
    """An implementation that was not taken, and why."""

    implementation: str
    tier: Tier
    reason: str


class Choice(NamedTuple):
    """What was chosen for a problem, and why."""

    op: str
    implementation: str
    tier: Tier
    reason: str
    rejected: tuple[Rejected, ...]


_preferred: list[str] = [name for name in (os.environ.get(PREFER_VARIABLE, ""),) if name]
_chosen: caches.Cache[Callable[..., Any]] = caches.Cache()
_told: set[tuple[str, str]] = set()
_observed: list[tuple[str, Problem]] | None = None


def select(op: Op, problem: Problem, target: Target, prefer: str | None = None) -> Choice:
    """Select the implementation of a problem.

    Args:
        op: The op.
        problem: Its problem.
        target: What it runs on.
        prefer: A tier or an implementation's name that must be taken.

    Raises:
        UnsupportedError: No implementation, or not the preferred one, supports the problem.
    """
    prefer = prefer if prefer and binds(prefer, op) else None
    rejected: list[Rejected] = []
    fastest = None if prefer else measured(op, problem, target)
    for one in ordered(op, fastest):
        reason = rejection(one, problem, target, prefer)
        if reason is None:
            return Choice(op.name, one.name, one.tier, why(one, prefer, fastest), tuple(rejected))
        rejected.append(Rejected(one.name, one.tier, reason))
    reasons = "; ".join(f"{one.implementation}: {one.reason}" for one in rejected)
    raise UnsupportedError(
        op.name,
        f"no implementation supports {problem} on {target.name}: {reasons}.",
        next_step=f"rocmend kernels explain {op.name} shows the rules."
        + (f" {PREFER_VARIABLE} or prefer() requested {prefer}." if prefer else ""),
    )


def preferred() -> str | None:
    """Return the tier or implementation that is asked for, by the environment or by ``prefer``."""
    return _preferred[-1] if _preferred else None


def binds(prefer: str, op: Op) -> bool:
    """Return whether a preference is one for an op: not where it names an implementation that only others have.

    What one op's implementation calls is chosen as ever: asked for by name, it could not call other ops otherwise.
    """
    if prefer in _TIERS or any(one.name == prefer for one in op.implementations):
        return True
    from rocmend.kernels import registry

    return not any(one.name == prefer for other in registry.ops() for one in other.implementations)


def ordered(op: Op, fastest: str | None) -> list[Implementation]:
    """Return the implementations in order of preference, one that was measured to be fastest first."""
    return sorted(op.implementations, key=lambda one: one.name != fastest)


def measured(op: Op, problem: Problem, target: Target) -> str | None:
    """Return the implementation that was measured to be the fastest on this machine, or None."""
    from rocmend.kernels.tuning.user import measured_choice

    return measured_choice(op.name, op.shape_class(problem), target)


def rejection(
    one: Implementation, problem: Problem, target: Target, prefer: str | None, *, here: bool = True
) -> str | None:
    """Say why an implementation is not to be taken for a problem, or None.

    Args:
        one: The implementation.
        problem: The problem.
        target: What it would run on.
        prefer: A tier or an implementation's name that was asked for.
        here: The target is this machine's; else what is installed here does not matter.
    """
    if prefer and prefer not in {one.tier, one.name}:
        return f"{prefer} was requested"
    return (_unavailable(one, target) if here else None) or one.rejects(problem, target)


def why(one: Implementation, prefer: str | None, fastest: str | None) -> str:
    """Say why an implementation was taken."""
    if prefer:
        return f"{prefer} was requested"
    if one.name == fastest:
        return "measured to be the fastest on this machine"
    return one.note or "first in the op's order of preference that supports the problem"


def _unavailable(one: Implementation, target: Target) -> str | None:
    """Say why an implementation cannot run at all here."""
    if one.tier != "triton":
        return None
    return executor.triton_unavailable(target)


def implementation(op: Op, device: torch.device, problem: Problem) -> Callable[..., Any]:
    """Return the function that computes a problem on a device; cached, so that a second call costs one lookup."""
    key = (op.name, device, problem)
    found = _chosen.get(key)
    if found is None:
        found = _select(key, op, device, problem)
    return found


@contextlib.contextmanager
def observed() -> Iterator[list[tuple[str, Problem]]]:
    """Keep each op and problem that is chosen for inside."""
    global _observed  # noqa: PLW0603  one switch for the process: choices are made deep inside ops
    before, _observed = _observed, []
    caches.forget()
    try:
        yield _observed
    finally:
        _observed = before
        caches.forget()


def observing() -> bool:
    """Return whether somebody keeps what is chosen for: see ``observed``."""
    return _observed is not None


def _select(key: tuple[Any, ...], op: Op, device: torch.device, problem: Problem) -> Callable[..., Any]:
    if _observed is not None:
        _observed.append((op.name, problem))
    choice = select(op, problem, executor.target_for(device), preferred())
    if choice.tier == "reference" and device.type == "cuda":
        _tell(choice)
    function: Callable[..., Any] = resolve(op.implementation(choice.implementation).run)
    return _chosen.keep(key, function)


def _tell(choice: Choice) -> None:
    """Log once per op and reason that a GPU computes with the reference."""
    reason = "; ".join(f"{one.implementation}: {one.reason}" for one in choice.rejected)
    if (choice.op, reason) not in _told:
        _told.add((choice.op, reason))
        log.warning("%s is computed by its torch reference, which is slow: %s", choice.op, reason)


@contextlib.contextmanager
def prefer(name: str) -> Iterator[None]:
    """Ask for a tier (``vendor``, ``triton``, ``reference``) or an implementation by name, for every op inside.

    A name holds for the ops that have an implementation of that name; where no op has one, every choice fails.
    """
    _preferred.append(name)
    caches.forget()
    try:
        yield
    finally:
        _preferred.pop()
        caches.forget()
