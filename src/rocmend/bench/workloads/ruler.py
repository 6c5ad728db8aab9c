"""A run of a known length by the clock: what is measured beyond it is the harness's own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rocmend.bench.workload import Workload

if TYPE_CHECKING:
    import torch


class Ruler(Workload):
    """Keeps the processor busy for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def run(self) -> None:
        """Wait for the time to pass."""
        end = time.perf_counter() + self._seconds
        while time.perf_counter() < end:
            pass

    def wrong(self) -> str:
        """Say that nothing is computed."""
        return ""


def make(parameters: dict[str, Any], device: torch.device) -> Ruler:
    """Make a ruler of ``seconds``."""
    del device
    return Ruler(float(parameters["seconds"]))
