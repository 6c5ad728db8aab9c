"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.suite import Call, Case, Maker, Size


def _case(
    name: str, dtype: str, experts: int, tokens: int, top: int, n: int, k: int, *, rows: int = 1,
    transposed: bool = True, indices: str = "random", size: Size = "small", edges: tuple[str, ...] = (),
) -> Case:  # fmt: skip
    """Name a case of a mixture of experts: tokens that choose ``top`` experts each."""

    def make(m: Maker) -> Call:
        a = m.normal(tokens, 1, rows, k, dtype=dtype)
        scale = max(k, 1) ** -0.5
        b = m.normal(experts, n, k, dtype=dtype, scale=scale).transpose(1, 2)
        if not transposed:
            b = m.normal(experts, k, n, dtype=dtype, scale=scale)
        chosen = m.integers(0, experts, tokens, top)
        named: dict[str, Any] = {"rhs_indices": chosen}
        if indices == "one":
            named["rhs_indices"] = chosen * 0 + experts - 1
        if indices == "lhs":
            named |= {"lhs_indices": m.integers(0, tokens, tokens, 1, dtype="int64")}
        if indices == "sorted":
            a = m.normal(tokens * top, rows, k, dtype=dtype)
            flat = chosen.reshape(-1)
            named["rhs_indices"] = flat.sort().values if m.device.type != "meta" else flat
            named["sorted_indices"] = True
        return Call((a, b), named)

    return Case(f"{dtype}-{name}", make, dtype, size, compiled=size == "large", edges=edges)


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        yield _case("tiny", dtype, 2, 1, 1, 3, 5, size="tiny", edges=("one",))
        yield _case("empty", dtype, 2, 0, 1, 3, 5, size="tiny", edges=("empty",))
        yield _case("no-sum", dtype, 2, 3, 1, 3, 0, size="tiny", edges=("empty",))
        yield _case("few", dtype, 7, 2, 3, 33, 70, edges=("odd",))
        yield _case("many", dtype, 3, 13, 3, 33, 70, edges=("odd",))
        yield _case("straight", dtype, 3, 13, 3, 33, 70, transposed=False)
        yield _case("sorted", dtype, 5, 13, 3, 20, 40, indices="sorted")
        yield _case("all-to-one", dtype, 4, 20, 2, 20, 40, indices="one")
        yield _case("lhs", dtype, 3, 11, 3, 20, 40, indices="lhs")
        yield _case("rows", dtype, 3, 5, 3, 20, 40, rows=7)
        yield _case("prefill", dtype, 64, 256, 8, 768, 2048, size="large")
    for dtype in ("float16", "bfloat16"):
        yield _case("decode", dtype, 128, 1, 8, 768, 2048, size="large")
        yield _case("long", dtype, 32, 2048, 4, 2880, 2880, size="large")
