"""Carries out recorded launches of kernels for NVIDIA on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import torch
from tests.kernels.ptx.execute import execute
from tests.kernels.ptx.memory import Global

from rocmend.kernels import executor
from rocmend.kernels.compiled.pool import Worker
from rocmend.kernels.compiled.record import specialise
from rocmend.kernels.target import Target

SCRATCH = 2
"""Pointers behind a kernel's own, for memory that it asks Triton for: none does."""


def carry_out(launch: executor.Launch, target: Target, worker: Worker) -> None:
    """Compile a launch for a target, and execute it: its tensors, on the CPU, are read and written."""
    spec = specialise(launch, target)
    # In a process of its own: in this one Triton's functions may be defined for its interpreter.
    answer = worker.ask({"do": "compile", "spec": msgspec.to_builtins(spec), "whole": True}, 120)
    assert "ok" in answer, answer["error"]
    memory = Global()
    given = dict(zip(launch.kernel.arg_names, launch.args, strict=False))
    placed: dict[int, int] = {}
    parameters = []
    for name, kind in spec.signature.items():
        value = given.get(name)
        if isinstance(value, torch.Tensor):
            if value.data_ptr() not in placed:
                placed[value.data_ptr()] = memory.place(value)
            parameters.append(placed[value.data_ptr()])
        elif kind != "constexpr":
            assert isinstance(value, int), f"{name}: {value}"
            parameters.append(value)
    threads = 32 * launch.config["num_warps"]
    execute(answer["ok"]["assembly"], launch.grid, threads, memory, [*parameters, *[0] * SCRATCH])
    memory.take_back()


def called(
    worker: Worker, target: Target, function: Callable[..., torch.Tensor], *args: Any, **named: Any
) -> tuple[Any, Sequence[str]]:
    """Call an op as if a target were there; return what its launches make, and the names of their kernels."""
    recorder = executor.Recorder(target)
    with executor.using(recorder):
        out = function(*args, **named)
    for launch in recorder.launches:
        carry_out(launch, target, worker)
    return out, [launch.kernel.__name__ for launch in recorder.launches]
