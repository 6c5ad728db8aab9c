"""Triton kernels as a project's own tests would call them: run by test_use.py, in a process without the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from rocmend.emulate import FaultError

Call = Callable[[Any], Any]


@triton.jit
def add_kernel(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def unmasked_kernel(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at), mask=at < count)


def test_a_kernel_is_called_as_usual(emulated: Call) -> None:
    rng = np.random.default_rng()
    x, y = (rng.standard_normal(1000).astype(np.float32) for _ in range(2))
    out = np.full(1000, np.nan, np.float32)
    run = emulated(add_kernel)[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, y, out, 1000, BLOCK=256)
    assert np.array_equal(out, x + y)
    assert run.wave_instructions > 0


def test_a_load_without_its_mask_is_found(emulated: Call) -> None:
    x, out = np.ones(1000, np.float32), np.zeros(1000, np.float32)
    with pytest.raises(FaultError, match="which belong to no buffer"):
        emulated(unmasked_kernel)[(4,)](x, out, 1000, BLOCK=256)
