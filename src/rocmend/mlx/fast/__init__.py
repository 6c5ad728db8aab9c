"""Fused operations of models: norms, rotary positions, attention, losses, recurrences."""

from __future__ import annotations

from rocmend.mlx.accelerated import install
from rocmend.mlx.fast.attention import scaled_dot_product_attention
from rocmend.mlx.fast.cross_entropy import cross_entropy
from rocmend.mlx.fast.custom import cuda_kernel, metal_kernel, precompiled_cuda_kernel
from rocmend.mlx.fast.gated_delta import gated_delta_update
from rocmend.mlx.fast.norms import layer_norm, rms_norm
from rocmend.mlx.fast.rope import rope

__all__ = [
    "cross_entropy",
    "cuda_kernel",
    "gated_delta_update",
    "layer_norm",
    "metal_kernel",
    "precompiled_cuda_kernel",
    "rms_norm",
    "rope",
    "scaled_dot_product_attention",
]

install.fast(globals())
