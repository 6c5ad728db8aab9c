"""Measure a compiled kernel: registers, spills, LDS, matrix instructions, widths of loads."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from rocmend.codeobject.notes import read_kernels
from rocmend.codeobject.reader import BytesReader
from rocmend.core.errors import DataError
from rocmend.kernels.compiled.assembly import read_assembly
from rocmend.kernels.compiled.build import Compiled
from rocmend.kernels.compiled.occupancy import occupancy, register_occupancy

FORMAT = 1
"""Part of the cache's path: raise it when ``Measured`` or how its figures are found changes."""

_DOT = re.compile(r"tt\.dot\s(?P<rest>.*?):\s*tensor<[\dx]*x(?P<a>\w+)[^>]*>\s*\*\s*tensor<[\dx]*x(?P<b>\w+)")
_SCALED = re.compile(r"tt\.dot_scaled\s.*?\blhs\s*=\s*(?P<a>\w+)\s+rhs\s*=\s*(?P<b>\w+)")
_PRECISION = re.compile(r"inputPrecision\s*=\s*(\w+)")
_PTX_MATRIX = re.compile(r"^\s+(?:@\S+\s+)?((?:wgmma\.mma_async|mma|tcgen05\.mma)\.[\w.:]+)", re.MULTILINE)
_PTX_MEMORY = re.compile(r"\b(ld|st)\.global[\w.:]*?(?:\.v(\d))?\.[bufs](\d+)\b")
_PTXAS = re.compile(r"Used (\d+) registers|(\d+) bytes stack frame|(\d+) bytes spill stores")


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Figures of a compiled kernel.

    Attributes:
        vgprs: Vector registers a lane, those of ``agprs`` among them (NVIDIA: registers a thread).
        agprs: Accumulation registers.
        sgprs: Scalar registers a wavefront.
        vgpr_spills: Vector registers spilled (NVIDIA: 4-byte stores of spills).
        sgpr_spills: Scalar registers spilled.
        scratch_bytes: Private memory of a lane.
        lds_bytes: LDS (shared memory) of a workgroup.
        waves: Wavefronts of a workgroup.
        occupancy: Wavefronts a SIMD holds at once, whole workgroups with their LDS; 0 where not computed (NVIDIA).
        llvm_occupancy: LLVM's own figure, which is of registers alone.
        matrix: Matrix instructions by name.
        dots: Dot-product instructions by name.
        asked: Operand types of the dots in the source, as ``f16``, ``f32 tf32`` or ``scaled e2m1``, with their number.
        load_bits: Widest load from global memory, bits a lane.
        store_bits: Widest store.
        code_bytes: Length of the code (NVIDIA: of the cubin).
    """

    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    scratch_bytes: int
    lds_bytes: int
    waves: int
    occupancy: int
    llvm_occupancy: int
    matrix: dict[str, int]
    dots: dict[str, int]
    asked: dict[str, int]
    load_bits: int
    store_bits: int
    code_bytes: int


def measure(compiled: Compiled) -> Measured:
    """Measure a compiled kernel.

    Raises:
        DataError: The code object does not say what it should.
    """
    return _amd(compiled) if compiled.spec.target.startswith("gfx") else _nvidia(compiled)


def _amd(compiled: Compiled) -> Measured:
    kernels = [
        kernel for kernel in read_kernels(BytesReader(compiled.code, compiled.name)) if kernel.name == compiled.name
    ]
    if not kernels:
        raise DataError(compiled.name, "is a code object that does not list the kernel it was compiled from.")
    kernel, assembly, spec = kernels[0], read_assembly(compiled.assembly), compiled.spec
    lds_bytes = compiled.lds_bytes + kernel.lds_bytes
    registers = register_occupancy(spec.target, wave_size=kernel.wavefront_size, vgprs=kernel.vgprs, sgprs=kernel.sgprs)
    return Measured(
        vgprs=kernel.vgprs,
        agprs=kernel.agprs,
        sgprs=kernel.sgprs,
        vgpr_spills=kernel.vgpr_spills,
        sgpr_spills=kernel.sgpr_spills,
        scratch_bytes=max(kernel.scratch_bytes, assembly.scratch_bytes),
        lds_bytes=lds_bytes,
        waves=compiled.waves,
        occupancy=occupancy(spec.target, registers, waves=compiled.waves, lds_bytes=lds_bytes),
        llvm_occupancy=assembly.llvm_occupancy,
        matrix=assembly.matrix,
        dots=assembly.dots,
        asked=asked_dots(compiled.ttir),
        load_bits=assembly.load_bits,
        store_bits=assembly.store_bits,
        code_bytes=assembly.code_bytes,
    )


def asked_dots(ttir: str) -> dict[str, int]:
    """Count the dots of a kernel by the types of their operands, the narrower precision of an fp32 dot with it."""
    found: Counter[str] = Counter()
    for line in ttir.splitlines():
        if match := _SCALED.search(line):
            found["scaled " + "*".join(dict.fromkeys((match["a"], match["b"])))] += 1
        elif match := _DOT.search(line):
            precision = _PRECISION.search(match["rest"])
            kind = "*".join(dict.fromkeys((match["a"], match["b"])))
            reduced = f" {precision[1]}" if precision and precision[1] != "ieee" and kind == "f32" else ""
            found[kind + reduced] += 1
    return dict(sorted(found.items()))


def _nvidia(compiled: Compiled) -> Measured:
    stated = [0, 0, 0]
    for match in _PTXAS.finditer(compiled.log):
        for at, value in enumerate(match.groups()):
            stated[at] = max(stated[at], int(value or 0))
    registers, frame, spill = stated
    widths = {"ld": 0, "st": 0}
    for kind, count, bits in _PTX_MEMORY.findall(compiled.assembly):
        widths[kind] = max(widths[kind], int(count or 1) * int(bits))
    return Measured(
        vgprs=registers,
        agprs=0,
        sgprs=0,
        vgpr_spills=spill // 4,
        sgpr_spills=0,
        scratch_bytes=frame,
        lds_bytes=compiled.lds_bytes,
        waves=compiled.waves,
        occupancy=0,
        llvm_occupancy=0,
        matrix=dict(sorted(Counter(_PTX_MATRIX.findall(compiled.assembly)).items())),
        dots={},
        asked=asked_dots(compiled.ttir),
        load_bits=widths["ld"],
        store_bits=widths["st"],
        code_bytes=len(compiled.code),
    )
