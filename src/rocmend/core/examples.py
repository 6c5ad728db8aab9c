"""The examples that come with rocmend: captured machines, a CUDA project, experiments. All are data, not imported."""

from __future__ import annotations

from pathlib import Path

__all__ = ["BENCHMARKS", "EXPERIMENTS", "MACHINES", "PROJECT", "example_machines"]

_HERE = Path(__file__).parents[1] / "examples"

MACHINES = _HERE / "machines"
"""A folder of captured machines, one folder each."""

PROJECT = _HERE / "cuda" / "warp-attention"
"""A CUDA project to port."""

EXPERIMENTS = _HERE / "experiments"
"""Experiments for ``rocmend lab``, with the programs and phase sets that they use."""

BENCHMARKS = _HERE / "benchmarks"
"""Published results for ``rocmend bench import``."""


def example_machines() -> dict[str, Path]:
    """Return the folder of each captured machine, by its name."""
    return {path.name: path for path in sorted(MACHINES.iterdir()) if (path / "machine.json").is_file()}
