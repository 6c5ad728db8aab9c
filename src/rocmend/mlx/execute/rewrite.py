"""Passes over a plan's steps: each puts fewer, larger steps in the place of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocmend.mlx.execute import settings
from rocmend.mlx.execute.step import Step, freeing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocmend.mlx.execute.trace import Tape

__all__ = ["rewritten"]


def rewritten(steps: Sequence[Step], tape: Tape, kept: Sequence[int]) -> list[Step]:
    """Return steps that compute the same values of ``kept`` in fewer calls.

    Args:
        steps: one for each node, in order.
        tape: what they were made for.
        kept: places of the nodes that get a value.
    """
    device = tape.nodes[0].stream.device.torch
    if not settings.fuses(device):
        return list(steps)
    from rocmend.mlx.execute.fusion.group import fused
    from rocmend.mlx.execute.fusion.inline import inlined
    from rocmend.mlx.execute.patterns import applied
    from rocmend.mlx.execute.patterns.view import View

    steps = inlined(steps, tape.nodes)
    steps = applied(View(steps, tape, kept))
    steps = fused(steps, tape.nodes, tape.links, kept)
    return freeing(steps, kept)
