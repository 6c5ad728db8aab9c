"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.kernels.ops.rowwise.rms_norm.cases import norm_cases
from rocmend.kernels.suite import Case


def cases() -> Iterator[Case]:
    """Yield the cases."""
    return norm_cases("layer_norm_backward", biased=True)
