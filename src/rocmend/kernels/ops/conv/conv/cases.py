"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rocmend.kernels.suite import Call, Case, Maker, Size

DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Shape:
    """A convolution: input ``[N, spatial..., C]``, output channels, taps, options."""

    name: str
    x: tuple[int, ...]
    outputs: int
    taps: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    size: Size = "small"
    bias: bool = False
    compiled: bool = False

    def weight(self) -> tuple[int, ...]:
        """Return the weight's shape."""
        return (self.outputs, *self.taps, self.x[-1] // self.options.get("groups", 1))


SHAPES = (
    Shape("1x1", (1, 3, 3, 16), 8, (1, 1), size="tiny"),
    Shape("one-pixel", (1, 1, 1, 1), 1, (1, 1), size="tiny"),
    Shape("3x3", (2, 7, 5, 33), 17, (3, 3), {"padding": 1}, bias=True),
    Shape("strided", (1, 11, 9, 32), 40, (3, 3), {"padding": 1, "stride": 2}),
    Shape("dilated", (1, 12, 9, 8), 5, (3, 2), {"padding": (2, 1), "kernel_dilation": (3, 2)}, "tiny"),
    Shape("unequal", (1, 8, 10, 6), 7, (2, 3), {"padding": ((0, 2), (1, 0)), "stride": (1, 3)}, "tiny"),
    Shape("cropped", (1, 9, 9, 8), 4, (3, 3), {"padding": -1}, "tiny"),
    Shape("grouped", (1, 6, 7, 72), 48, (3, 3), {"padding": 1, "groups": 2}, bias=True),
    Shape("small-groups", (1, 6, 7, 12), 18, (3, 3), {"padding": 1, "groups": 3}, "tiny"),
    Shape("depthwise", (2, 7, 6, 20), 20, (3, 3), {"padding": 1, "groups": 20}, "tiny", bias=True),
    Shape("depthwise-multiplied", (1, 7, 6, 10), 30, (5, 3), {"stride": 2, "groups": 10}, "tiny"),
    Shape("transposed", (1, 4, 5, 36), 10, (4, 4), {"padding": 2, "input_dilation": 2, "flip": True}),
    Shape(
        "transposed-depthwise",
        (1, 4, 5, 6),
        6,
        (3, 3),
        {"padding": 2, "input_dilation": 2, "flip": True, "groups": 6},
        "tiny",
    ),
    Shape("both-steps", (1, 7, 6, 9), 5, (3, 4), {"padding": 3, "input_dilation": (3, 2), "stride": (2, 3)}, "tiny"),
    Shape("taps-that-miss", (1, 5, 4), 3, (3,), {"padding": 2, "input_dilation": 2, "kernel_dilation": 2}, "tiny"),
    Shape("1d", (3, 20, 40), 24, (5,), {"padding": 2, "stride": 3}),
    Shape("3d", (1, 4, 5, 6, 10), 12, (2, 3, 3), {"padding": (0, 1, 1), "stride": (1, 2, 1)}, bias=True),
    Shape("3d-transposed", (1, 3, 2, 3, 5), 4, (2, 2, 3), {"padding": 1, "input_dilation": 2, "flip": True}, "tiny"),
    Shape("no-image", (0, 4, 4, 8), 8, (3, 3), size="tiny"),
    Shape("no-channels", (1, 4, 4, 0), 8, (3, 3), size="tiny", bias=True),
)
LARGE = (
    Shape("resnet-stem", (32, 224, 224, 3), 64, (7, 7), {"padding": 3, "stride": 2}, "large", compiled=True),
    Shape("resnet-56", (32, 56, 56, 64), 64, (3, 3), {"padding": 1}, "large", compiled=True),
    Shape("resnet-expand", (32, 56, 56, 64), 256, (1, 1), {}, "large", compiled=True),
    Shape("resnet-28", (32, 28, 28, 128), 128, (3, 3), {"padding": 1}, "large", compiled=True),
    Shape("resnet-28-expand", (32, 28, 28, 128), 512, (1, 1), {}, "large", compiled=True),
    Shape("resnet-14", (32, 14, 14, 256), 256, (3, 3), {"padding": 1}, "large", compiled=True),
    Shape("resnet-7", (8, 7, 7, 512), 512, (3, 3), {"padding": 1}, "large", bias=True, compiled=True),
    Shape("narrow", (4, 112, 112, 64), 24, (3, 3), {"padding": 1}, "large", compiled=True),
    Shape("narrow-few", (1, 28, 28, 128), 16, (1, 1), {}, "large", compiled=True),
    Shape("middle-few", (1, 28, 28, 128), 48, (1, 1), {}, "large", compiled=True),
    Shape("mobilenet", (16, 112, 112, 32), 32, (3, 3), {"padding": 1, "groups": 32}, "large", compiled=True),
    Shape("convnext-odd", (2, 57, 57, 97), 97, (7, 7), {"padding": 3, "groups": 97}, "large", compiled=True),
    Shape("resnext", (8, 28, 28, 256), 256, (3, 3), {"padding": 1, "groups": 32}, "large", compiled=True),
    Shape(
        "upsample",
        (4, 32, 32, 256),
        128,
        (4, 4),
        {"padding": 2, "input_dilation": 2, "flip": True},
        "large",
        compiled=True,
    ),
    Shape("video", (2, 8, 56, 56, 64), 64, (3, 3, 3), {"padding": 1}, "large"),
)
HUGE = Shape("over-2^31", (1, 4, 32768, 16400), 16, (1, 1), {}, "large")


def _forward(shape: Shape, dtype: str, *, edges: bool = False, strided: bool = False, turned: bool = False) -> Case:
    def make(m: Maker) -> Call:
        taps = 1
        for number in (*shape.taps, max(shape.weight()[-1], 1)):
            taps *= number
        x = m.edges(*shape.x, dtype=dtype, largest=dtype == "float16") if edges else m.normal(*shape.x, dtype=dtype)
        if strided:
            x = m.normal(*reversed(shape.x), dtype=dtype).permute(*reversed(range(len(shape.x))))
        weight = m.normal(*shape.weight(), dtype=dtype, scale=taps**-0.5)
        if turned:  # output channels side by side, as an input gradient's weight
            weight = weight.transpose(0, -1).contiguous().transpose(0, -1)
        bias = m.normal(shape.outputs, dtype=dtype) if shape.bias else None
        return Call((x, weight, bias), shape.options)

    marks = tuple(mark for mark, on in (("nan", edges), ("strides", strided or turned), ("empty", 0 in shape.x)) if on)
    name = f"{dtype}-{shape.name}{'-edges' * edges}{'-strided' * strided}{'-turned' * turned}"
    return Case(name, make, dtype, shape.size, compiled=shape.compiled, edges=marks)


def _outputs(shape: Shape) -> tuple[int, ...]:
    """Return the output's shape, by the formula and not by the op's own code."""
    import torch

    from rocmend.kernels.ops.conv.conv.reference import conv_general

    x, weight = torch.zeros(shape.x, device="meta"), torch.zeros(shape.weight(), device="meta")
    return tuple(conv_general(x, weight, **shape.options).shape)


def _weight(shape: Shape, dtype: str) -> Case:
    def make(m: Maker) -> Call:
        outputs = _outputs(shape)
        pixels = 1
        for number in outputs[:-1]:
            pixels *= max(number, 1)
        gradient = m.normal(*outputs, dtype=dtype, scale=pixels**-0.5)
        return Call((m.normal(*shape.x, dtype=dtype), gradient, shape.taps), shape.options)

    return Case(
        f"{dtype}-{shape.name}-weight",
        make,
        dtype,
        shape.size,
        function="conv_weight_gradient",
        reference="rocmend.kernels.ops.conv.conv.reference:conv_weight_gradient",
        compiled=shape.compiled,
    )


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in DTYPES:
        for shape in (*SHAPES, *LARGE):
            if dtype == "bfloat16" and shape.size == "tiny":
                continue  # the geometry is the same for every type
            yield _forward(shape, dtype)
            if shape.name not in ("no-image", "no-channels"):
                yield _weight(shape, dtype)
        yield _forward(SHAPES[2], dtype, strided=True)
        yield _forward(SHAPES[2], dtype, turned=True)
        yield _forward(Shape("1x1", (2, 3, 5, 48), 40, (1, 1), bias=True), dtype, turned=True)
        yield _forward(Shape("1x1-strided", (2, 7, 5, 33), 17, (1, 1), {"stride": 2, "padding": 1}), dtype)
        yield _forward(Shape("3x3", (1, 7, 5, 33), 4, (1, 1)), dtype, edges=True)
    yield _forward(HUGE, "float16")
