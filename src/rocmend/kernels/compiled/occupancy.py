"""How many wavefronts a SIMD can hold, as LLVM counts them.

Source, the namespace IsaInfo in:
https://github.com/llvm/llvm-project/blob/main/llvm/lib/Target/AMDGPU/Utils/AMDGPUBaseInfo.cpp
"""

from __future__ import annotations

from rocmend.core.gfx import GfxTarget, lookup

WGP_BARRIERS, CU_BARRIERS = 32, 16
SGPRS, SGPR_GRANULE, TRAP_HANDLER_SGPRS = 800, 16, 16
"""Of a SIMD before RDNA. LLVM up to that of Triton 3.8 leaves the trap handler's out: up to 3 more."""


def most_waves(target: GfxTarget) -> int:
    """Return the wavefronts that a SIMD holds at most."""
    major, minor, stepping = target.isa_version
    if major == 9:
        unified = (minor, stepping) >= (0, 10) and (minor, stepping) != (0, 12)  # gfx90a, gfx942, gfx950
        return 8 if unified else 10
    return 20 if (major, minor) < (10, 3) else 16


def register_granule(target: GfxTarget, wave_size: int) -> int:
    """Return the number of vector registers that are allocated together."""
    major, minor, _ = target.isa_version
    if major == 9:
        return 8 if most_waves(target) == 8 else 4
    wide = wave_size == 32
    if target.vgprs_per_simd == 1536:
        return 24 if wide else 12
    if (major, minor) >= (10, 3):
        return 16 if wide else 8
    return 8 if wide else 4


def register_occupancy(name: str, *, wave_size: int, vgprs: int, sgprs: int) -> int:
    """Return the wavefronts whose registers one SIMD has room for: LLVM's own figure, to the last.

    LLVM knows neither how large a workgroup is (Triton allows any up to the one launched) nor its LDS, which is
    allocated at launch.

    Args:
        name: The gfx target.
        wave_size: Lanes of a wavefront.
        vgprs: Vector registers a lane, accumulation registers among them where they share a file.
        sgprs: Scalar registers a wavefront.
    """
    target = lookup(name)
    most = most_waves(target)
    return max(1, min(_by_vgprs(target, most, wave_size, vgprs), _by_sgprs(target, most, sgprs)))


def occupancy(name: str, registers: int, *, waves: int, lds_bytes: int) -> int:
    """Return the wavefronts of a kernel that one SIMD holds at once.

    Args:
        name: The gfx target.
        registers: What ``register_occupancy`` gives.
        waves: Wavefronts of a workgroup.
        lds_bytes: LDS of a workgroup.
    """
    target = lookup(name)
    return max(1, min(registers, _by_workgroups(target, most_waves(target), waves, lds_bytes)))


def _by_vgprs(target: GfxTarget, most: int, wave_size: int, vgprs: int) -> int:
    granule = register_granule(target, wave_size)
    if vgprs < granule:
        return most
    available = target.vgprs_per_simd * target.wavefront_default // wave_size
    return min(max(available // (-(-vgprs // granule) * granule), 1), most)


def _by_sgprs(target: GfxTarget, most: int, sgprs: int) -> int:
    if target.isa_version[0] >= 10:
        return most
    return min(SGPRS // (-(-sgprs // SGPR_GRANULE) * SGPR_GRANULE + TRAP_HANDLER_SGPRS), most)


def _by_workgroups(target: GfxTarget, most: int, waves: int, lds_bytes: int) -> int:
    """Whole workgroups only: they share the SIMDs, barriers and LDS of a CU, on RDNA of a work-group processor."""
    shared = 2 if target.isa_version[0] >= 10 else 1
    simds = target.simd_per_cu * shared
    groups = most * simds // waves
    if waves > 1:  # one wavefront needs no barrier
        groups = min(groups, WGP_BARRIERS if shared == 2 else CU_BARRIERS)
    if lds_bytes:
        groups = min(groups, target.lds_per_cu_bytes * shared // lds_bytes)
    return min(-(-max(groups, 1) * waves // simds), most)
