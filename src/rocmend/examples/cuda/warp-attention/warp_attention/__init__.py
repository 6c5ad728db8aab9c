"""A few operations as CUDA kernels, with what PyTorch does in their place where there is no GPU."""

from .block import Block
from .ops import attention, keep_above, rms_norm

__all__ = ["Block", "attention", "keep_above", "rms_norm"]
