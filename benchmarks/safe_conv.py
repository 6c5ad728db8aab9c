"""What convolutions through matrix products cost against PyTorch's native path, and whether they are right.

Each shape runs forward and backward on three paths: native (cuDNN, MIOpen or, on the CPU, oneDNN), aten (PyTorch's own
kernels, the library switched off) and gemm (``rocmend.fallbacks``). Errors are relative to the largest value of a
float64 reference: native float64 on the same device. A time is reported only for a path whose results are right.

    PYTHONPATH=src python benchmarks/safe_conv.py [--device cuda] [--dtypes float32,float16] [--small] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rocmend.fallbacks import safe_conv
from rocmend.fallbacks.cases import TOLERANCE


@dataclass(frozen=True, slots=True)
class Shape:
    """A convolution: batch, channels in and out, size, kernel and the rest of its parameters."""

    name: str
    source: tuple[int, ...]
    weight: tuple[int, ...]
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    transposed: bool = False
    channels_last: bool = False


SHAPES = (
    Shape("resnet50 stem 7x7/2", (32, 3, 224, 224), (64, 3, 7, 7), 2, 3),
    Shape("resnet50 1x1 256-64", (32, 256, 56, 56), (64, 256, 1, 1)),
    Shape("resnet50 3x3 64", (32, 64, 56, 56), (64, 64, 3, 3), 1, 1),
    Shape("resnet50 3x3 64 channels last", (32, 64, 56, 56), (64, 64, 3, 3), 1, 1, channels_last=True),
    Shape("resnet50 3x3/2 128", (32, 128, 56, 56), (128, 128, 3, 3), 2, 1),
    Shape("resnet50 3x3 512", (32, 512, 7, 7), (512, 512, 3, 3), 1, 1),
    Shape("resnext 3x3 32 groups", (32, 128, 56, 56), (128, 4, 3, 3), 1, 1, groups=32),
    Shape("vgg16 3x3 128", (16, 128, 112, 112), (128, 128, 3, 3), 1, 1),
    Shape("vgg16 3x3 512", (16, 512, 28, 28), (512, 512, 3, 3), 1, 1),
    Shape("mobilenet depthwise 3x3", (32, 144, 56, 56), (144, 1, 3, 3), 1, 1, groups=144),
    Shape("deeplab 3x3 dilation 2", (8, 256, 56, 56), (256, 256, 3, 3), 1, 2, 2),
    Shape("unet 3x3 320", (4, 320, 64, 64), (320, 320, 3, 3), 1, 1),
    Shape("unet up 2x2/2 transposed", (8, 128, 64, 64), (128, 64, 2, 2), 2, transposed=True),
    Shape("dcgan 4x4/2 transposed", (32, 256, 16, 16), (256, 128, 4, 4), 2, 1, transposed=True),
    Shape("conv1d 9 wav", (16, 64, 16000), (64, 64, 9), 1, 4),
    Shape("conv1d whisper 3/2", (8, 384, 3000), (384, 384, 3), 2, 1),
    Shape("conv3d 3x3x3 32", (4, 32, 32, 56, 56), (32, 32, 3, 3, 3), 1, 1),
    Shape("conv3d patches 2x16x16", (4, 3, 16, 224, 224), (768, 3, 2, 16, 16), 16),
)
PATHS = ("native", "aten", "gemm")


def _convolve(shape: Shape, source: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    rank = source.ndim - 2
    stride = [2, 16, 16] if shape.name.startswith("conv3d patches") else [shape.stride] * rank
    return torch.convolution(
        source,
        weight,
        bias,
        stride,
        [shape.padding] * rank,
        [shape.dilation] * rank,
        shape.transposed,
        [0] * rank,
        shape.groups,
    )


def _run(shape: Shape, tensors: list[Tensor]) -> list[Tensor]:
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    result = _convolve(shape, *leaves)
    slope = torch.linspace(-0.01, 0.03, result.shape[-1], device=result.device, dtype=result.dtype).expand_as(result)
    return [result.detach(), *torch.autograd.grad(result, leaves, slope)]


def _tensors(shape: Shape, device: str, *, small: bool) -> list[Tensor]:
    generator = torch.Generator().manual_seed(7)
    source = (min(2, shape.source[0]), *shape.source[1:]) if small else shape.source
    outputs = shape.weight[1] * shape.groups if shape.transposed else shape.weight[0]
    fan = max(1, torch.Size(shape.weight[1:]).numel())
    made = [torch.randn(size, generator=generator) for size in (source, shape.weight, (outputs,))]
    made[1] /= fan**0.5
    if shape.channels_last:
        made[:2] = [tensor.to(memory_format=torch.channels_last) for tensor in made[:2]]
    return [tensor.to(device) for tensor in made]


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _time_ms(function: Any, device: str, seconds: float) -> float:
    """Return the median time of enough runs to fill ``seconds``, at least three, after two to warm up."""
    times: list[float] = []
    for _ in range(2):
        function()
    begin = time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - begin < seconds and len(times) < 200):
        _synchronize(device)
        start = time.perf_counter()
        function()
        _synchronize(device)
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def _errors(found: list[Tensor], expected: list[Tensor]) -> list[float]:
    errors = []
    for one, reference in zip(found, expected, strict=True):
        difference = (one.double() - reference).abs().max() / reference.abs().max()
        errors.append(float(difference) if bool(one.isfinite().all()) else float("inf"))
    return errors


def measure(shape: Shape, dtype: torch.dtype, options: argparse.Namespace) -> dict[str, Any]:
    """Return errors, times and peak memory of each path for a shape."""
    device = options.device
    tensors = [tensor.to(dtype) for tensor in _tensors(shape, device, small=options.small)]
    expected = _run(shape, [tensor.double() for tensor in tensors])
    row: dict[str, Any] = {"shape": shape.name, "dtype": str(dtype).removeprefix("torch."), "paths": {}}
    for path in PATHS:
        with safe_conv(path, device=device):
            errors = _errors(_run(shape, tensors), expected)
            entry: dict[str, Any] = {"max_error": max(errors), "right": max(errors) <= TOLERANCE[dtype]}
            if entry["right"]:
                if device == "cuda":
                    torch.cuda.reset_peak_memory_stats()
                    before = torch.cuda.memory_allocated()
                entry["forward_ms"] = _time_ms(lambda: _convolve(shape, *tensors), device, options.seconds)
                entry["both_ms"] = _time_ms(lambda: _run(shape, tensors), device, options.seconds)
                if device == "cuda":
                    entry["peak_bytes"] = torch.cuda.max_memory_allocated() - before
        row["paths"][path] = entry
    native = row["paths"]["native"]
    for path in PATHS[1:]:
        entry = row["paths"][path]
        if entry["right"] and native["right"]:
            entry["cost_forward"] = entry["forward_ms"] / native["forward_ms"]
            entry["cost_both"] = entry["both_ms"] / native["both_ms"]
    return row


def _machine(device: str) -> dict[str, str]:
    name = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    return {"device": name, "torch": torch.__version__, "vendor_library": str(torch.backends.cudnn.version())}


def _print_row(row: dict[str, Any]) -> None:
    paths = row["paths"]
    texts = []
    for path in PATHS:
        entry = paths[path]
        cost = f" ({entry['cost_both']:.1f}x)" if "cost_both" in entry else ""
        time_ms = f"{entry['both_ms']:9.3f} ms{cost:9}" if entry["right"] else f"{'WRONG':21}"
        texts.append(f"{path} {time_ms} err {entry['max_error']:.0e}")
    print(f"{row['shape']:32}{row['dtype']:9} " + "  ".join(texts), flush=True)


def main() -> int:
    """Measure and print; exit 1 where the gemm path is not right."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtypes", default="float32,float16,bfloat16" if torch.cuda.is_available() else "float32")
    parser.add_argument("--small", action="store_true", help="batches of at most two")
    parser.add_argument("--seconds", type=float, default=0.2, help="time to spend on each figure")
    parser.add_argument("--json", type=Path, help="write the results here too")
    options = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False  # so that both paths compute in the dtype's own precision
    rows = []
    for name in options.dtypes.split(","):
        for shape in SHAPES:
            rows.append(measure(shape, getattr(torch, name), options))
            _print_row(rows[-1])
    costs = {
        f"{name} {path}": statistics.median(found)
        for name in options.dtypes.split(",")
        for path in PATHS[1:]
        if (
            found := [
                r["paths"][path]["cost_both"] for r in rows if r["dtype"] == name and "cost_both" in r["paths"][path]
            ]
        )
    }
    result = {"machine": _machine(options.device), "rows": rows, "median_cost_both": costs}
    print(json.dumps(result["machine"]), "median cost, forward and backward:", json.dumps(costs))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["paths"]["gemm"]["right"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
