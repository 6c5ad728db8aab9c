"""A launch with everything decided that does not change from call to call: host code keeps plans by shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rocmend.kernels.fast import Fixed, seen_as
from rocmend.kernels.launch import bind, launch
from rocmend.kernels.tuning import Config


class Plan(Fixed):
    """A launch without its tensors; called with them, it launches, or hands the launch to the executor in force.

    All calls take tensors of the same types, devices, shapes and strides, and None in the same places.

    Args:
        kernel: The Triton function; its tensors come first among its run-time parameters.
        grid: Programs, none of them 0.
        constants: Compile-time constants by name.
        config: The tuning record.
        numbers: The run-time arguments behind the tensors (and behind those that vary from call to call).
        types: For each tensor, what the kernel sees it as, of the same width, or None; empty where all are as they are.
    """

    __slots__ = ("_constants", "config", "grid", "numbers")

    def __init__(
        self,
        kernel: Any,
        grid: tuple[int, ...],
        constants: Mapping[str, Any],
        config: Config,
        numbers: Sequence[Any] = (),
        types: Sequence[torch.dtype | None] = (),
    ) -> None:
        super().__init__(bind(kernel, constants, config), grid, numbers, types)
        self._constants = constants
        self.config, self.grid, self.numbers = config, grid, self._numbers

    def _elsewhere(self, tensors: Sequence[torch.Tensor | None], varying: Sequence[Any]) -> None:
        """Hand the launch to the executor in force."""
        args = (*seen_as(tensors, self._types), *varying, *self.numbers)
        launch(self._kernel, self.grid, args, self._constants, self.config)
