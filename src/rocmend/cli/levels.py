"""Which levels of proof a machine can reach: what could be shown here about code for an AMD GPU."""

from __future__ import annotations

from importlib import util
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine


class Level(msgspec.Struct, frozen=True):
    """A level of proof.

    Attributes:
        name: ``reference``, ``nvidia``, ``compiled``, ``emulated`` or ``amd``.
        possible: It can be reached with what this machine has.
        text: What would be shown, and by which command; what is missing where it is not possible.
    """

    name: str
    possible: bool
    text: str


def levels_of(machine: Machine, targets: tuple[str, ...]) -> tuple[Level, ...]:
    """Return the levels in order, as far as this rocmend and its Python environment reach.

    Args:
        machine: The facts.
        targets: The gfx targets that are spoken about; none for gfx1151 as an example.
    """
    from rocmend.emulate.needs import lacking

    target = targets[0] if targets else "gfx1151"
    triton = all(util.find_spec(name) for name in ("torch", "triton"))
    emulator = triton and not lacking()
    backend = machine.value("torch.backend")
    amd = bool(machine.indices("gpu")) and backend == "rocm" and not machine.hypothetical_target
    need = "needs torch and Triton"
    return (
        Level("reference", triton, _said(triton, "results on the CPU: `rocmend kernels check --device cpu`", need)),
        Level(
            "nvidia", backend == "cuda", _said(backend == "cuda", "results on an NVIDIA GPU", "needs torch for CUDA")
        ),
        Level(
            "compiled",
            triton,
            _said(triton, f"machine code that is checked: `rocmend kernels compile --targets {target}`", need),
        ),
        Level(
            "emulated",
            emulator,
            _said(
                emulator,
                "machine code that is executed on the CPU: `rocmend emulate`",
                f"{need}, rocmend[emulate] and a C compiler",
            ),
        ),
        Level(
            "amd",
            amd,
            _said(amd, "results on the GPU: `rocmend probe`, `rocmend bench`", "needs an AMD GPU and torch for ROCm"),
        ),
    )


def _said(possible: bool, shows: str, lacks: str) -> str:
    return shows if possible else lacks
