"""A network made ready to be compared: with random weights under which every part of it matters."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import torch
from torch import nn

from rocmend.bench.networks import CATALOGUE, options_of

__all__ = ["defined", "flat", "module_of", "randomize"]


def module_of(name: str) -> ModuleType:
    """Return the module of a network."""
    return importlib.import_module(f"rocmend.bench.networks.{CATALOGUE[name].module}")


def defined(name: str, *, tiny: bool, definition: str = "auto") -> tuple[nn.Module, str]:
    """Make a network, and say whose definition it is.

    Args:
        name: One of ``CATALOGUE``.
        tiny: Its tiny version.
        definition: ``auto`` takes a package's where it can be had, ``own`` always ours.
    """
    module, options = module_of(name), options_of(name, tiny=tiny)
    made: nn.Module
    if definition == "auto" and hasattr(module, "library"):
        try:
            made, whose = module.library(**options)
        except Exception:  # noqa: BLE001, S110  a package built for another torch fails in many ways: ours is taken
            pass
        else:
            return made, str(whose)
    made = module.own(**options)
    return made, "rocmend"


@torch.no_grad()
def randomize(network: nn.Module, generator: torch.Generator) -> None:
    """Give all parameters random values under which signals neither grow nor vanish, and no part has none.

    As packages make them, whole parts are zero: the head of torchvision's ViT, all biases.
    """
    for name, parameter in network.named_parameters():
        if parameter.ndim > 1:
            parameter.normal_(0, parameter[0].numel() ** -0.5, generator=generator)
        elif name.endswith("bias"):
            parameter.normal_(0, 0.1, generator=generator)
        else:
            parameter.normal_(1, 0.1, generator=generator)


def flat(result: Any) -> list[torch.Tensor]:
    """Return the tensors that a network gave."""
    return [result] if isinstance(result, torch.Tensor) else [part for one in result for part in flat(one)]
