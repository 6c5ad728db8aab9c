"""Say what would be chosen for a problem on a target, and why: with neither torch nor a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from rocmend.core import gfx
from rocmend.core.errors import UnitError
from rocmend.core.suggest import unknown
from rocmend.kernels import registry, select
from rocmend.kernels.op import Implementation, Op, Problem
from rocmend.kernels.target import Target
from rocmend.kernels.tuning.lookup import find, records
from rocmend.kernels.tuning.record import triton_version
from rocmend.kernels.tuning.user import user_records


class Considered(msgspec.Struct, frozen=True):
    """An implementation, and why it was or was not taken."""

    implementation: str
    tier: str
    taken: bool
    reason: str


class Called(msgspec.Struct, frozen=True):
    """What is selected for an op that the implementation calls."""

    op: str
    implementation: str
    tier: str
    reason: str


class RecordRow(msgspec.Struct, frozen=True):
    """A tuning record that a kernel looks up."""

    op: str
    kernel: str
    shape_class: str
    target: str
    config: dict[str, int | str | bool]
    source: str
    origin: str


class Floor(msgspec.Struct, frozen=True):
    """The least time that a product's published peaks allow."""

    product: str
    bandwidth_gb_s: float | None
    peak_tflops: float | None
    travel_us: float | None
    arithmetic_us: float | None


class Explained(msgspec.Struct, frozen=True):
    """What would be chosen, and what is known of it.

    Attributes:
        op: The op.
        problem: Its fields.
        target: The target.
        shape_class: The class that tuning records go by.
        chosen: The implementation; empty where none supports the problem.
        odd_addresses: The implementation of tensors at other than multiples of 16 bytes, where the chosen needs these.
        considered: All of them, in order of preference.
        calls: What is selected for the ops that the implementation calls, in order.
        records: Tuning records that the kernels look up for the problem on the target.
        other_records: How many more the op has, for other problems, kernels or targets.
        flops: Arithmetic of the problem.
        bytes: Bytes that must travel.
        floor: The least time on a product.
        triton: Version that the records were looked up for.
    """

    op: str
    problem: dict[str, Any]
    target: str
    shape_class: str
    chosen: str
    odd_addresses: str
    considered: tuple[Considered, ...]
    calls: tuple[Called, ...]
    records: tuple[RecordRow, ...]
    other_records: int
    flops: float
    bytes: float
    floor: Floor | None
    triton: str


def explain(op: Op, problem: Problem, target: Target, *, here: bool, product: str | None = None) -> Explained:
    """Explain a choice.

    Args:
        op: The op.
        problem: Its problem.
        target: What it would run on.
        here: The target is this machine's device; else Triton is taken to be there.
        product: Name of a product for the floor.

    Raises:
        UsageError: No such product.
    """
    preferences = select.preferred()
    found = select.consider(op, problem, target, *preferences, here=here)
    chosen = next((candidate.implementation for candidate in found if candidate.taken), None)
    elsewhere = ""
    if chosen is not None and chosen.aligned:
        others = select.consider(op, problem, target, *select.any_address(preferences), here=here, aligned=False)
        elsewhere = next((candidate.implementation.name for candidate in others if candidate.taken), "")
    kind = op.shape_class(problem)
    cost = op.cost(problem)
    called = [] if chosen is None else list(_called(chosen, problem, target, here=here))
    rows = [] if chosen is None else _records(op, chosen, problem, target)
    for inner, candidate, asked in called:
        rows += _records(inner, candidate.implementation, asked, target)
    rows = list({str(row): row for row in rows}.values())
    known = len(user_records(op.name)) + len(records(op.name))
    dtype = str(getattr(problem, "dtype", "float16"))
    floor = _floor(product, target, cost.flops, cost.bytes, dtype) if product else None
    return Explained(
        op=op.name,
        problem=problem._asdict(),
        target=target.name,
        shape_class=kind,
        chosen=chosen.name if chosen is not None else "",
        odd_addresses=elsewhere,
        considered=tuple(
            Considered(
                candidate.implementation.name,
                candidate.implementation.tier,
                taken=candidate.taken,
                reason=candidate.reason,
            )
            for candidate in found
        ),
        calls=tuple(
            Called(inner.name, candidate.implementation.name, candidate.implementation.tier, candidate.reason)
            for inner, candidate, _ in called
        ),
        records=tuple(rows),
        other_records=known - sum(row.op == op.name for row in rows),
        flops=float(cost.flops),
        bytes=float(cost.bytes),
        floor=floor,
        triton=triton_version(),
    )


def _called(
    chosen: Implementation, problem: Problem, target: Target, *, here: bool
) -> Iterator[tuple[Op, select.Considered, Problem]]:
    """Yield what is selected for the ops that an implementation calls, and for those that these call."""
    for name, inner in chosen.calls(problem):
        op = registry.get(name)
        for candidate in select.consider(op, inner, target, *select.preferred(), here=here):
            if candidate.taken:
                yield op, candidate, inner
                yield from _called(candidate.implementation, inner, target, here=here)


def _records(op: Op, chosen: Implementation, problem: Problem, target: Target) -> list[RecordRow]:
    """List the tuning records that an implementation looks up for a problem on a target."""
    rows = []
    for owner, kernel, kind in chosen.records_of(op.name, problem):
        try:
            config = find(owner, kernel, kind, target)
        except UnitError:  # a kernel that the target does not launch
            continue
        own = (record for record in user_records(owner) if record.config is config)
        mine = next(own, None)
        record = mine or next(record for record in records(owner) if record.config is config)
        origin = "this machine" if mine else "shipped"
        rows.append(RecordRow(owner, kernel, record.shape_class, record.target, config.items(), config.source, origin))
    return rows


def _floor(name: str, target: Target, flops: float, size_bytes: float, dtype: str) -> Floor:
    wanted = name.casefold()
    fits = [
        product
        for product in gfx.products(target.name)
        if any(wanted in each.casefold() for each in (product.name, *product.aliases))
    ]
    if not fits:
        own = [product.name for product in gfx.products(target.name)]
        raise unknown("--product", f"product of {target.name}", name, own, listed=f"rocmend targets {target.name}")
    product = fits[0]
    short = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "int8": "int8"}.get(dtype, "fp16")
    peak = product.peaks_tflops.get(short)
    if peak is None and product.max_clock_mhz:
        peak = gfx.peak_tflops(target.name, short, product.compute_units, product.max_clock_mhz)
    bandwidth = product.bandwidth_gb_s
    return Floor(
        product.name,
        bandwidth,
        peak,
        size_bytes / bandwidth / 1e3 if bandwidth else None,
        flops / peak / 1e6 if peak else None,
    )
