"""The public function."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_no_gradient
from rocmend.kernels.common.floats import BYTES
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.moe.router import OP, Problem
from rocmend.kernels.plan_cache import cached_plan, plan_of
from rocmend.kernels.select import implementation


class Routes(NamedTuple):
    """Weights of the chosen experts, and which they are."""

    scores: Tensor
    places: Tensor


def router(x: Tensor, k: int, *, normalise: bool = False) -> Routes:
    """Take the ``k`` largest values of ``softmax(x)`` along the last axis, the largest last.

    Of equal values, as they are rounded to the type of x, those that stand later are taken first, and stay in order:
    what the end of a stable sort gives. NaN is the largest.

    Args:
        x: ``[..., experts]``, float32, float16 or bfloat16, of any strides.
        k: How many, from 1 to ``experts``.
        normalise: Whether values are divided by their sum, which is rounded to the type of x.

    Returns:
        Values ``[..., k]`` of the type of x, and their places, int32.

    Raises:
        UsageError: Another type, no such k, or a gradient is asked for.

    Cost: reads x once, in one launch up to 4096 experts of which 32 are taken.
    """
    check_no_gradient("router", "x", x, next_step="Train with softmax, argsort and take_along_axis.")
    return _routed((x,), k, normalise)


@cached_plan
def _routed(x: Tensor, k: int, normalise: bool) -> Callable[[Tensor], Routes]:
    """Check the arguments and plan calls with such a tensor."""
    if x.dim() < 1 or NAMES.get(x.dtype) not in BYTES:
        raise UsageError("router", f"expected x of {', '.join(BYTES)} with 1 axis or more, got {x.dtype}.")
    if not 1 <= k <= x.shape[-1]:
        raise UsageError("router", f"expected 1 <= k <= {x.shape[-1]}, got {k}.")
    problem = Problem(NAMES[x.dtype], x.numel() // x.shape[-1], x.shape[-1], k)
    run = plan_of(implementation(OP, x.device, problem), x, k, normalise=normalise)
    return lambda x: Routes(*run(x, k, normalise=normalise))
