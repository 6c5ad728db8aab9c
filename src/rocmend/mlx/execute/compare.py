"""Two executors on one step: what a plan computed beside what the interpreter computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from rocmend.mlx.execute.plan import Plan
    from rocmend.mlx.execute.trace import Tape

__all__ = ["DifferenceError", "check", "reference"]

# Largest difference, in units in the last place of the type at the largest magnitude of the value.
ULPS = 64


class DifferenceError(AssertionError):
    """A plan computed something else than the interpreter."""


def reference(tape: Tape, plan: Plan) -> dict[int, torch.Tensor]:
    """Return the values of a tape's kept nodes, computed one after another; nothing is written to."""
    nodes, count = tape.nodes, len(tape.nodes)
    values: dict[int, Any] = {}
    device = nodes[0].stream.device.torch
    with torch.no_grad():
        for place, node in enumerate(nodes):
            inputs = []
            for child in node.inputs:
                value = values.get(child.pos) if 0 <= child.pos < count else child.data
                inputs.append(value.to(device) if isinstance(value, torch.Tensor) else value)
            values[place] = node.op.run(node, *inputs)  # type: ignore[union-attr]
        return {place: values[place].clone() for place in plan.kept}


def check(tape: Tape, expected: dict[int, torch.Tensor]) -> None:
    """Compare a computed tape with expected values.

    Raises:
        DifferenceError: they differ by more than rounding.
    """
    for place, want in expected.items():
        node = tape.nodes[place]
        got = node.data
        if not want.dtype.is_floating_point:
            if not torch.equal(got, want):
                raise DifferenceError(f"[{node.op}] the plan computed {got}, the interpreter {want}.")
            continue
        step = torch.finfo(want.dtype).eps
        largest = want[want.isfinite()].abs().max().item() if want.isfinite().any() else 1.0
        limit = max(ULPS * step, 1e-3 if step < 1e-3 else 0.05) * max(largest, 1e-6)
        if not torch.allclose(got.double(), want.double(), rtol=0.0, atol=limit, equal_nan=True):
            off = (got.double() - want.double()).abs().max().item()
            raise DifferenceError(
                f"[{node.op}] node {place} of {len(tape.nodes)}: the plan differs from the interpreter by {off:g}, "
                f"{limit:g} is allowed."
            )
