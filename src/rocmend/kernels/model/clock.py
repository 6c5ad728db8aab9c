"""How many cycles a wavefront's instructions take: of each unit that they use, and from begin to end with its waits."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

from rocmend.kernels.model.hardware import Hardware
from rocmend.kernels.model.listing import Block, Instruction, Listing
from rocmend.kernels.model.scalar import Walk

_COUNTER = re.compile(r"(vmcnt|vscnt|lgkmcnt|expcnt)\((\d+)\)")
_VECTOR = frozenset({"valu", "transcendental", "double", "product"})


class Use(NamedTuple):
    """What a wavefront uses of each unit.

    Args:
        vector: Cycles of the vector unit's issue.
        matrix: Cycles of the matrix unit.
        memory: Cycles of the compute unit's vector memory path.
        lds: Cycles of the compute unit's LDS.
        scalar: Scalar instructions.
        loaded: Bytes that it loads.
        stored: Bytes that it stores.
        spilled: Bytes to and from private memory.
    """

    vector: float = 0.0
    matrix: float = 0.0
    memory: float = 0.0
    lds: float = 0.0
    scalar: float = 0.0
    loaded: float = 0.0
    stored: float = 0.0
    spilled: float = 0.0


def use_of(body: Sequence[Instruction], hardware: Hardware) -> Use:
    """Add up what instructions use, each executed once."""
    total = dict.fromkeys(Use._fields, 0.0)
    lanes, constants = hardware.wave_size, hardware.constants
    for instruction in body:
        moved = instruction.bits * lanes / 8
        if instruction.kind in _VECTOR:
            total["vector"] += vector_cycles(instruction, hardware)
        elif instruction.kind == "matrix":
            total["matrix"] += hardware.matrix_cycles(instruction.dtype, instruction.flops)
        elif instruction.kind in {"load", "store", "scratch"}:
            total["memory"] += max(lanes / constants.vector_lanes, moved / constants.vector_bytes)
            total[{"load": "loaded", "store": "stored", "scratch": "spilled"}[instruction.kind]] += moved
        elif instruction.kind == "lds":
            total["lds"] += max(1.0, moved / constants.lds_bytes)
        elif instruction.kind in {"scalar", "smem", "branch"}:
            total["scalar"] += 1
    return Use(**total)


def vector_cycles(instruction: Instruction, hardware: Hardware) -> float:
    """Return the cycles that a vector instruction keeps its SIMD from issuing another one."""
    constants = hardware.constants
    return {
        "transcendental": constants.transcendental_cycles,
        "double": constants.double_cycles,
        "product": constants.product_cycles,
    }.get(instruction.kind, constants.vector_cycles)


def totals(listing: Listing, counts: Sequence[int], hardware: Hardware) -> Use:
    """Sum what a wavefront uses of each unit over all blocks."""
    uses = [use_of(block.body, hardware) for block in listing.blocks]
    return Use(
        *(sum(count * use[at] for count, use in zip(counts, uses, strict=True)) for at in range(len(Use._fields)))
    )


def alone_cycles(listing: Listing, walk: Walk, hardware: Hardware, load_ns: float) -> float:
    """Return the cycles from a wavefront's begin to its end where it has its SIMD for itself.

    Instructions are issued in order, as soon as the registers that they read are there; waits end when the loads do
    that they name. Of a block the first visits are followed, and the later ones take as long as the last of these.

    Args:
        listing: The kernel.
        walk: Which blocks are executed.
        hardware: The GPU.
        load_ns: From a load to its data.
    """
    timeline = _Timeline(hardware, load_ns * hardware.clock_ghz)
    last: dict[int, float] = {}
    for at in walk.order:
        begin = timeline.now
        timeline.run(listing.blocks[at])
        last[at] = timeline.now - begin
    seen = Counter(walk.order)
    later = sum((walk.counts[at] - seen[at]) * cycles for at, cycles in last.items())
    return timeline.end() + later


class _Timeline:
    """A wavefront's clock, its registers that are not there yet, and its loads under way."""

    def __init__(self, hardware: Hardware, load_cycles: float) -> None:
        self.hardware, self.load_cycles = hardware, load_cycles
        self.now = 0.0
        self.ready: dict[str, float] = {}
        self.queues: dict[str, deque[float]] = {"load": deque(), "store": deque(), "lds": deque(), "smem": deque()}
        self.stores_with_loads = hardware.target.isa_version[0] < 10

    def run(self, block: Block) -> None:
        """Issue a block's instructions."""
        constants, lanes = self.hardware.constants, self.hardware.wave_size
        for instruction in block.body:
            if instruction.kind == "wait":
                self._wait(instruction)
                continue
            ready = self.ready
            start = max([self.now, *(ready[name] for name in instruction.reads if name in ready)])
            cycles, latency = 1.0, 1.0
            moved = instruction.bits * lanes / 8
            if instruction.kind in _VECTOR:
                cycles = vector_cycles(instruction, self.hardware)
                latency = max(cycles, constants.vector_latency)
            elif instruction.kind == "matrix":
                latency = self.hardware.matrix_cycles(instruction.dtype, instruction.flops)
                cycles = latency if constants.matrix_shares else constants.vector_cycles
            elif instruction.kind in {"load", "store", "scratch"}:
                cycles = max(lanes / constants.vector_lanes, moved / constants.vector_bytes)
                self._send(
                    "store" if "_store_" in instruction.name or "_atomic_" in instruction.name else "load", start
                )
            elif instruction.kind == "lds":
                cycles = max(1.0, moved / constants.lds_bytes)
                self.queues["lds"].append(start + cycles + constants.lds_cycles)
            elif instruction.kind == "smem":
                self.queues["smem"].append(start + constants.scalar_cycles)
            self.now = start + cycles
            if instruction.kind in _VECTOR or instruction.kind == "matrix":
                ready.update(dict.fromkeys(instruction.writes, start + latency))

    def _send(self, kind: str, start: float) -> None:
        name = "load" if self.stores_with_loads else kind
        self.queues[name].append(start + self.load_cycles)

    def _wait(self, instruction: Instruction) -> None:
        text = " ".join(instruction.operands)
        for counter, count in _COUNTER.findall(text):
            for name in {"vmcnt": ("load",), "vscnt": ("store",), "lgkmcnt": ("lds", "smem")}.get(counter, ()):
                self._until(name, int(count))
        if instruction.name == "s_waitcnt_vscnt":
            self._until("store", int(instruction.operands[-1], 0))
        elif instruction.name.startswith("s_wait_") and instruction.operands[-1][:2] == "0x":
            value = int(instruction.operands[-1], 0)
            plain = instruction.name.removeprefix("s_wait_")
            first, _, second = plain.partition("_")
            names = {"loadcnt": "load", "storecnt": "store", "dscnt": "lds", "kmcnt": "smem"}
            if second in names and first in names:  # two counters at once: the memory's above LDS's
                self._until(names[first], value >> 8)
                self._until(names[second], value & 63)
            elif first in names:
                self._until(names[first], value)

    def _until(self, name: str, most: int) -> None:
        queue = self.queues[name]
        while len(queue) > most:
            self.now = max(self.now, queue.popleft())

    def end(self) -> float:
        """Return when the wavefront ends; its stores may still be under way."""
        return self.now
