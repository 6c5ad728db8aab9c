"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from rocmend.kernels.op import Tolerance
from rocmend.kernels.suite import Call, Case, Maker, size_of, sizes

FLOATS = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def _case(function: str, shape: tuple[int, ...], output: str, keys: tuple[int, ...] = (), **options: object) -> Case:
    def make(m: Maker) -> Call:
        key = m.integers(-(1 << 31), 1 << 31, *keys, 2, dtype="int32").view(torch.uint32)
        return Call((key, shape), options)

    elements = torch.Size(shape).numel()
    size = size_of(elements, 128, 2000)
    label = "-".join(str(value).removeprefix("torch.") for value in options.values())
    name = f"{function}-{output}-{sizes(keys)}-{sizes(shape) or 'scalar'}-{label}"
    # The logarithms and erfinv of a GPU are within a few units of the last place; where two cancel, of their size.
    near = {
        "float32": Tolerance(ulps=16, scaled=4e-7), "float16": Tolerance(ulps=2.1, scaled=1e-3),
        "bfloat16": Tolerance(ulps=2.1, scaled=1e-2),
    }  # fmt: skip
    tolerance = near[output] if function in ("normal", "gumbel") else None
    return Case(
        name, make, output, size, function=function,
        compiled=elements == 2000, tolerance=tolerance, edges=("empty",) if elements == 0 else ("odd",),
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for width, dtype in ((1, "uint8"), (2, "uint16"), (4, "uint32")):
        for shape in ((), (0,), (1,), (2,), (3,), (5,), (6, 7), (2000,), (2_000_003,)):
            yield _case("random_bits", shape, dtype, width=width)
        yield _case("random_bits", (7,), dtype, (3, 2), width=width)
        yield _case("random_bits", (33, 5), dtype, (1,), width=width)
    for name, kind in FLOATS.items():
        for function in ("uniform", "normal", "gumbel"):
            for shape in ((3, 41), (2000,), (0, 4), (3_000_001,)):
                yield _case(function, shape, name, dtype=kind)
        yield _case("uniform", (500,), name, low=-3.0, high=7.0, dtype=kind)
        yield _case("normal", (500,), name, (2,), mean=1.5, std=2.0, dtype=kind)
    for p in (0.0, 0.1, 0.5, 1.0):
        yield _case("bernoulli", (777,), "bool", p=p)
    yield _case("bernoulli", (2000,), "bool", p=0.9)
    yield _case("random_bits", (2_200_000_001,), "uint8", width=1)
