"""Records of the gfx-target table."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from rocmend.core.records import Source

if TYPE_CHECKING:
    from rocm_bootstrap.targets import TargetBundle


class MatrixUnit(StrEnum):
    """What multiplies matrices in a compute unit."""

    NONE = "none"
    MFMA = "MFMA"
    WMMA = "WMMA"
    WMMA_GFX12 = "WMMA gfx12"
    WMMA_GFX1250 = "WMMA gfx1250"


class Xnack(StrEnum):
    """Whether the GPU can retry a memory access after a page fault."""

    UNSUPPORTED = "unsupported"
    SUPPORTED = "supported"
    DEFAULT_ON = "default_on"


class GfxTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One gfx target: what code is compiled for, and what that code finds there.

    Attributes:
        name: LLVM processor name, e.g. ``gfx1151``.
        chip: The silicon or the APU family that carries it, e.g. ``Strix Halo``.
        architecture: ``GCN5.0``, ``GCN5.1``, ``CDNA1`` … ``CDNA4``, ``RDNA1`` … ``RDNA4``.
        generation: ISA major version as LLVM counts it: ``gfx9`` … ``gfx12``.
        generic_class: LLVM generic target whose code this target runs, e.g. ``gfx11-generic``; None where none is.
        kfd_version: ``gfx_target_version`` of the kernel driver's topology, e.g. 110501.
        wavefront_default: Lanes of a wavefront of HIP code.
        wavefront_sizes: Lanes of a wavefront that the hardware can run.
        matrix_unit: What multiplies matrices.
        matrix_dtypes: Element types that the matrix unit takes.
        dot_instructions: Dot-product instructions of the vector unit, e.g. ``v_dot4_i32_i8``.
        beyond_generic: Instructions that code for the target may use and code for its generic class may not.
        flop_per_clock_per_cu: Dense peak, operations (a multiply-add is two) per clock of one compute unit, by dtype.
        not_accelerated: dtype to how it is computed instead; its figure is then an upper bound.
        lds_per_workgroup_bytes: Most local data share that one workgroup can have.
        lds_per_cu_bytes: Local data share of a compute unit (RDNA: half of a work-group processor's).
        vgprs_per_simd: Vector registers of a SIMD, each as wide as the default wavefront.
        simd_per_cu: SIMDs of a compute unit.
        is_apu: The GPU shares the processor's memory.
        fine_grained: The runtime offers fine-grained coherent memory in the GPU's own memory; None where it depends.
        fine_grained_note: What it depends on.
        xnack: Whether page faults can be retried.
        therock_name: TheRock's label of the target.
        families: TheRock's build families that the target belongs to.
        excluded_libraries: ROCm libraries that TheRock leaves out of the target's builds.
        notes: What else a person should know, one sentence each.
        sources: Who says so, by field name; ``*`` stands for every field that has no entry of its own.
    """

    name: str
    chip: str
    architecture: str
    generation: str
    generic_class: str | None
    kfd_version: int
    wavefront_default: int
    wavefront_sizes: tuple[int, ...]
    matrix_unit: MatrixUnit
    matrix_dtypes: tuple[str, ...]
    dot_instructions: tuple[str, ...]
    beyond_generic: tuple[str, ...]
    flop_per_clock_per_cu: dict[str, int]
    not_accelerated: dict[str, str]
    lds_per_workgroup_bytes: int
    lds_per_cu_bytes: int
    vgprs_per_simd: int
    simd_per_cu: int
    is_apu: bool
    fine_grained: bool | None
    fine_grained_note: str
    xnack: Xnack
    therock_name: str
    families: tuple[str, ...]
    excluded_libraries: tuple[str, ...]
    notes: tuple[str, ...]
    sources: dict[str, Source]

    @property
    def isa_version(self) -> tuple[int, int, int]:
        """ISA major, minor and stepping: gfx90a is (9, 0, 10)."""
        return self.kfd_version // 10000, self.kfd_version // 100 % 100, self.kfd_version % 100

    @property
    def override_value(self) -> str:
        """What ``HSA_OVERRIDE_GFX_VERSION`` must hold for a GPU to pass as this target, e.g. ``11.5.1``."""
        return ".".join(str(part) for part in self.isa_version)

    @property
    def has_matrix_unit(self) -> bool:
        """Whether there is a matrix unit at all."""
        return self.matrix_unit is not MatrixUnit.NONE

    def source_of(self, field: str) -> Source | None:
        """Return who says so for a field."""
        return self.sources.get(field, self.sources.get("*"))

    def packaging_chain(self) -> tuple[TargetBundle, TargetBundle, TargetBundle]:
        """Return the levels at which ROCm's Python packages exist for this target: target, sub-family, family."""
        from rocm_bootstrap.targets import packaging_chain

        chain: tuple[TargetBundle, TargetBundle, TargetBundle] = packaging_chain(self.name)
        return chain


class Product(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A card, accelerator or APU that a person can buy.

    Attributes:
        name: Marketing name without the maker, e.g. ``Radeon RX 7900 XTX``.
        gfx: Its gfx target.
        compute_units: Compute units that are switched on, over all its GPUs.
        max_clock_mhz: Highest clock by specification (boost or peak engine clock); None where none is published.
        memory_gb: Memory of the card in GB as sold; None for an APU without memory of its own.
        bandwidth_gb_s: Peak memory bandwidth in GB/s (1e9); None where it depends on the memory fitted.
        is_apu: It shares the processor's memory.
        devices: GPUs that it presents to the system (an MI250X presents two).
        pci: PCI device ids, ``0x15bf``, or with a revision ``0x744c:c8``.
        aliases: Other names it goes by: the processor's, the chip's.
        peaks_tflops: Dense peaks that the maker publishes, by dtype.
        sources: Where the figures stand.
    """

    name: str
    gfx: str
    compute_units: int
    max_clock_mhz: int | None = None
    memory_gb: float | None = None
    bandwidth_gb_s: float | None = None
    is_apu: bool = False
    devices: int = 1
    pci: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    peaks_tflops: dict[str, float] = {}
    sources: tuple[Source, ...] = ()

    @property
    def device_ids(self) -> tuple[str, ...]:
        """PCI device ids without revisions."""
        return tuple(dict.fromkeys(entry.partition(":")[0] for entry in self.pci))


class Override(msgspec.Struct, frozen=True):
    """What setting ``HSA_OVERRIDE_GFX_VERSION`` so that one target passes as another would mean.

    Attributes:
        value: The value to set.
        sane: Both targets belong to one LLVM generic class, and the GPU has every instruction that code for the other
            may use. Necessary, not sufficient: whether results are right has still to be proved.
        reason: Why, for a person to read.
    """

    value: str
    sane: bool
    reason: str
