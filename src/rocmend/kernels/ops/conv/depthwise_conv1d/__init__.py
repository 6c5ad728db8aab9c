"""Causal depthwise convolution over time with a state: the short convolutions of Mamba and linear attention."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register

HERE = "rocmend.kernels.ops.conv.depthwise_conv1d"
MOST_TAPS = 32
# Backward by implementation.
BACKWARD = {"tile": f"{HERE}.host:run_gradients", "torch": f"{HERE}.reference:gradients"}


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    batch: int
    times: int
    channels: int
    taps: int


def _cost(p: Problem) -> Cost:
    size = bytes_of(p.dtype)
    elements = float(p.batch) * p.times * p.channels
    small = float(p.channels) * p.taps + 2.0 * p.batch * (p.taps - 1) * p.channels
    return Cost(2.0 * p.taps * elements, (2.0 * elements + small) * size)


OP = register(
    Op(
        name="depthwise_conv1d",
        summary="Causal depthwise convolution over time, with input and output state.",
        functions={
            "depthwise_conv1d": f"{HERE}.function:depthwise_conv1d",
            "depthwise_conv1d_gradients": f"{HERE}.function:depthwise_conv1d_gradients",
        },
        reference=f"{HERE}.reference:depthwise_conv1d",
        problem=Problem,
        implementations=(
            Implementation(
                "tile", "triton", f"{HERE}.host:run", rejects_dtype, note="state, bias and activation in one launch"
            ),
            Implementation("torch", "reference", f"{HERE}.reference:depthwise_conv1d"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="x [B, T, C] of any strides, up to 32 taps; forward and backward.",
        cost=_cost,
        tolerance={
            # A sum of a few products of either sign, then exp and a division.
            "float32": Tolerance(ulps=6, scaled=5e-7),
            "float16": Tolerance(ulps=0.6, scaled=1e-6),
            "bfloat16": Tolerance(ulps=0.6, scaled=1e-6),
        },
        cases=f"{HERE}.cases:cases",
        shape_class=lambda p: "step" if p.times <= 8 else "long",
        mlx="mlx.nn.Conv1d",
        sources=("https://arxiv.org/abs/2312.00752",),
        notes=("MLX rounds between the convolution and the activation; here both are computed in fp32.",),
    )
)
