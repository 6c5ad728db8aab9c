"""Propose tuning records for a GPU that is not there: candidates are compiled and ordered by the cost model."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rocmend.core.errors import UsageError
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.compiled.toolchains import available, choose_toolchain, serves
from rocmend.kernels.model.estimate import VERSION
from rocmend.kernels.model.hardware import hardware
from rocmend.kernels.model.rank import Ranked, Wanted, rank
from rocmend.kernels.suite.supervise import NoDeviceError, events, run_child
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning.config import Value
from rocmend.kernels.tuning.space import look, option_candidates, space_for

MODULE = "rocmend.kernels.tuning.child"
LEAST_GAIN = 0.05
"""What the model says is less than this apart is the same to it."""
PLAN_LIMIT_S = 600.0


class Proposal(msgspec.Struct, frozen=True):
    """What the model says about a kernel's candidates for a class of shapes.

    Attributes:
        kernel: The kernel.
        shape_class: The class.
        cases: Cases of the suite that were compiled.
        estimated: Candidates that were estimated.
        of: Candidates that there are.
        dropped: Candidates that were not, as they look, to the reason.
        before: The record in use.
        before_us: Its estimated time; 0 where it has none.
        after: What the model proposes; the record in use where nothing is better.
        after_us: Its estimated time.
        bound: What limits it.
        proposed: ``after`` is another configuration.
    """

    kernel: str
    shape_class: str
    cases: tuple[str, ...]
    estimated: int
    of: int
    dropped: dict[str, str]
    before: dict[str, Value]
    before_us: float
    after: dict[str, Value]
    after_us: float
    bound: str
    proposed: bool


class Proposals(msgspec.Struct, frozen=True):
    """What the model proposes for an op.

    Attributes:
        op: The op.
        target: The gfx target.
        product: The product whose figures were taken.
        model: The model's version.
        triton: The Triton that compiled.
        results: By kernel and class.
        finished: All candidates were estimated.
    """

    op: str
    target: str
    product: str
    model: str
    triton: str
    results: tuple[Proposal, ...]
    finished: bool


def propose(  # noqa: PLR0913  each is an option of the command
    op: str,
    target: str,
    fields: Sequence[str],
    *,
    product: str | None = None,
    budget_s: float,
    tell: Callable[[str], None],
) -> Proposals:
    """Estimate an op's candidates for a target and propose the best.

    Args:
        op: Its name.
        target: A gfx target.
        fields: ``name=value`` of the problems to tune for.
        product: Part of a product's name; the target's widest by default.
        budget_s: Seconds; what is not estimated by then is left out.
        tell: Told what is going on.

    Raises:
        UsageError: No product of the target has published figures, or no Triton at hand compiles for it.
        NoDeviceError: torch or Triton is not there.
    """
    gpu = hardware(target, product)
    toolchain = toolchain_for(target)
    deadline = time.monotonic() + budget_s
    tell(f"{op}: recording its launches for {target}")
    groups = [event for event in plan(op, fields, "cpu", target, product) if event["event"] == "group"]
    results = []
    for number, group in enumerate(groups):
        share = (deadline - time.monotonic()) / (len(groups) - number)
        wanted = Wanted(op, group["kernel"], group["shape_class"], tuple(group["timed"]), target, product)
        results.append(_group(wanted, group, toolchain, time.monotonic() + share, tell))
    finished = all(result.estimated == result.of for result in results)
    return Proposals(op, target, gpu.product, VERSION, toolchain.version, tuple(results), finished)


def toolchain_for(target: str) -> Toolchain:
    """Return the Triton to compile for a target with.

    Raises:
        UsageError: None at hand does.
    """
    found = choose_toolchain(target, available())
    if found is None:
        needs = serves(target)
        raise UsageError(
            "kernels tune",
            f"no installed Triton compiles for {target}.",
            why=f"It needs triton {needs.versions}: {needs.why}.",
            next_step="rocmend kernels compile --fetch-triton VERSION installs another one alongside.",
        )
    return found


def plan(
    op: str, fields: Sequence[str], device: str, target: str | None = None, product: str | None = None
) -> list[dict[str, Any]]:
    """Plan in a child process: return an op's kernels, classes and candidates for a device or a target, as events.

    Raises:
        NoDeviceError: torch, Triton or the GPU is not there.
    """
    request = {"do": "plan", "op": op, "device": device, "fields": list(fields), "target": target, "product": product}
    done = run_child(MODULE, request, PLAN_LIMIT_S, device)
    found = list(events(done.stdout))
    for event in found:
        if event["event"] == "infra":
            raise NoDeviceError("kernels tune", f"tuning failed: {event['reason']}.")
    if not found or found[-1]["event"] != "end" or not any(event["event"] == "device" for event in found):
        raise NoDeviceError(
            "kernels tune",
            f"tuning failed: {done.stderr.strip()[-400:] or done.ending.value}",
            next_step="Tuning needs torch, Triton and a GPU in this Python environment; --model needs no GPU.",
        )
    return found


def spread(configs: Sequence[dict[str, Value]]) -> list[dict[str, Value]]:
    """Return the first candidate, then the others in a fixed random order: when time is up, all corners were tried."""
    first, rest = configs[:1], configs[1:]
    return [*first, *sorted(rest, key=lambda candidate: hashlib.sha256(look(candidate).encode()).digest())]


def _group(
    wanted: Wanted, group: dict[str, Any], toolchain: Toolchain, until: float, tell: Callable[[str], None]
) -> Proposal:
    target = by_name(wanted.target)
    current: dict[str, Value] = group["candidates"][0]
    configs = spread(group["candidates"])
    now = time.monotonic()
    # two thirds of the time for the kernel's own parameters
    found = rank(wanted, configs, toolchain, until=now + (until - now) * 2 / 3, tell=tell)
    dropped, of = dict(group["dropped"]), len(configs)
    space = space_for(wanted.op, wanted.kernel, wanted.shape_class, target)
    if space is not None and found and not found[0].error:
        more = option_candidates(space, found[0].config, target, toolchain.version)
        found += rank(wanted, spread(more.configs)[1:], toolchain, until=until, tell=tell)
        dropped |= more.dropped
        of += len(more.configs) - 1
    dropped |= {look(ranked.config): ranked.error for ranked in found if ranked.error}
    dropped |= {
        look(ranked.config): f"spills {ranked.spills} registers"
        for ranked in found
        if ranked.spills and not ranked.error
    }
    before = next(
        (ranked for ranked in found if ranked.config == current), Ranked(current, error="it was not compiled")
    )
    best = min((ranked for ranked in found if not ranked.error), key=lambda ranked: ranked.order, default=before)
    proposed = better(best, before)
    after = best if proposed else before
    return Proposal(
        wanted.kernel,
        wanted.shape_class,
        wanted.cases,
        len(found),
        of,
        dropped,
        before.config,
        before.time_us,
        after.config,
        after.time_us,
        after.bound,
        proposed,
    )


def better(candidate: Ranked, other: Ranked) -> bool:
    """Whether the model clearly prefers a candidate: the other has no estimate, spills, or takes longer."""
    if candidate.error or candidate.config == other.config:
        return False
    if other.error or (other.spills and not candidate.spills):
        return True
    return candidate.order[0] <= other.order[0] and other.time_us > candidate.time_us * (1 + LEAST_GAIN)
