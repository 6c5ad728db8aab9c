"""The heads of a decoding step on their way to attention: normalised, rotated, keys and values written to the cache."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import any_class, bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare


class Options(NamedTuple):
    """How heads are treated; see ``function.heads_into_cache``."""

    dims: int
    traditional: bool
    base: float | None
    scale: float
    query_eps: float
    key_eps: float


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    elements: int


OP = declare(
    __name__,
    summary="Normalise and rotate query and key heads and write keys and values into the KV cache, in one launch.",
    problem=Problem,
    implementations=(
        Implementation(
            "heads", "triton", "host:run", rejects_dtype, note="one program per head and token", record_class=any_class
        ),
        Implementation("torch", "reference", "reference:run"),
    ),
    domain="Any strides; dims even and at most the head size; positions within the cache.",
    cost=lambda p: Cost(8.0 * p.elements, 2.0 * p.elements * bytes_of(p.dtype)),
    # As rope's, behind the three roundings of a normalisation.
    tolerance={
        "float32": Tolerance(ulps=16, scaled=5e-4),
        "float16": Tolerance(ulps=2.1, scaled=2e-3),
        "bfloat16": Tolerance(ulps=2.1, scaled=1e-2),
    },
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.rope.html",),
)
