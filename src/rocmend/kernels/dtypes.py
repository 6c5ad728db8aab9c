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
# What Triton calls them in a kernel's signature.
TRITON_NAMES: dict[torch.dtype, str] = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "fp8e4nv",
    torch.float8_e5m2: "fp8e5",
    torch.bool: "i1",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
}
