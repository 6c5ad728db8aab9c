"""What runs in the child: a case made from its parameters. Standard library and torch alone."""

from __future__ import annotations

import abc
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class Workload(abc.ABC):
    """A case on a device.

    A workload is a module of ``rocmend.bench.workloads`` with a function
    ``make(parameters: dict, device: torch.device) -> Workload``.
    """

    slow = ""
    """Kind of first run that is known to be slow (``runner/slow_first_runs.toml``), e.g. ``torch-compile``."""

    @abc.abstractmethod
    def run(self) -> Any:
        """Do one run, without waiting for the device."""

    @abc.abstractmethod
    def wrong(self) -> str:
        """Compare a run's result with a reference; say what is wrong, or nothing. Called once, before it is timed."""

    def detail(self) -> dict[str, Any]:
        """Return what else is to be kept, as JSON values: the largest error, what a library chose."""
        return {}


def made(suite: str, parameters: dict[str, Any], device: torch.device) -> Workload:
    """Make the workload of a suite."""
    module = importlib.import_module(f"rocmend.bench.workloads.{suite}")
    workload: Workload = module.make(parameters, device)
    return workload
