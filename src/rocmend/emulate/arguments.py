"""Launch a kernel of a code object with arrays and numbers as its arguments."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rocmend.codeobject.kernarg import BUFFERS, Argument, Launch
from rocmend.core.errors import UsageError
from rocmend.emulate.device import ALL_CHECKS, BUDGET, Device, FaultError, Order, Run, Step
from rocmend.emulate.program import load

__all__ = ["launch", "value_of"]

ORDERS = (Order.FORWARD, Order.REVERSE, Order.SHUFFLED)
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}


def launch(  # noqa: PLR0913  a launch has so many properties
    code: bytes | str | Path,
    kernel: str = "",
    *,
    grid: Sequence[int] | int,
    block: Sequence[int] | int,
    args: Sequence[Any] = (),
    dynamic_lds_bytes: int = 0,
    checks: int = ALL_CHECKS,
    order: int = Order.FORWARD,
    faults: str = "raise",
    trace: Callable[[Step], None] | None = None,
    unwritten: Collection[int] = (),
    budget: int = BUDGET,
) -> Run:
    """Run a kernel as machine code; results land in the arrays.

    Args:
        code: The code object (an ELF file for a gfx target), or where it lies.
        kernel: The kernel's name; empty for the only one.
        grid: Workgroups in x, y and z; what is left out is 1.
        block: Work-items of a workgroup in x, y and z.
        args: The explicit arguments in order: NumPy arrays and CPU tensors for pointers (None is a null pointer),
            numbers and bytes for values. A float becomes one of the argument's size.
        dynamic_lds_bytes: LDS that the launch adds.
        checks: Checks that are on, as bits of ``Check``.
        order: In which order waves run: 0 forward, 1 in reverse, 2 shuffled.
        faults: ``raise`` or ``return``.
        trace: Called after each instruction of each wave.
        budget: Instructions of waves after which a kernel counts as endless.
        unwritten: Numbers of the arrays that hold nothing yet: reading one before the kernel wrote it is a finding.

    Returns:
        What it did: findings, and how often each instruction was executed.

    Raises:
        FaultError: A check found something, and ``faults`` is ``raise``.
        UnmodelledError: The code came to an instruction that is not modelled.
        UsageError: The arguments are not the kernel's, or the target is not executed here.
        DataError: It is no code object.
    """
    data = code if isinstance(code, bytes) else Path(code).read_bytes()
    program = load(data, kernel)
    device = Device(checks)
    explicit = program.kernarg.explicit
    if len(args) != len(explicit):
        names = ", ".join(f"{one.name or '?'} ({one.kind}, {one.size} bytes)" for one in explicit)
        raise UsageError("args", f"{program.kernel} takes {len(explicit)} arguments, got {len(args)}: {names}.")
    for number in sorted(unwritten):
        if isinstance(args[number], np.ndarray):
            device.add(args[number], explicit[number].name or f"argument {number}", written=False)
    values = [value_of(device, one, arg, number) for number, (one, arg) in enumerate(zip(explicit, args, strict=True))]
    if order not in ORDERS:
        raise UsageError("order", f"{order!r} is no order of waves.", next_step="0 forward, 1 in reverse, 2 shuffled.")
    x, y, z = _sizes(grid)
    width, height, depth = _sizes(block)
    run = device.launch(
        program,
        values,
        Launch((x, y, z), (width, height, depth), dynamic_lds_bytes),
        order=order,
        trace=trace,
        budget=budget,
    )
    if run.faults and faults == "raise":
        raise FaultError(program.kernel, run.faults)
    return run


def _sizes(given: Sequence[int] | int) -> tuple[int, int, int]:
    x, y, z = (*((given,) if isinstance(given, int) else given), 1, 1)[:3]
    return x, y, z


def value_of(device: Device, argument: Argument, value: Any, where: int | str = 0) -> int | bytes:
    """Return an argument as the kernarg segment holds it; an array becomes part of the device's memory.

    Raises:
        UsageError: The value is not what the argument takes.
    """
    if value is None:
        return 0
    if isinstance(value, np.ndarray) or hasattr(value, "untyped_storage"):
        if argument.kind not in BUFFERS and argument.size != 8:
            raise UsageError("args", f"{argument.name or 'an argument'} takes {argument.size} bytes, got an array.")
        return device.address_of(value, argument.name or (where if isinstance(where, str) else f"argument {where}"))
    if isinstance(value, bytes):
        return value
    if isinstance(value, np.generic):
        raw: bytes = value.tobytes()
        return raw
    if isinstance(value, float):
        if argument.size not in _FLOATS:
            raise UsageError(
                "args", f"{argument.name or 'an argument'} has {argument.size} bytes, got the float {value}."
            )
        return struct.pack(_FLOATS[argument.size], value)
    return int(value)
