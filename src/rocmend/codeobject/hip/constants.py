"""What ROCm's device libraries leave to the compiler: constants of the target, and a fence of their OpenCL part.

ROCm ships one small bitcode file for each constant (``oclc_isa_version_1100.bc`` …). Where only the mathematics and
kernel libraries (``ocml.bc``, ``ockl.bc``) are at hand, this text, turned into bitcode, is linked beside them.

Source:
    https://github.com/ROCm/llvm-project/tree/amd-staging/amd/device-libs, doc/OCLC.md there names the constants.
"""

from __future__ import annotations

from rocmend.core.gfx import GfxTarget

__all__ = ["constants"]

ABI_VERSION = 600
"""Code object version 6, times 100: what clang 20 and later write where nothing else is asked for."""

_CONSTANT = (
    "@__oclc_{name} = linkonce_odr protected local_unnamed_addr addrspace(4) constant {kind} {value}, align {size}"
)

# The strongest fence takes the place of the one asked for: never wrong, and used by old headers alone.
_FENCE = """
define linkonce_odr protected void @__atomic_work_item_fence(i32 %flags, i32 %order, i32 %scope) alwaysinline nounwind {
  fence seq_cst
  ret void
}
"""


def constants(target: GfxTarget, wave_size: int) -> str:
    """Return LLVM IR that defines what the device libraries need for a target.

    The rest is what HIP has without options: correctly rounded fp32 square roots, infinities and NaNs kept, no unsafe
    rewrites.

    Args:
        target: The gfx target.
        wave_size: Lanes of a wavefront, 32 or 64.
    """
    major, minor, stepping = target.isa_version
    values = (
        ("ISA_version", "i32", major * 1000 + minor * 100 + stepping),
        ("wavefrontsize64", "i8", int(wave_size == 64)),
        ("wavefrontsize_log2", "i32", wave_size.bit_length() - 1),
        ("ABI_version", "i32", ABI_VERSION),
        ("correctly_rounded_sqrt32", "i8", 1),
        ("finite_only_opt", "i8", 0),
        ("unsafe_math_opt", "i8", 0),
        ("daz_opt", "i8", 0),
    )
    lines = (
        _CONSTANT.format(name=name, kind=kind, value=value, size=4 if kind == "i32" else 1)
        for name, kind, value in values
    )
    return "\n".join(('target triple = "amdgcn-amd-amdhsa"', *lines, _FENCE))
