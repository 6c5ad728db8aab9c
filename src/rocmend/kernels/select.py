"""Select the implementation of an op, by its rules or by a measured choice; the reason is always given."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from rocmend.core.errors import RocmendError
from rocmend.kernels import backends, caches, executor, without
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


class Considered(NamedTuple):
    """An implementation, and why it was or was not taken."""

    implementation: Implementation
    taken: bool
    reason: str
    supports: bool


class Choice(NamedTuple):
    """What was selected for a problem, and why."""

    op: str
    implementation: str
    tier: Tier
    reason: str
    rejected: tuple[Rejected, ...]
    run: str = ""


_preferred: list[tuple[str, ...]] = [tuple(os.environ.get(PREFER_VARIABLE, "").replace(",", " ").split())]
_selected: caches.Cache[Callable[..., Any]] = caches.Cache()
_told: set[tuple[str, str]] = set()
_observed: list[tuple[str, Problem, str]] | None = None


def consider(
    op: Op, problem: Problem, target: Target, *preferences: str, here: bool = True, aligned: bool = True
) -> list[Considered]:
    """List an op's implementations in order of preference, each with why it is taken for a problem, or why not.

    Args:
        op: The op.
        problem: Its problem.
        target: What it runs on.
        preferences: A tier or an implementation's name that must be taken; of several the first that can be.
        here: The target is this machine's; else what is installed here does not matter.
        aligned: Tensors begin at multiples of 16 bytes.
    """
    found: list[Considered] = []
    for preference in [name for name in preferences if binds(name, op)] or [""]:
        fastest = None if preference else measured(op, problem, target)
        found, first = [], ""
        # What was measured to be the fastest stands first.
        for candidate in sorted(
            backends.implementations(op, target.vendor), key=lambda candidate: candidate.name != fastest
        ):
            reason = _rejection(op, candidate, problem, target, preference, here=here, aligned=aligned)
            if reason is None and not first:
                first = candidate.name
                found.append(Considered(candidate, True, _why(candidate, preference, fastest), True))
            else:
                found.append(Considered(candidate, False, reason or f"{first} comes first", reason is None))
        if first:
            break
    return found


def select(op: Op, problem: Problem, target: Target, *preferences: str, aligned: bool = True) -> Choice:
    """Select the implementation of a problem; see ``consider``.

    Raises:
        UnsupportedError: No implementation, or not the preferred implementation, supports the problem.
    """
    found = consider(op, problem, target, *preferences, aligned=aligned)
    rejected: list[Rejected] = []
    for candidate, taken, reason, _ in found:
        if taken:
            return Choice(op.name, candidate.name, candidate.tier, reason, tuple(rejected), candidate.run)
        rejected.append(Rejected(candidate.name, candidate.tier, reason))
    reasons = "; ".join(f"{candidate.implementation}: {candidate.reason}" for candidate in rejected)
    asked = [name for name in preferences if binds(name, op)]
    binding = " or ".join(asked)
    strangers = " ".join(f"No op has an implementation {name!r}." for name in asked if not _is_known(name))
    raise UnsupportedError(
        op.name,
        f"no implementation supports {problem} on {target.name}: {reasons}.",
        next_step=f"rocmend kernels explain {op.name} shows the rules."
        + (f" {PREFER_VARIABLE} or prefer() requested {binding}." if binding else "")
        + (f" {strangers}" if strangers else ""),
    )


def preferred() -> tuple[str, ...]:
    """Return the tiers or implementations that are asked for, by the environment or by ``prefer``."""
    return _preferred[-1]


def binds(preference: str, op: Op) -> bool:
    """Return whether a preference is meant for an op: not where it names an implementation that only others have.

    What one op's implementation calls is selected as ever: asked for by name, it could not call other ops otherwise.
    """
    if preference in _TIERS or any(known.name == preference for known in backends.known(op)):
        return True
    return not _is_known(preference)


def _is_known(preference: str) -> bool:
    """Return whether it is a tier, or an implementation's name in any op."""
    from rocmend.kernels import registry

    return preference in _TIERS or any(
        known.name == preference for op in registry.ops() for known in backends.known(op)
    )


def measured(op: Op, problem: Problem, target: Target) -> str | None:
    """Return the implementation that was measured to be the fastest on this machine, or None."""
    from rocmend.kernels.tuning.user import measured_choice

    return measured_choice(op.name, op.shape_class(problem), target)


def any_address(preferences: tuple[str, ...]) -> tuple[str, ...]:
    """Return preferences for tensors at odd addresses: a kernel that was asked for by name may not take them."""
    return tuple(name if name in _TIERS else "triton" for name in preferences)


def _rejection(  # noqa: PLR0913  what a rule may depend on
    op: Op, candidate: Implementation, problem: Problem, target: Target, preference: str, *, here: bool, aligned: bool
) -> str | None:
    """Say why an implementation is not to be taken for a problem, or None."""
    if preference and preference not in {candidate.tier, candidate.name}:
        return f"{preference} was requested"
    named = preference == candidate.name
    # The interpreter runs kernels of any vendor, but takes them by name only.
    if candidate.vendor and target.vendor != candidate.vendor and not (named and target.vendor == "cpu"):
        return f"it is for {candidate.vendor.upper()} GPUs"
    if without.is_switched_off(op.name, candidate):
        return f"it is switched off by {without.VARIABLE}"
    if candidate.aligned and not aligned:
        return "it needs tensors at multiples of 16 bytes"
    return (
        (_unavailable(candidate, target) if here else None)
        or candidate.rejects(problem, target)
        or (None if named else candidate.avoid(problem, target))
    )


def _why(candidate: Implementation, preference: str, fastest: str | None) -> str:
    """Say why an implementation was taken."""
    if preference:
        return f"{preference} was requested"
    if candidate.name == fastest:
        return "measured to be the fastest on this machine"
    return candidate.note or "first in the op's order of preference that supports the problem"


def _unavailable(candidate: Implementation, target: Target) -> str | None:
    """Say why an implementation cannot run at all here."""
    if candidate.tier != "triton":
        return None
    return executor.triton_unavailable(target)


def implementation(
    op: Op, device: torch.device, problem: Problem, *, aligned: bool = True, tier: Tier | None = None
) -> Callable[..., Any]:
    """Return the function that computes a problem on a device; cached, so that a second call costs one lookup.

    Args:
        op: The op.
        device: Of the tensors.
        problem: The problem.
        aligned: Whether tensors begin at multiples of 16 bytes, as far as an implementation asks for it.
        tier: That must be taken, whatever is preferred: for an op's kernels that launch those of another.
    """
    key = (op.name, device, problem, aligned, tier)
    found = _selected.get(key)
    if found is None:
        found = _select(key, op, device, problem)
    return found


@contextlib.contextmanager
def observed() -> Iterator[list[tuple[str, Problem, str]]]:
    """Keep each op and problem that is selected for inside, with the implementation."""
    global _observed  # noqa: PLW0603  one switch for the process: choices are made deep inside ops
    before, _observed = _observed, []
    caches.forget()
    try:
        yield _observed
    finally:
        _observed = before
        caches.forget()


def observing() -> bool:
    """Return whether somebody keeps what is selected: see ``observed``."""
    return _observed is not None


def _select(key: tuple[Any, ...], op: Op, device: torch.device, problem: Problem) -> Callable[..., Any]:
    *_, aligned, tier = key
    preferences = (tier,) if tier else preferred() if aligned else any_address(preferred())
    choice = select(op, problem, executor.target_for(device), *preferences, aligned=aligned)
    if _observed is not None:
        _observed.append((op.name, problem, choice.implementation))
    if choice.tier == "reference" and device.type == "cuda":
        _tell(choice)
    return _selected.keep(key, resolve(choice.run))


def _tell(choice: Choice) -> None:
    """Log once per op and reason that a GPU computes with the reference."""
    reason = "; ".join(f"{rejected.implementation}: {rejected.reason}" for rejected in choice.rejected)
    if (choice.op, reason) not in _told:
        _told.add((choice.op, reason))
        log.warning("%s is computed by its torch reference, which is slow: %s", choice.op, reason)


@contextlib.contextmanager
def prefer(*names: str) -> Iterator[None]:
    """Ask for a tier (``vendor``, ``triton``, ``reference``) or an implementation by name, for every op inside.

    A name holds for the ops that have an implementation of that name; where no op has it, every selection fails. Of
    several names, the first is taken that supports the problem.
    """
    _preferred.append(names)
    caches.forget()
    try:
        yield
    finally:
        _preferred.pop()
        caches.forget()
