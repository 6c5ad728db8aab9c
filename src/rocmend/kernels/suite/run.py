"""Run the cases of an op: the kernel with poisoned outputs against the reference in float64."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from rocmend.core.errors import UnitError
from rocmend.kernels import allocate, backends, plan_cache, select
from rocmend.kernels.op import Op, Tolerance, resolve
from rocmend.kernels.suite.case import Call, Case, Draw, Maker
from rocmend.kernels.suite.compare import Comparison, compare


class CaseResult(NamedTuple):
    """What came out of a case.

    Args:
        op: The op.
        case: The case.
        implementation: What computed it.
        ok: Every output is within its tolerance, and a second run (on a GPU a replayed run too) agreed bit by bit.
        worst: Largest error as a multiple of what is allowed.
        detail: What is wrong, or empty.
    """

    op: str
    case: str
    implementation: str
    ok: bool
    worst: float
    detail: str


def cases_of(op: Op, sizes: tuple[str, ...] = ("tiny", "small")) -> Iterator[Case]:
    """Iterate over an op's cases of given sizes.

    Raises:
        UnitError: A case is about an implementation that the op does not have.
    """
    names = {"", *(implementation.name for implementation in backends.known(op))}
    for case in resolve(op.cases)():
        if case.implementation not in names:
            raise UnitError("case", f"{op.name}/{case.name}: the op has no implementation {case.implementation!r}.")
        if case.size in sizes:
            yield case


def seed_of(op: str, case: str, salt: int = 0) -> int:
    """Return the seed of a case: its own, and another for each salt."""
    return zlib.crc32(f"{op}/{case}/{salt}".encode())


def run_case(
    op: Op, case: Case, device: torch.device, *, tier: str = "", again: Callable[[], None] | None = None
) -> CaseResult:
    """Run one case on a device.

    Args:
        op: The op.
        case: The case.
        device: ``cuda``, or ``cpu`` in Triton's interpreter.
        tier: Tier or implementation to check; the case's own by default.
        again: Called before the second run, which must agree with the first bit by bit.
    """
    function = resolve(op.functions[case.function] if case.function else next(iter(op.functions.values())))
    reference = resolve(op.reference_of(case.reference or case.function))
    tolerance: Tolerance = case.tolerance or op.tolerance[case.dtype]
    draws: list[Draw] = []

    def made() -> Call:
        return case.make(Maker(device, seed_of(op.name, case.name), draws))

    preferences = (tier,) if tier else case.preferences
    outputs: list[list[torch.Tensor]] = []
    selected: list[tuple[str, Any, str]] = []
    for number in range(2 if case.deterministic else 1):
        if number and again is not None:
            again()
        call = made()
        with select.prefer(*preferences), allocate.poisoned(), select.observed() as found:
            outputs.append(flatten(function(*call.args, **call.kwargs)))
        selected = found or selected
    if case.deterministic and device.type == "cuda":
        # Calls with poisoned outputs are not replayed: a replayed call is compared with them.
        with select.prefer(*preferences), plan_cache.capture_after(1):
            for _ in range(3):
                call = made()
                recorded = flatten(function(*call.args, **call.kwargs))
        outputs.append(recorded)
    implementation = next((name for of, _, name in selected if of == op.name), "")
    call = made() if tolerance.exact else in_float64(made())
    wanted = flatten(reference(*call.args, **call.kwargs))
    if len(outputs[0]) != len(wanted):
        detail = f"{len(outputs[0])} outputs, expected {len(wanted)}"
        return CaseResult(op.name, case.name, implementation, False, float("inf"), detail)
    compared = [compare(out, want, tolerance) for out, want in zip(outputs[0], wanted, strict=True)]
    compared += [
        _repeat(compare(again, first, Tolerance()))
        for second in outputs[1:]
        for first, again in zip(outputs[0], second, strict=True)
    ]
    worst = max(compared, key=lambda comparison: (not comparison.ok, comparison.worst))
    ok = all(comparison.ok for comparison in compared)
    return CaseResult(op.name, case.name, implementation, ok, worst.worst, "" if worst.ok else worst.detail)


def _repeat(comparison: Comparison) -> Comparison:
    return comparison if comparison.ok else comparison._replace(detail=f"two runs differ: {comparison.detail}")


def flatten(value: Any) -> list[torch.Tensor]:
    """Return the tensors of an op's result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if value is None:
        return []
    return [tensor for part in value for tensor in flatten(part)]


def in_float64(call: Call) -> Call:
    """Return a call with every floating tensor in float64, but for those that must stay as they are."""

    def widen(key: int | str, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dtype.is_floating_point and key not in call.exact:
            return value.double()
        return value

    args = tuple(widen(index, value) for index, value in enumerate(call.args))
    return Call(args, {name: widen(name, value) for name, value in call.kwargs.items()}, call.exact)
