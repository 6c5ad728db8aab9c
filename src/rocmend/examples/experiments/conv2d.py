"""One convolution on the GPU, step by step, checked against the CPU: what rdna1-conv2d.toml runs."""

from __future__ import annotations

import argparse
import sys


def say(text: str) -> None:
    """Print a line at once: the runner reads phases from it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Run the convolution and say how far it is from the CPU's result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=32, help="Height and width of the image.")
    parser.add_argument("--miopen", choices=("on", "off"), default="on")
    arguments = parser.parse_args()
    say("importing torch")
    import torch

    say(f"torch {torch.__version__} for {torch.version.hip or 'no ROCm'}")
    torch.backends.cudnn.enabled = arguments.miopen == "on"
    device = torch.device("cuda")
    say(f"opening {torch.cuda.get_device_name(device)}")
    torch.manual_seed(0)
    images = torch.randn(1, 3, arguments.size, arguments.size)
    layer = torch.nn.Conv2d(3, 16, 3)
    with torch.no_grad():
        expected = layer.double()(images.double())
        say("multiplying matrices")
        square = torch.randn(64, 64)
        product = (square.to(device) @ square.to(device)).cpu()
        say(f"matmul error {(product - square @ square).abs().max().item():.3e}")
        say("first convolution")
        layer = layer.float().to(device)
        first = layer(images.to(device)).cpu()
        say("second convolution")
        second = layer(images.to(device)).cpu()
    error = max((result.double() - expected).abs().max().item() for result in (first, second))
    say(f"conv2d error {error:.3e}")


if __name__ == "__main__":
    main()
