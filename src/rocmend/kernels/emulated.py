"""Launch kernels as AMD machine code on the CPU: the fourth rung of the ladder of proof.

An executor like the recorder, but with data: an op's host code gets tensors on the CPU and plans for a gfx target, each
launch is compiled for the target, and ``rocmend.emulate`` executes the code object on the tensors' memory.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from rocmend.codeobject import kernarg
from rocmend.emulate.device import ALL_CHECKS, Device, FaultError, Order, Run
from rocmend.emulate.program import load
from rocmend.kernels.compiled.build import Compiled, compile_spec
from rocmend.kernels.compiled.record import specialise
from rocmend.kernels.executor import Launch
from rocmend.kernels.target import Target
from rocmend.kernels.tuning.config import Config

__all__ = ["Emulator"]

_compiled: dict[str, Compiled] = {}


@dataclass(slots=True)
class Emulator:
    """Executes launches for a gfx target on the CPU.

    Args:
        target: The gfx target.
        checks: Checks of ``rocmend.emulate`` that are on.
        order: In which order waves run.
        runs: What was launched.
    """

    target: Target
    checks: int = ALL_CHECKS
    order: int = Order.FORWARD
    runs: list[Run] = field(default_factory=list)

    def reverse(self) -> None:
        """Run the waves of later launches, and their workgroups, from the last to the first."""
        self.order = Order.REVERSE

    def launch(
        self, kernel: Any, grid: Sequence[int], args: Sequence[Any], constants: Mapping[str, Any], config: Config
    ) -> None:
        """Carry out one launch.

        Raises:
            FaultError: A check found something.
            UnmodelledError: The code has an instruction that the emulator does not model.
        """
        wanted = Launch(kernel, tuple(grid), tuple(args), dict(constants), config)
        spec = specialise(wanted, self.target)
        if spec.key not in _compiled:
            _compiled[spec.key] = compile_spec(spec)
        compiled = _compiled[spec.key]
        device = Device(self.checks)
        program = load(compiled.code, compiled.name)
        given = dict(zip((one.name for one in kernel.params), args, strict=False)) | dict(constants)
        values: list[int | bytes] = []
        for name, kind in compiled.spec.signature.items():
            values += _values(device, name, given.get(name), kind)
        values += [0] * (len(program.kernarg.explicit) - len(values))  # Triton's own scratch, which none of ours uses
        x, y, z = (*grid, 1, 1)[:3]
        items = compiled.waves * program.generation.lanes
        shape = kernarg.Launch((x, y, z), (items, 1, 1), compiled.lds_bytes)
        done = device.launch(program, values, shape, order=self.order)
        self.runs.append(done)
        if done.faults:
            raise FaultError(f"{compiled.name} on {self.target.name}", done.faults)


_PACKED = {"fp16": "<e", "fp32": "<f", "fp64": "<d"}


def _values(device: Device, name: str, value: Any, kind: Any) -> list[int | bytes]:
    """Return an argument as the kernarg segment holds it; nothing for one that became a constant."""
    if isinstance(kind, list | tuple):
        return [one for part, each in zip(value, kind, strict=True) for one in _values(device, name, part, each)]
    if kind == "constexpr":
        return []
    if isinstance(value, torch.Tensor):
        return [device.address_of(value, name)]
    if kind in _PACKED:
        return [struct.pack(_PACKED[kind], value)]
    return [int(value)]
