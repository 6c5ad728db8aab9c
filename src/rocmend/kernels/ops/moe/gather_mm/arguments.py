"""What the public function hands to an implementation."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from rocmend.kernels.common.routing import Pairs


class Arguments(NamedTuple):
    """Arguments that were checked.

    Args:
        a: ``[matrices, m, k]``, contiguous.
        b: ``[experts, k, n]``, of any strides.
        pairs: Which matrix of a meets which of b.
        ordered: Whether the experts of the pairs ascend.
    """

    a: Tensor
    b: Tensor
    pairs: Pairs
    ordered: bool
