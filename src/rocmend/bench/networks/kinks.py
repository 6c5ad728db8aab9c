"""Where a network's gradient jumps: which inputs of its ReLUs are positive, and which one of a window is the largest.

Rounding decides both where two values are as good as equal, and a gradient is there or not. A reference in a wider type
that decides otherwise in ten of twenty million places has gradients that are off by a thousand times the rounding. So
its step is made with the decisions of the network that is compared; that they differ only where it does not matter is
compared apart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

_Hook = Callable[[nn.Module, tuple[torch.Tensor, ...], torch.Tensor], torch.Tensor | None]


class Kinks:
    """The decisions of one forward pass over a batch of a few samples, repeated.

    Args:
        few: How many samples there are.
    """

    def __init__(self, few: int) -> None:
        self._few = few
        self._decided: list[torch.Tensor] = []
        self._taken = 0
        self._off = self._whole = 0.0

    @property
    def error(self) -> float:
        """Norm of the inputs whose sign the reference has otherwise, over that of all; 0 where all are alike."""
        return float((self._off / max(self._whole, 1e-300)) ** 0.5)

    @property
    def complete(self) -> bool:
        """There were decisions, and the reference has taken each of them."""
        return 0 < self._taken == len(self._decided)

    @contextlib.contextmanager
    def seen(self, network: nn.Module) -> Iterator[None]:
        """Note the decisions of a network."""

        def note(module: nn.Module, given: tuple[torch.Tensor, ...], out: torch.Tensor) -> None:
            if isinstance(module, nn.ReLU):
                # repeats of a sample may be rounded otherwise: its gradient is the mean of theirs
                mean = (out > 0).view(-1, self._few, *out.shape[1:]).float().mean(0)
            else:
                mean = _largest(module, given[0])[: self._few]
            self._decided.append(mean.cpu())

        with _hooked(network, note):
            yield

    @contextlib.contextmanager
    def taken(self, reference: nn.Module) -> Iterator[None]:
        """Have a reference take them, in the same order."""
        waiting = iter(self._decided)
        inplace = [module for module in reference.modules() if isinstance(module, nn.ReLU) and module.inplace]

        def take(module: nn.Module, given: tuple[torch.Tensor, ...], out: torch.Tensor) -> torch.Tensor:
            decided, x = next(waiting, None), given[0]
            if decided is None:
                return out
            self._taken += 1
            if not isinstance(module, nn.ReLU):
                return x.flatten(2).gather(2, decided.flatten(2)).view(decided.shape)
            with torch.no_grad():
                self._off += float(x[(decided > 0.5) != (x > 0)].double().square().sum())
                self._whole += float(x.double().square().sum())
            return x * decided.to(x.dtype)

        for module in inplace:
            module.inplace = False  # its input is needed
        with _hooked(reference, take):
            yield
        for module in inplace:
            module.inplace = True


@contextlib.contextmanager
def _hooked(network: nn.Module, hook: _Hook) -> Iterator[None]:
    handles = [one.register_forward_hook(hook) for one in network.modules() if isinstance(one, nn.ReLU | nn.MaxPool2d)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _largest(module: Any, x: torch.Tensor) -> torch.Tensor:
    """Return for each window the place of its largest value."""
    window = (module.kernel_size, module.stride, module.padding, module.dilation, module.ceil_mode)
    return functional.max_pool2d(x, *window, return_indices=True)[1]
