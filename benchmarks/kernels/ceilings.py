"""What the machine can do at most, measured in the same run: the rates that every figure is a fraction of."""

from __future__ import annotations

import torch

from rocmend.kernels.timing import timed

RATES = ("bfloat16", "float16", "float32")


def measured(device: torch.device, *, size: int = 8192, copy_bytes: int = 1 << 31) -> dict[str, float]:
    """Return ``copy_gb_s``, ``read_gb_s`` and ``<dtype>_tflops`` of plain matrix products.

    Args:
        device: The GPU.
        size: Rows, columns and depth of the matrix products.
        copy_bytes: Bytes of the tensor that is copied; both its reading and its writing count.
    """
    found: dict[str, float] = {}
    found |= _bandwidth(device, copy_bytes)
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        for name in RATES:
            sizes = size if name != "float32" else size // 2
            a = torch.randn(sizes, sizes, device=device, dtype=torch.float32).to(getattr(torch, name))
            b = torch.randn(sizes, sizes, device=device, dtype=torch.float32).to(getattr(torch, name))
            us = timed([lambda a=a, b=b: torch.mm(a, b)], device).us  # type: ignore[misc]
            found[f"{name}_tflops"] = 2 * sizes**3 / us / 1e6
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed
    return found


def _bandwidth(device: torch.device, size_bytes: int) -> dict[str, float]:
    source = torch.empty(size_bytes // 4, dtype=torch.float32, device=device).normal_()
    target = torch.empty_like(source)
    # copy_ is a memcpy, which the driver may do more slowly than a kernel does: the faster one is the ceiling
    ways = (lambda: target.copy_(source), lambda: torch.neg(source, out=target))
    copied = max(2 * source.nbytes / timed([way], device).us / 1e3 for way in ways)
    return {"copy_gb_s": copied, "read_gb_s": source.nbytes / timed([lambda: torch.sum(source)], device).us / 1e3}


def floor_us(ceilings: dict[str, float], size_bytes: float, flops: float, rate: str) -> float:
    """Return the least time that the measured ceilings allow: the larger of travel and arithmetic, microseconds."""
    travel = size_bytes / ceilings["copy_gb_s"] / 1e3
    return max(travel, flops / ceilings[f"{rate}_tflops"] / 1e6)
