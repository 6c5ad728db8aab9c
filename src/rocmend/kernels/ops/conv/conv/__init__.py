"""Convolution over one to three axes, forward and both gradients, with no convolution library below it.

One formula covers strided, dilated, padded, grouped, depthwise and transposed convolutions, and the gradient of each
with respect to its input: ``y[o] = Σ_k x[(o·stride - padding + k·dilation) / input_dilation] · w[k]``, over the taps k
for which the division leaves nothing.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, kernel, rejects_dtype, tolerances
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.ops.conv.conv.geometry import Geometry
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target

FEW = 1 << 21
"""Outputs, at least 128 a pixel, of which fewer make fewer tiles than a large GPU has units."""


class Problem(NamedTuple):
    """What choices depend on.

    Args:
        dtype: Element type.
        direction: ``forward`` (transposed convolutions and input gradients too) or ``weight``, the weight gradient.
        pixels_in: Batch times input pixels.
        pixels_out: Batch times output pixels.
        c_in: Input channels.
        c_out: Output channels.
        groups: Groups.
        taps: Taps of the kernel over all axes.
        plain: Padding is the same on both sides, nothing is flipped, and stride and input dilation are not both over 1.
    """

    dtype: str
    direction: str
    pixels_in: int
    pixels_out: int
    c_in: int
    c_out: int
    groups: int
    taps: int
    plain: bool


@functools.lru_cache(maxsize=4096)
def problem_of(direction: str, dtype: str, geometry: Geometry) -> Problem:
    """Return the problem of a convolution."""
    return Problem(
        dtype, direction, geometry.pixels_in, geometry.pixels_out, geometry.c_in, geometry.c_out, geometry.groups,
        geometry.taps, geometry.torch_kind is not None,
    )  # fmt: skip


def kind(problem: Problem) -> str:
    """Name the kernel: ``depthwise``, ``flat`` (few channels: taps and channels are one axis) or ``tiled``."""
    if problem.c_in == problem.groups and problem.groups > 1:
        return "depthwise"
    return "flat" if problem.c_in // max(problem.groups, 1) < 32 else "tiled"


def shape_class(problem: Problem) -> str:
    """Kernel, width and number of the outputs and element type."""
    which = kind(problem)
    dtype = "fp32" if problem.dtype == "float32" else "half"
    if which == "depthwise":
        return f"depthwise-{dtype}"
    outputs = problem.c_out // max(problem.groups, 1)
    if which == "flat":
        return f"flat-{'wide' if outputs > 32 else 'narrow'}-{dtype}"
    width = "wide" if outputs >= 128 else "middle" if outputs > 32 else "narrow"
    point = ""
    if width == "wide" and problem.taps == 1:
        point = "-point" if problem.pixels_in == problem.pixels_out else "-strided-point"
    few = "-few" if problem.pixels_out * max(outputs, 128) < FEW else ""
    return f"{width}{point}{few}-{dtype}"


def weight_class(problem: Problem) -> str:
    """Class of the records of ``weight_tiled``: taps, output by input channels of a group, pixels, element type."""
    if problem.dtype == "float32":
        return "fp32"
    groups = max(problem.groups, 1)
    outputs, channels = (
        "wide" if count >= 128 else "middle" if count > 32 else "narrow"
        for count in (problem.c_out // groups, problem.c_in // groups)
    )
    few = "-few" if problem.pixels_out < 16384 else ""
    return f"{'point' if problem.taps == 1 else 'taps'}-{outputs}-by-{channels}{few}-half"


def _records(problem: Problem) -> str:
    which, own = kind(problem), shape_class(problem)
    if problem.direction == "forward":
        return f"depthwise/{own}" if which == "depthwise" else f"forward/{own} parts/few"
    parts = " parts/few parts/many parts/most"
    if which == "depthwise":
        return f"depthwise_weight/{own}{parts}"
    return f"weight_tiled/{weight_class(problem)} " * (which == "tiled") + f"weight/{own}{parts}"


def _rejects_uneven(problem: Problem, _target: Target) -> str | None:
    return (
        None if problem.plain else "torch has no convolution with this padding or with both stride and input dilation"
    )


def _rejects_vendor(problem: Problem, target: Target) -> str | None:
    if reason := _rejects_uneven(problem, target):
        return reason
    if target.vendor == "amd" and target.generation == 10:
        return (
            "MIOpen has few tuned kernels for RDNA1 and RDNA2, because their builds lack composable_kernel, "
            "and convolutions were reported to hang there; a record of `rocmend kernels tune` overrides this"
        )
    return None


def cost(problem: Problem) -> Cost:
    """Each multiply-add once; input, weight and output travel once."""
    per_output = problem.taps * (problem.c_in // max(problem.groups, 1))
    size = bytes_of(problem.dtype)
    elements = problem.pixels_in * problem.c_in + problem.pixels_out * problem.c_out + problem.c_out * per_output
    return Cost(2.0 * problem.pixels_out * problem.c_out * per_output, float(size * elements))


OP = declare(
    __name__,
    summary="Convolution over 1 to 3 axes: strided, dilated, grouped, depthwise, transposed; both gradients.",
    functions=(
        "conv_general", "conv_weight_gradient", "named:conv1d", "named:conv2d", "named:conv3d",
        "named:conv_transpose1d", "named:conv_transpose2d", "named:conv_transpose3d", "named:convolution",
    ),
    problem=Problem,
    implementations=(
        Implementation("torch.nn", "vendor", "vendor:plan", _rejects_vendor, note="cuDNN or MIOpen"),
        kernel(
            "implicit-gemm",
            rejects_dtype,
            note="no vendor library",
            record_class=_records,
            function="plan",
            file="host",
        ),
        Implementation("columns", "vendor", "columns:plan", _rejects_uneven, note="matrix products alone"),
        Implementation("torch", "reference", "reference:plan"),
    ),
    example="direction=forward pixels_in=3136 pixels_out=3136 c_in=64 c_out=64 taps=9 plain=true",
    domain="1 to 3 spatial axes; channels last (as MLX) or first, any strides; any stride, dilation, input "
    "dilation, padding (negative too), groups, flip.",
    cost=cost,
    # Sums of c_in · taps products in fp32, in another order than the reference, then one rounding.
    tolerance=tolerances(Tolerance(ulps=4, scaled=4e-6), Tolerance(ulps=1, scaled=2e-5)),
    shape_class=shape_class,
    mlx="mlx.core.conv_general",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.conv_general.html",),
)  # fmt: skip
