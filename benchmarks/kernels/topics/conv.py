"""Convolutions at ResNet-50's shapes, 32 images in fp16: forward and both gradients; cuDNN beside, in both layouts.

The implicit product is asked for by name: on this GPU the vendor's library would be chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from benchmarks.kernels.bench import Bench, Peer

from rocmend.kernels.ops.conv import conv
from rocmend.kernels.ops.conv.conv.function import input_gradient
from rocmend.kernels.ops.conv.conv.geometry import geometry_of
from rocmend.kernels.suite import Call, Maker
from rocmend.kernels.suite.compare import compare


class Layer(NamedTuple):
    """Input and output channels, taps along an axis, stride, input pixels along an axis."""

    c_in: int
    c_out: int
    taps: int
    stride: int
    size: int

    @property
    def out(self) -> int:
        """Output pixels along an axis."""
        return -(-self.size // self.stride)


LAYERS = tuple(
    Layer(*numbers)
    for numbers in (
        (3, 64, 7, 2, 224), (64, 64, 1, 1, 56), (64, 64, 3, 1, 56), (64, 256, 1, 1, 56), (256, 64, 1, 1, 56),
        (256, 128, 1, 1, 56), (128, 128, 3, 2, 56), (128, 512, 1, 1, 28), (256, 512, 1, 2, 56), (512, 128, 1, 1, 28),
        (128, 128, 3, 1, 28), (512, 256, 1, 1, 28), (256, 256, 3, 2, 28), (256, 1024, 1, 1, 14), (1024, 256, 1, 1, 14),
        (256, 256, 3, 1, 14), (1024, 512, 1, 1, 14), (512, 512, 3, 2, 14), (512, 2048, 1, 1, 7), (2048, 512, 1, 1, 7),
        (512, 512, 3, 1, 7),
    )
)  # fmt: skip
FIRST = frozenset({2, 6, 15, 18})
"""Layers whose gradients are measured before the others'."""
TINY = (Layer(3, 16, 7, 2, 12), Layer(32, 16, 3, 1, 6), Layer(32, 32, 1, 2, 6))
DIRECTIONS = ("forward", "input", "weight")
DTYPE = "float16"


def _make(m: Maker, layer: Layer, direction: str, images: int) -> Call:
    """Return x or the output's gradient, and the weight or the output's gradient."""
    x = m.normal(images, layer.size, layer.size, layer.c_in, dtype=DTYPE)
    weight = m.normal(layer.c_out, layer.taps, layer.taps, layer.c_in, dtype=DTYPE, scale=_scale(layer))
    if direction == "forward":
        return Call((x, weight))
    pixels = images * layer.out**2
    scale = pixels**-0.5 if direction == "weight" else 1.0
    gradient = m.normal(images, layer.out, layer.out, layer.c_out, dtype=DTYPE, scale=scale)
    return Call((gradient, weight) if direction == "input" else (gradient, x))


def _scale(layer: Layer) -> float:
    return float((layer.taps**2 * layer.c_in) ** -0.5)


def _ours(layer: Layer, direction: str, images: int) -> Callable[..., torch.Tensor]:
    from rocmend.kernels.ops.conv.conv.function import conv_general, conv_weight_gradient

    padding = layer.taps // 2
    geometry = geometry_of(
        "conv_general",
        torch.Size((images, layer.size, layer.size, layer.c_in)),
        torch.Size((layer.c_out, layer.taps, layer.taps, layer.c_in)),
        layer.stride,
        padding,
        1,
        1,
        1,
        False,
    )

    def forward(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return conv_general(x, weight, stride=layer.stride, padding=padding)

    def to_input(gradient: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return input_gradient(gradient, weight, geometry)

    def to_weight(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return conv_weight_gradient(x, gradient, (layer.taps, layer.taps), stride=layer.stride, padding=padding)

    return {"forward": forward, "input": to_input, "weight": to_weight}[direction]


def _torch(layer: Layer, direction: str, images: int) -> Callable[..., torch.Tensor]:
    """Return torch's on tensors ``[N, C, H, W]`` in whichever layout."""
    padding = [layer.taps // 2] * 2
    stride = [layer.stride] * 2

    def forward(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        torch.backends.cudnn.benchmark = True
        return torch.nn.functional.conv2d(x, weight, stride=layer.stride, padding=layer.taps // 2)

    def backward(gradient: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        torch.backends.cudnn.benchmark = True
        last = other.is_contiguous(memory_format=torch.channels_last)
        layout = torch.channels_last if last else torch.contiguous_format
        wanted = direction == "input"
        shape = (
            (images, layer.c_in, layer.size, layer.size)
            if wanted
            else (layer.c_out, layer.c_in, layer.taps, layer.taps)
        )
        missing = torch.empty(shape, dtype=other.dtype, device=other.device, memory_format=layout)
        x, weight = (missing, other) if wanted else (other, missing)
        found = torch.ops.aten.convolution_backward(
            gradient, x, weight, None, stride, padding, [1, 1], False, [0, 0], 1, [wanted, not wanted, False]
        )
        result: torch.Tensor = found[0 if wanted else 1]
        return result

    return forward if direction == "forward" else backward


def _gate(layer: Layer, direction: str, images: int) -> Callable[[Call, Any], str | None]:
    def gate(call: Call, out: torch.Tensor) -> str | None:
        wide = [one.double().permute(0, 3, 1, 2) for one in call.args]
        wanted = _torch(layer, direction, images)(*wide).permute(0, 2, 3, 1)
        found = compare(out.reshape(wanted.shape), wanted, conv.OP.tolerance[DTYPE])
        return None if found.ok else found.detail

    return gate


def _nhwc(call: Call) -> Call:
    return Call(tuple(one.permute(0, 3, 1, 2) for one in call.args))


def _nchw(call: Call) -> Call:
    return Call(tuple(one.permute(0, 3, 1, 2).contiguous() for one in call.args))


def benches(*, tiny: bool = False) -> Iterator[Bench]:
    """Yield what is measured."""
    images = 2 if tiny else 32
    for direction in DIRECTIONS:
        for index, layer in enumerate(TINY if tiny else LAYERS):
            if direction == "input" and layer.c_in == 3:
                continue  # no network needs the gradient of its images
            pixels_in, pixels_out = images * layer.size**2, images * layer.out**2
            which = "weight" if direction == "weight" else "forward"
            cost = conv.OP.cost(
                conv.Problem(DTYPE, which, pixels_in, pixels_out, layer.c_in, layer.c_out, 1, layer.taps**2, True)
            )
            torchs = _torch(layer, direction, images)
            peers = {
                "cudnn-nhwc": Peer(torchs, _nhwc),
                "cudnn-nchw": Peer(torchs, _nchw),
            }
            yield Bench(
                op="conv",
                name=f"{DTYPE}-{direction}-{layer.taps}x{layer.taps}s{layer.stride}-"
                f"{layer.c_in}to{layer.c_out}-{layer.size}",
                make=lambda m, layer=layer, direction=direction: _make(m, layer, direction, images),  # type: ignore[misc]  # a default argument has no type
                dtype=DTYPE,
                bytes=cost.bytes,
                flops=cost.flops,
                rate=DTYPE,
                call=_ours(layer, direction, images),
                prefer="triton",
                rank=1 if direction == "forward" or index in FIRST else 2,
                goals=(("of_peer:cudnn", 0.5),),
                peers=peers,
                gate=_gate(layer, direction, images),
            )
