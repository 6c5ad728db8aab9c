"""The suite's cases, ``layer_norm``'s too."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from rocmend.kernels.common.floats import FLOATS, tolerances
from rocmend.kernels.op import Tolerance
from rocmend.kernels.suite import Call, Case, Maker, Size, size_of, sizes

SHAPES = ((1, 1), (3, 7), (2, 3, 64), (0, 64), (5, 0), (300, 128), (4, 4096), (2, 16384), (3, 20001))
LARGE = ((40000, 4096), (3, 300_001), (262144, 128))
GRADIENTS = ((3, 7), (0, 5), (100, 128), (3, 4096), (2, 16384), (20000, 4096), (262144, 128))
# Gradients are one rounding of fp32 sums whose terms cancel; the weight's runs over all rows.
GRADIENT = tolerances(Tolerance(ulps=8, scaled=4e-6), Tolerance(ulps=0.51, scaled=4e-6))


def norm_size(shape: tuple[int, ...]) -> Size:
    """Return the class of sizes of a shape."""
    return size_of(math.prod(shape), 4096, 100_000)


def _affine(m: Maker, n: int, dtype: str, biased: bool) -> tuple[torch.Tensor, ...]:
    return tuple(m.normal(n, dtype=dtype) for _ in range(1 + biased))


def _case(biased: bool, dtype: str, shape: tuple[int, ...], *, weighted: bool = True, edges: bool = False) -> Case:
    def make(m: Maker) -> Call:
        x = m.edges(*shape, dtype=dtype, largest=False) if edges else m.normal(*shape, dtype=dtype)
        return Call((x, *(_affine(m, shape[-1], dtype, biased) if weighted else (None,) * (1 + biased)), 1e-5))

    name = f"{dtype}-{sizes(shape)}{'-unweighted' * (not weighted)}{'-edges' * edges}"
    marks = tuple(mark for mark, on in (("nan", edges), ("empty", 0 in shape), ("one", 1 in shape)) if on)
    compiled = shape in ((300, 128), (4, 4096), (2, 16384), (3, 20001)) and weighted
    return Case(name, make, dtype, norm_size(shape), compiled=compiled, edges=marks)


def _gradient(backward: str, biased: bool, dtype: str, shape: tuple[int, ...], *, weighted: bool = True) -> Case:
    def make(m: Maker) -> Call:
        grad, x = m.normal(*shape, dtype=dtype), m.normal(*shape, dtype=dtype)
        return Call((grad, x, *(_affine(m, shape[-1], dtype, biased) if weighted else (None,) * (1 + biased)), 1e-5))

    return Case(
        f"{dtype}-{sizes(shape)}-gradients{'-unweighted' * (not weighted)}", make, dtype, norm_size(shape),
        function=backward, tolerance=GRADIENT[dtype],
        compiled=shape in ((100, 128), (3, 4096), (2, 16384)) and weighted,
    )  # fmt: skip


def _strided(biased: bool, dtype: str) -> Case:
    def make(m: Maker) -> Call:
        x, weight = m.normal(96, 7, 3, dtype=dtype).permute(2, 1, 0), m.normal(192, dtype=dtype)[::2]
        return Call((x, weight, *_affine(m, 96, dtype, biased)[1:], 1e-6))

    return Case(f"{dtype}-permuted", make, dtype, "tiny", edges=("strides",))


def _promoted(biased: bool, dtype: str) -> Case:
    def make(m: Maker) -> Call:
        return Call((m.normal(5, 33, dtype=dtype), m.normal(33), *_affine(m, 33, dtype, biased)[1:], 1e-6))

    return Case(f"{dtype}-weight-float32", make, "float32", "tiny")


def _far(biased: bool) -> Case:
    """Rows further apart than 32 bits can address."""

    def make(m: Maker) -> Call:
        x, weight = m.normal(540_000, 4096, dtype="bfloat16")[::60_000], m.normal(4096, dtype="bfloat16")
        return Call((x, weight, *((None,) * biased), 1e-6))

    return Case("bfloat16-far-rows", make, "bfloat16", "large", edges=("huge", "strides"))


def norm_cases(backward: str, *, biased: bool) -> Iterator[Case]:
    """Yield the cases of a normalisation.

    Args:
        backward: The function that computes gradients.
        biased: Whether a bias follows the weight.
    """
    for dtype in FLOATS:
        for shape in SHAPES + LARGE:
            yield _case(biased, dtype, shape)
        yield _case(biased, dtype, (4, 100), weighted=False)
        for implementation in ("held", "split"):
            yield _case(biased, dtype, (6, 50), edges=True).by(implementation)
        yield _strided(biased, dtype)
        for shape in GRADIENTS:
            yield _gradient(backward, biased, dtype, shape)
        yield _gradient(backward, biased, dtype, (9, 33), weighted=False)
    yield _far(biased)
    yield _promoted(biased, "float16")
    yield _promoted(biased, "bfloat16")


def cases() -> Iterator[Case]:
    """Yield the cases."""
    return norm_cases("rms_norm_backward", biased=False)
