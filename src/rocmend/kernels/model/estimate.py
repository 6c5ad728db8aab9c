"""Estimate how long a launch takes on a GPU that is not there, from its code object."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from rocmend.kernels.model.clock import Use, alone_cycles, totals
from rocmend.kernels.model.hardware import Hardware
from rocmend.kernels.model.launches import arguments_of, kernarg_of, tensor_bytes
from rocmend.kernels.model.listing import read_listing
from rocmend.kernels.model.scalar import walk
from rocmend.kernels.tuning.expression import ExpressionError, evaluate

if TYPE_CHECKING:
    from rocmend.kernels.compiled.build import Compiled
    from rocmend.kernels.compiled.measure import Measured
    from rocmend.kernels.executor import Launch

VERSION = "2"
"""Of the model: raise it when estimates change, so that records say which version proposed them."""


class EstimateError(Exception):
    """There is no estimate of a kernel."""


SAMPLES = 3
"""Workgroups whose control flow is followed, spread over the grid: those of a causal attention differ."""


class Estimate(msgspec.Struct, frozen=True):
    """What the model says about a launch.

    Attributes:
        kernel: The Triton function.
        time_us: Estimated time, the launch included.
        bound: The unit that takes longest: ``memory``, ``latency``, ``vector``, ``matrix``, ``lds``, ``vector memory``.
        units_us: Time of each unit by name, as if it were alone.
        bytes: Bytes to and from memory.
        workgroups: Workgroups of the launch.
        occupancy: Wavefronts that a SIMD holds at once.
        spills: Registers spilled.
        guessed: Branches on data whose outcome was assumed.
    """

    kernel: str
    time_us: float
    bound: str
    units_us: dict[str, float]
    bytes: float
    workgroups: int
    occupancy: int
    spills: int
    guessed: int


def estimate(
    compiled: Compiled, measured: Measured, launch: Launch, hardware: Hardware, trips: Sequence[str] = ()
) -> Estimate:
    """Estimate a launch.

    Each unit's time is what its wavefronts need of it where nothing else limits them:

    * memory: bytes of the tensors, or those loaded and stored if these are fewer, over the bandwidth that is reached;
    * vector, matrix: cycles of the SIMD with the most wavefronts; on RDNA both are of one unit;
    * vector memory, LDS: cycles of the compute unit with the most;
    * latency: from begin to end of one wavefront with its waits, times the rounds in which the SIMD takes them.

    The launch takes as long as the slowest, plus the time between launches.

    Args:
        compiled: The kernel.
        measured: Its registers, LDS and occupancy.
        launch: Grid and arguments.
        hardware: The GPU.
        trips: Trips of loops that depend on data, as a space states them.

    Raises:
        EstimateError: A loop has no end that the model finds.
    """
    listing = read_listing(compiled.assembly, compiled.name)
    segment = kernarg_of(compiled, launch, hardware.wave_size)
    known = _trips(trips, arguments_of(launch))
    walks = [walk(listing, segment, workgroup, known) for workgroup in _samples(launch.grid)]
    if any(walk.cut for walk in walks):
        raise EstimateError(f"{compiled.name}: the model does not find the end of a loop")
    part = 1.0 / len(walks)
    use = Use(
        *(
            part * sum(values)
            for values in zip(*(totals(listing, walk.counts, hardware) for walk in walks), strict=True)
        )
    )
    groups, waves = math.prod(launch.grid), compiled.waves
    moved = (use.loaded + use.stored) * waves * groups
    travels = min(moved, float(tensor_bytes(launch)))
    # what is loaded again is in a cache
    cold = travels / moved if moved else 1.0
    constants = hardware.constants
    load_ns = cold * constants.memory_ns + (1 - cold) * constants.cache_ns
    alone = part * sum(alone_cycles(listing, walk, hardware, load_ns) for walk in walks)
    units = _units_us(use, alone, _Spread.of(launch, waves, hardware), measured.occupancy, hardware)
    units["memory"] = (
        (travels + use.spilled * waves * groups) / (hardware.bandwidth_gb_s * constants.bandwidth_part) / 1e3
    )
    bound = max(units, key=lambda name: units[name])
    return Estimate(
        compiled.name,
        units[bound] + constants.launch_us,
        bound,
        units,
        travels,
        groups,
        measured.occupancy,
        measured.vgpr_spills + measured.sgpr_spills,
        sum(walk.guessed for walk in walks),
    )


class _Spread(NamedTuple):
    """How a launch's wavefronts spread over a GPU.

    Args:
        wide: Compute units that a workgroup may use: on RDNA the two of a work-group processor.
        waves: Wavefronts on the processor that has the most.
        on_simd: Wavefronts on the SIMD that has the most.
    """

    wide: int
    waves: int
    on_simd: int

    @classmethod
    def of(cls, launch: Launch, waves: int, hardware: Hardware) -> _Spread:
        """Spread whole workgroups evenly."""
        narrow = hardware.target.isa_version[0] < 10 or launch.config.items().get("wgp_cu_mode") == "cu"
        wide = 1 if narrow else 2
        processors = max(1, hardware.compute_units // wide)
        most = -(-math.prod(launch.grid) // processors) * waves
        return cls(wide, most, -(-most // (hardware.target.simd_per_cu * wide)))


def _units_us(use: Use, alone: float, spread: _Spread, occupancy: int, hardware: Hardware) -> dict[str, float]:
    cycle_us = 1e-3 / hardware.clock_ghz
    vector, matrix = use.vector * spread.on_simd, use.matrix * spread.on_simd
    if hardware.constants.matrix_shares:
        vector += matrix
    return {
        "vector": vector * cycle_us,
        "matrix": matrix * cycle_us,
        "vector memory": use.memory * spread.waves / spread.wide * cycle_us,
        "lds": use.lds * spread.waves / spread.wide * cycle_us,
        "latency": alone * -(-spread.on_simd // max(1, occupancy)) * cycle_us,
    }


def _samples(grid: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the numbers of workgroups spread over a grid."""
    x, y, z = (*grid, 1, 1)[:3]
    total = x * y * z
    places = sorted({min(total - 1, total * (2 * at + 1) // (2 * SAMPLES)) for at in range(SAMPLES)})
    return [(place % x, place // x % y, place // (x * y)) for place in places]


def _trips(texts: Sequence[str], arguments: dict[str, Any]) -> list[int]:
    found = []
    for text in texts:
        try:
            found.append(max(1, math.ceil(evaluate(text, arguments))))
        except ExpressionError:
            found.append(1)
    return found
