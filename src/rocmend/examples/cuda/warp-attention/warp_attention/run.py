"""Runs a block for some steps: everything of the project at once."""

import argparse
import time

import torch

from .block import Block, compiled
from .device import free_bytes


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=128)
    given = parser.parse_args()
    block = Block().cuda()
    step = compiled(block)
    x = torch.randn(given.tokens, block.heads * block.dim, device="cuda")
    with torch.no_grad():
        for number in range(given.steps):
            start = time.perf_counter()
            norm = step(x).norm().item()
            time_ms = 1000 * (time.perf_counter() - start)
            print(f"step {number}: norm {norm:.4f}, {time_ms:.2f} ms, {free_bytes() >> 20} MiB free")


if __name__ == "__main__":
    main()
