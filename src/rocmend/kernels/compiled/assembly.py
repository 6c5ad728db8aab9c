"""Count what an AMD kernel's assembly consists of."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

_INSTRUCTION = re.compile(r"^\s+((?:v|s|ds|global|buffer|flat|scratch|tbuffer)_\w+)", re.MULTILINE)
_MATRIX = re.compile(r"v_(?:mfma|smfmac|wmma|swmmac)_\w+")
_DOT = re.compile(r"v_dot\d\w*")
_MEMORY = re.compile(r"(global|buffer|flat)_(load|store)_(\w+)")
_COMMENT = re.compile(r"^; (codeLenInByte|Occupancy|ScratchSize)\s*[=:]\s*(\d+)", re.MULTILINE)
_ENCODING = re.compile(r"_(?:e32|e64|dpp|dpp8|sdwa|vgprcd_e64|mac_e64|mac)$")
_BITS = (("128", 128), ("x4", 128), ("96", 96), ("x3", 96), ("64", 64), ("x2", 64), ("32", 32), ("dword", 32))
_SMALL = (("16", 16), ("short", 16), ("8", 8), ("byte", 8))


class Assembly(NamedTuple):
    """What stands in a kernel's assembly.

    Args:
        matrix: Matrix instructions by name, without their encoding's suffix.
        dots: Dot-product instructions of the vector unit, likewise.
        load_bits: Widest load from global memory, bits a lane.
        store_bits: Widest store.
        code_bytes: Length of the code.
        scratch_bytes: Private memory of a lane.
        llvm_occupancy: LLVM's own figure, which knows nothing of LDS allocated at launch.
    """

    matrix: dict[str, int]
    dots: dict[str, int]
    load_bits: int
    store_bits: int
    code_bytes: int
    scratch_bytes: int
    llvm_occupancy: int


def read_assembly(text: str) -> Assembly:
    """Count the instructions of a kernel's assembly and take LLVM's own figures from its comments."""
    names = Counter(found.group(1) for found in _INSTRUCTION.finditer(text))
    stated = {found.group(1): int(found.group(2)) for found in _COMMENT.finditer(text)}
    widths = {"load": 0, "store": 0}
    for name in names:
        if found := _MEMORY.match(name):
            widths[found[2]] = max(widths[found[2]], _bits(found[3]))
    return Assembly(
        matrix=_counted(names, _MATRIX),
        dots=_counted(names, _DOT),
        load_bits=widths["load"],
        store_bits=widths["store"],
        code_bytes=stated.get("codeLenInByte", 0),
        scratch_bytes=stated.get("ScratchSize", 0),
        llvm_occupancy=stated.get("Occupancy", 0),
    )


def _counted(names: Counter[str], wanted: re.Pattern[str]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for name, count in names.items():
        if wanted.fullmatch(name):
            found[_ENCODING.sub("", name)] += count
    return dict(sorted(found.items()))


def _bits(suffix: str) -> int:
    """Return the width that ``dwordx4``, ``b128``, ``d16_u8`` or ``lds_dword`` names."""
    plain = re.sub(r"_?d16(?:_hi)?_?|^lds_|^tr_", "", suffix)
    return next((bits for part, bits in (*_BITS, *_SMALL) if part in plain), 0)
