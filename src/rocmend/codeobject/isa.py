"""From the ``e_flags`` of an AMDGPU ELF file, and from the ids of bundle entries, to gfx targets."""

from __future__ import annotations

import re

import msgspec

from rocmend.core.errors import DataError, UsageError
from rocmend.core.gfx.names import TargetId, parse_target_id

ELFOSABI_AMDGPU_HSA = 64
EM_AMDGPU = 224
SPIRV = "amdgcnspirv"
"""Portable code that the runtime compiles for the GPU when it loads it."""

# EF_AMDGPU_MACH, https://llvm.org/docs/AMDGPUUsage.html#amdgpu-ef-amdgpu-mach-table
_MACH_IN_ORDER = (
    (0x20, "gfx600 gfx601 gfx700 gfx701 gfx702 gfx703 gfx704"),
    (0x28, "gfx801 gfx802 gfx803 gfx810 gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90c gfx1010 gfx1011 gfx1012"),
    (0x36, "gfx1030 gfx1031 gfx1032 gfx1033 gfx602 gfx705 gfx805 gfx1035 gfx1034 gfx90a gfx940"),
    (0x41, "gfx1100 gfx1013 gfx1150 gfx1103 gfx1036 gfx1101 gfx1102 gfx1200 gfx1250 gfx1151 gfx941 gfx942"),
    (0x4E, "gfx1201 gfx950 gfx1310 gfx9-generic gfx10-1-generic gfx10-3-generic gfx11-generic gfx1152"),
    (0x57, "gfx1154 gfx1153 gfx12-generic gfx1251 gfx12-5-generic gfx1172 gfx1170 gfx1171 gfx9-4-generic"),
    (0x62, "gfx11-7-generic gfx13-generic"),
)
MACH: dict[int, str] = {
    first + index: name for first, names in _MACH_IN_ORDER for index, name in enumerate(names.split())
}
_MACH_MASK = 0xFF

# Targets whose code can depend on the setting, https://llvm.org/docs/AMDGPUUsage.html#amdgpu-processors
_XNACK = re.compile(r"gfx(801|810|90[0-9ac]|94[012]|950|101[0-3]|9-generic|9-4-generic|10-1-generic)\Z")
_SRAMECC = re.compile(r"gfx(906|908|90a|94[012]|950|9-4-generic)\Z")

KNOWN_PROCESSORS = frozenset(MACH.values())

_ENTRY_KINDS = ("hipv4-", "hip-", "hcc-", "openmp-")
_TRIPLE_TAIL = re.compile(r"(gfx[0-9a-z]+(?:-[0-9a-z]+)*(?::[a-z0-9_-]+[+-])*|amdgcnspirv)\Z")


class Isa(msgspec.Struct, frozen=True):
    """What a code object was compiled for.

    Attributes:
        target: Processor with the settings its code depends on, e.g. ``gfx90a:sramecc+:xnack-``.
        code_object_version: 2 … 6.
        generic_version: Version of a generic target's code; 0 for a specific target.
    """

    target: str
    code_object_version: int
    generic_version: int = 0

    @property
    def processor(self) -> str:
        """The target without settings."""
        return self.target.partition(":")[0]


def _switches_v4(flags: int) -> dict[str, bool]:
    """Two bits a setting: 0 unsupported, 1 any, 2 off, 3 on."""
    found = {}
    for name, shift in (("xnack", 8), ("sramecc", 10)):
        value = flags >> shift & 3
        if value >= 2:
            found[name] = value == 3
    return found


def _switches_v3(flags: int, processor: str) -> dict[str, bool]:
    """One bit a setting, which means on or off and nothing else."""
    found = {}
    if _XNACK.match(processor):
        found["xnack"] = bool(flags & 0x100)
    if _SRAMECC.match(processor):
        found["sramecc"] = bool(flags & 0x200)
    return found


def from_flags(flags: int, abi_version: int, name: str = "code object") -> Isa:
    """Return what the flags of an AMDGPU ELF header say.

    Args:
        flags: ``e_flags``.
        abi_version: ``e_ident[EI_ABIVERSION]`` for the HSA OS ABI: 0 is code object version 2, 4 is version 6.
        name: What messages call the file.

    Raises:
        DataError: The processor or the ABI version is not one that we know.

    Source:
        https://llvm.org/docs/AMDGPUUsage.html#amdgpu-elf-header
    """
    processor = MACH.get(flags & _MACH_MASK)
    if processor is None:
        raise DataError(
            name,
            f"holds AMDGPU code for a processor we have no name for (EF_AMDGPU_MACH 0x{flags & _MACH_MASK:02x}).",
            why="It is newer than this version of rocmend, or damaged.",
        )
    if abi_version > 4:
        raise DataError(name, f"has code object ABI version {abi_version}; 0 to 4 (code object V2 to V6) are known.")
    switches = _switches_v4(flags) if abi_version >= 2 else _switches_v3(flags, processor)
    generic = flags >> 24 & 0xFF if abi_version >= 4 and processor.endswith("-generic") else 0
    return Isa(str(TargetId(processor, switches)), abi_version + 2, generic)


def from_header(header: bytes, name: str = "code object") -> Isa:
    """Return what the first 52 bytes of an AMDGPU ELF file say.

    Raises:
        DataError: They are not the beginning of one.
    """
    if len(header) < 52 or header[:7] != b"\x7fELF\x02\x01\x01":
        raise DataError(name, "is not a 64-bit little-endian ELF file, as every AMDGPU code object is.")
    if int.from_bytes(header[18:20], "little") != EM_AMDGPU:
        raise DataError(name, f"is an ELF file for machine {int.from_bytes(header[18:20], 'little')}, not for AMDGPU.")
    if header[7] != ELFOSABI_AMDGPU_HSA:
        raise DataError(name, f"is AMDGPU code for OS ABI {header[7]}, not for ROCm's HSA (64).")
    return from_flags(int.from_bytes(header[48:52], "little"), header[8], name)


def entry_target(entry_id: str) -> str | None:
    """Return the target that a bundle entry's id names, or None for host code and other makers' devices.

    Args:
        entry_id: ``hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-``, ``hip-amdgcn-amd-amdhsa-gfx803``, ``host-…``.

    Source:
        https://clang.llvm.org/docs/ClangOffloadBundler.html#bundle-entry-id
    """
    text = entry_id.strip().lower()
    if not text.startswith(_ENTRY_KINDS) or ("amdgcn" not in text):
        return None
    match = _TRIPLE_TAIL.search(text)
    if match is None:
        return None
    if match[1] == SPIRV:
        return SPIRV
    return normalise(match[1])


def normalise(target: str) -> str | None:
    """Return a target id with its settings in canonical order, or None where it is none we know."""
    try:
        parsed = parse_target_id(target)
    except UsageError:
        return None
    return str(parsed) if parsed.processor in KNOWN_PROCESSORS else None
