"""The kernel of ``quantized_attention`` on Hopper."""

from __future__ import annotations

from rocmend.kernels.backends.hopper import kernel
from rocmend.kernels.backends.hopper.quantized_attention import streams
from rocmend.kernels.ops.attention.quantized_attention import shape_class

IMPLEMENTATIONS = (
    kernel(
        __name__,
        "streams",
        streams.rejects,
        "each wavefront walks over keys of its own",
        record_class=lambda problem: f"{shape_class(problem)} merge/*",
    ),
)
