"""The kernel of ``quantized_attention`` on Hopper."""

from __future__ import annotations

from rocmend.kernels.backends.hopper.quantized_attention import streams
from rocmend.kernels.op import Implementation
from rocmend.kernels.ops.attention.quantized_attention import shape_class

IMPLEMENTATIONS = (
    Implementation(
        "streams",
        "triton",
        "rocmend.kernels.backends.hopper.quantized_attention.host:streams",
        streams.rejects,
        note="each wavefront walks over keys of its own",
        vendor="nvidia",
        aligned=True,
        record_class=lambda problem, _target: shape_class(problem),
    ),
)
