"""Carries out recorded launches of kernels for NVIDIA on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from tests.kernels.ptx.execute import execute
from tests.kernels.ptx.memory import Global

from rocmend.kernels import executor
from rocmend.kernels.compiled.build import compile_spec
from rocmend.kernels.compiled.record import specialise
from rocmend.kernels.target import Target

SCRATCH = 2
"""Pointers behind a kernel's own, for memory that it asks Triton for: none does."""


def carry_out(launch: executor.Launch, target: Target) -> None:
    """Compile a launch for a target, and execute it: its tensors, on the CPU, are read and written."""
    spec = specialise(launch, target)
    compiled = compile_spec(spec)
    memory = Global()
    names = [name for name, kind in spec.signature.items() if kind != "constexpr"]
    by_name = dict(zip(launch.kernel.arg_names, launch.args, strict=False))
    placed: dict[int, int] = {}
    parameters = []
    for name in names:
        value = by_name[name]
        if isinstance(value, torch.Tensor):
            parameters.append(placed.setdefault(value.data_ptr(), memory.place(value)))
        else:
            parameters.append(int(value))
    execute(compiled.assembly, launch.grid, 32 * launch.config["num_warps"], memory, [*parameters, *[0] * SCRATCH])
    memory.take_back()


def called(
    function: Callable[..., torch.Tensor], target: Target, *args: Any, **named: Any
) -> tuple[Any, Sequence[str]]:
    """Call an op as if a target were there; return what its launches make, and the names of their kernels."""
    recorder = executor.Recorder(target)
    with executor.using(recorder):
        out = function(*args, **named)
    for launch in recorder.launches:
        carry_out(launch, target)
    return out, [launch.kernel.__name__ for launch in recorder.launches]
