"""Causal depthwise convolution over time with a state: the short convolutions of Mamba and linear attention."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, kernel, rejects_dtype, tolerances
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare

MOST_TAPS = 32


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    batch: int
    times: int
    channels: int
    taps: int


def _shape_class(problem: Problem) -> str:
    return "step" if problem.times <= 8 else "long"


def _cost(p: Problem) -> Cost:
    size = bytes_of(p.dtype)
    elements = float(p.batch) * p.times * p.channels
    small = float(p.channels) * p.taps + 2.0 * p.batch * (p.taps - 1) * p.channels
    return Cost(2.0 * p.taps * elements, (2.0 * elements + small) * size)


OP = declare(
    __name__,
    summary="Causal depthwise convolution over time, with input and output state.",
    functions=("depthwise_conv1d", "depthwise_conv1d_gradients"),
    problem=Problem,
    implementations=(
        kernel(
            "tile",
            rejects_dtype,
            note="state, bias and activation in one launch",
            record_class=_shape_class,
            function="run",
            file="host",
        ),
        Implementation("torch", "reference", "reference:depthwise_conv1d"),
    ),
    domain="x [B, T, C] of any strides, up to 32 taps; forward and backward.",
    cost=_cost,
    # A sum of a few products of either sign, then exp and a division.
    tolerance=tolerances(Tolerance(ulps=6, scaled=5e-7), Tolerance(ulps=0.6, scaled=1e-6)),
    shape_class=_shape_class,
    mlx="mlx.nn.Conv1d",
    sources=("https://arxiv.org/abs/2312.00752",),
    notes=("MLX rounds between the convolution and the activation; here both are computed in fp32.",),
)
