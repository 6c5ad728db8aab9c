"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.suite import Call, Case, Maker, Size


def _case(
    label: str,
    dtype: str,
    shape: tuple[int, int, int, int],
    kv: int,
    length: int,
    *,
    dims: int | None = None,
    values: int | None = None,
    offset: int = 3,
    memory: bool = False,
    norms: bool = True,
    freqs: bool = False,
    from_tokens: bool = True,
    compiled: bool = False,
    **options: Any,
) -> Case:
    batch, heads, tokens, size = shape
    turned = size if dims is None else dims
    value_size = size if values is None else values

    def heads_of(m: Maker, count: int, width: int) -> Any:
        if not from_tokens:
            return m.normal(batch, count, tokens, width, dtype=dtype)
        return m.normal(batch, tokens, count, width, dtype=dtype).permute(0, 2, 1, 3)

    def make(m: Maker) -> Call:
        given = dict(options, offset=m.of([offset], "int32") if memory else offset)
        if norms:
            given |= {"query_weight": m.normal(size, dtype=dtype), "key_weight": m.normal(size, dtype=dtype)}
        if freqs:
            given |= {"freqs": m.of([1.5 ** (one % 16) for one in range(turned // 2)], "float32"), "base": None}
        tensors = (
            heads_of(m, heads, size), heads_of(m, kv, size), heads_of(m, kv, value_size),
            m.normal(batch, kv, length, size, dtype=dtype), m.normal(batch, kv, length, value_size, dtype=dtype),
        )  # fmt: skip
        return Call((*tensors, turned), given, ("freqs",))

    reference = "rocmend.kernels.ops.attention.heads_into_cache.reference:heads_into_cache"
    size_class: Size = "tiny" if batch * heads * tokens * size < 2048 else "small"
    return Case(f"{dtype}-{label}", make, dtype, size_class, reference=reference, compiled=compiled)


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        yield _case("qwen3", dtype, (1, 16, 1, 128), 8, 32, memory=True, compiled=True)
        yield _case("llama", dtype, (1, 8, 1, 128), 2, 32, norms=False, memory=True, offset=31, compiled=True)
        yield _case("part", dtype, (1, 4, 1, 80), 2, 9, dims=32, values=64, compiled=True)
        yield _case("batch", dtype, (3, 4, 1, 64), 4, 7, offset=0)
        yield _case("several-tokens", dtype, (2, 4, 5, 64), 2, 16, offset=11)
        yield _case("traditional", dtype, (1, 4, 2, 64), 1, 8, traditional=True, dims=24, base=100.0, scale=0.5)
        yield _case("freqs", dtype, (1, 2, 1, 96), 2, 8, freqs=True, memory=True)
        yield _case("contiguous", dtype, (2, 2, 1, 256), 1, 8, from_tokens=False)
        yield _case("empty", dtype, (0, 4, 1, 64), 2, 8, offset=0)
