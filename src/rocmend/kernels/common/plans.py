"""A launch with everything decided that does not change from call to call: host code keeps plans by shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rocmend.kernels import executor
from rocmend.kernels.launch import Bound, bind, launch
from rocmend.kernels.tuning import Config


class Plan(NamedTuple):
    """A launch without its run-time arguments.

    Args:
        kernel: The Triton function.
        grid: Programs, none of them 0.
        constants: Compile-time constants by name.
        config: The tuning record.
        bound: The three of them, bound.
    """

    kernel: Any
    grid: tuple[int, ...]
    constants: Mapping[str, Any]
    config: Config
    bound: Bound


def plan(kernel: Any, grid: tuple[int, ...], constants: Mapping[str, Any], config: Config) -> Plan:
    """Return a plan; worth keeping by what it was made from."""
    return Plan(kernel, grid, constants, config, bind(kernel, constants, config))


def carry_out(one: Plan, args: Sequence[Any]) -> None:
    """Launch a plan with run-time arguments, or hand it to the executor in force."""
    if executor.active() is None:
        one.bound(one.grid, args)
    else:
        launch(one.kernel, one.grid, args, one.constants, one.config)
