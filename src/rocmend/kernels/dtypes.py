"""Names of element types."""

from __future__ import annotations

import torch

NAMES: dict[torch.dtype, str] = {
    getattr(torch, name): name
    for name in (
        "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "bool",
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "complex64",
    )
}  # fmt: skip
BY_NAME: dict[str, torch.dtype] = {name: dtype for dtype, name in NAMES.items()}
