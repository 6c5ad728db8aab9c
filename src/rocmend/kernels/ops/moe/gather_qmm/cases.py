"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.common.formats import Format, every_format, format_of
from rocmend.kernels.suite import Call, Case, Maker, Size

FORMATS = (
    *((("affine", bits, 64)) for bits in (1, 2, 3, 4, 5, 6, 8)),
    ("affine", 4, 32), ("affine", 4, 128), ("affine", 3, 32), ("affine", 8, 128),
    ("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16),
)  # fmt: skip


def matrices(m: Maker, form: Format, dtype: str, shape: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    """Return random quantized matrices of a shape: words, scales and biases (affine), values about 1 in size."""
    words = m.integers(-(1 << 31), 1 << 31, *shape[:-1], form.words(shape[-1]))
    of_groups = (*shape[:-1], shape[-1] // form.group_size)
    if form.affine:
        # A code is up to 2^bits - 1: scales so small that values are about 1, biases that make the mean about 0.
        return words, m.normal(*of_groups, dtype=dtype, scale=2.0**-form.bits), m.normal(*of_groups, dtype=dtype)
    low, high = (24, 64) if form.mode == "nvfp4" else (118, 122) if form.bits == 8 else (123, 128)
    if form.bits == 8:
        words = words & 0x3F3F3F3F if m.device.type != "meta" else words
    return words, m.integers(low, high, *of_groups, dtype="uint8")


def _case(
    name: str,
    dtype: str,
    form: tuple[str, int, int],
    experts: int,
    tokens: int,
    top: int,
    n: int,
    k: int,
    *,
    rows: int = 1,
    transpose: bool = True,
    gated: bool = False,
    indices: str = "random",
    size: Size = "small",
    compiled: bool = False,
    edges: tuple[str, ...] = (),
) -> Case:
    """Name a case of a mixture of experts: tokens that choose ``top`` experts each."""
    of = format_of("gather_qmm", *form)

    def make(m: Maker) -> Call:
        x = m.normal(tokens, 1, rows, k, dtype=dtype)
        shape = (experts, n, k) if transpose else (experts, k, n)
        first = matrices(m, of, dtype, shape)
        chosen = m.integers(0, experts, tokens, top)
        named: dict[str, Any] = {"rhs_indices": chosen, "group_size": of.group_size, "bits": of.bits, "mode": of.mode}
        if indices == "one":
            named["rhs_indices"] = chosen * 0 + experts - 1
        if indices == "gap":
            named["rhs_indices"] = chosen // 3 * 3
        if indices == "both":
            named |= {"lhs_indices": m.integers(0, tokens, tokens, 1, dtype="int64")}
        if indices == "sorted":
            x = m.normal(tokens * top, rows, k, dtype=dtype)
            flat = chosen.reshape(-1)
            named |= {
                "rhs_indices": flat.sort().values if m.device.type != "meta" else flat,
                "sorted_indices": True,
            }
        if gated:
            return Call((x, first, matrices(m, of, dtype, shape)), named)
        return Call((x, *first), named | {"transpose": transpose})

    function = "gather_qmm_swiglu" if gated else None
    return Case(f"{dtype}-{name}", make, dtype, size, function, None, compiled, edges)


def formats() -> Iterator[Case]:
    """Yield, to be compiled, each format with as many rows as each kernel takes."""
    for form in every_format():
        for dtype in ("bfloat16", "float16") if form.affine else ("bfloat16",):
            for name, tokens, gated, transpose in (
                ("decode", 1, False, True), ("decode-gated", 1, True, True), ("several", 8, False, True),
                ("several-gated", 8, True, True), ("batch", 64, False, True), ("batch-gated", 64, True, True),
                ("prefill", 512, False, True), ("prefill-gated", 512, True, True), ("back", 512, False, False),
                ("long", 4096, False, True), ("long-gated", 4096, True, True),
            ):  # fmt: skip
                label = f"{name}-{form.mode}{form.bits}g{form.group_size}"
                yield _case(
                    label, dtype, form, 128, tokens, 8, 768, 2048,
                    gated=gated, transpose=transpose, size="large", compiled=True,
                )  # fmt: skip


def _very_few() -> Iterator[Case]:
    """Yield cases of very few rows: their wavefronts have as much of K each, or the last wavefront less."""
    for form in (("affine", 4, 64), ("affine", 8, 64), ("mxfp4", 4, 32)):
        for name, tokens, n, k, indices in (
            ("single", 1, 48, 2048, "random"), ("single-uneven", 2, 32, 1280, "both"),
            ("single-one", 1, 32, 2048, "one"),
        ):  # fmt: skip
            for gated in (False, True):
                label = f"{name}-{form[0]}{form[1]}{'-gated' if gated else ''}"
                yield _case(label, "bfloat16", form, 5, tokens, 3, n, k, gated=gated, indices=indices)


def _a_few() -> Iterator[Case]:
    """Yield cases of a few rows, with as many rows of weights as take other records than the fewest do."""
    for form in (("affine", 4, 64), ("affine", 8, 64), ("mxfp4", 4, 32)):
        for name, n, k in (("several", 512, 2048), ("several-deep", 256, 4096), ("several-uneven", 1040, 1280)):
            for gated in (False, True):
                label = f"{name}-{form[0]}{form[1]}{'-gated' if gated else ''}"
                yield _case(label, "bfloat16", form, 6, 2, 8, n, k, gated=gated, size="large")
    for name, group, n, k, indices in (
        ("together", 64, 32, 1024, "random"), ("together-one", 64, 16, 768, "one"),
        ("together-gap", 128, 16, 1536, "gap"), ("together-lhs", 64, 16, 2048, "both"),
    ):  # fmt: skip
        for gated in (False, True):
            label = f"{name}-gated" if gated else name
            form = ("affine", 4, group)
            yield _case(label, "bfloat16", form, 32, 16, 4, n, k, gated=gated, indices=indices, size="large")
    # As many columns as gpt-oss has.
    for gated in (False, True):
        label = f"several-halves-mxfp4{'-gated' if gated else ''}"
        yield _case(label, "bfloat16", ("mxfp4", 4, 32), 6, 3, 4, 1440, 2880, gated=gated, size="large")


def _some_of_each() -> Iterator[Case]:
    """Yield cases of some rows per expert: as many as a tile has room for, several tiles, all rows of one expert."""
    for name, tokens, experts, n, k in (
        ("random", 128, 32, 1024, 2048), ("gap", 100, 32, 1024, 2048), ("one", 101, 32, 1024, 2048),
        ("sorted", 256, 64, 512, 2048),
    ):  # fmt: skip
        yield _case(
            f"experts-{name}", "bfloat16", ("affine", 4, 64), experts, tokens, 8, n, k, indices=name, size="large"
        )
    yield from _some_of_each_mxfp4()
    # With a gate some sums are made behind others where registers have no room for all.
    for name, tokens, experts, n, k in (
        ("random", 128, 32, 1024, 2048), ("gap", 100, 32, 2048, 1536), ("one", 101, 32, 2048, 1536),
        ("sorted", 256, 64, 1024, 2048),
    ):  # fmt: skip
        yield _case(
            f"experts-{name}-gated", "bfloat16", ("affine", 4, 64), experts, tokens, 8, n, k,
            gated=True, indices=name, size="large",
        )  # fmt: skip


def _some_of_each_mxfp4() -> Iterator[Case]:
    """Yield such cases of mxfp4: one scale for 32 columns, and nothing beside it."""
    for name, tokens, experts, n, k in (
        ("random", 128, 32, 1024, 2048), ("gap", 101, 32, 1024, 1536), ("one", 101, 32, 1024, 2048),
        ("sorted", 255, 64, 1024, 512),
    ):  # fmt: skip
        for gated in (False, True):
            yield _case(
                f"experts-{name}-mxfp4{'-gated' if gated else ''}", "bfloat16", ("mxfp4", 4, 32), experts, tokens, 8,
                n, k, gated=gated, indices=name, size="large",
            )  # fmt: skip


def _tiles() -> Iterator[Case]:
    """Yield cases of the kernel that only NVIDIA's GPUs take by themselves."""
    four = ("affine", 4, 64)
    for dtype in ("float16", "bfloat16"):
        for name, experts, tokens, top, n, k, more in (
            ("sorted", 5, 16, 3, 33, 192, {"indices": "sorted"}), ("all-to-one", 4, 20, 2, 33, 64, {"indices": "one"}),
            ("some-get-none", 7, 16, 4, 16, 64, {"indices": "gap"}), ("lhs", 3, 13, 3, 16, 64, {"indices": "both"}),
            ("rows", 3, 5, 3, 24, 64, {"rows": 7}), ("many-gated", 3, 14, 3, 24, 64, {"gated": True}),
        ):  # fmt: skip
            yield _case(name, dtype, four, experts, tokens, top, n, k, **more).by("tiles")
        for form in (four, ("affine", 4, 32), ("affine", 8, 64), ("affine", 8, 128), ("mxfp4", 4, 32)):
            if form[0] == "affine" or dtype == "bfloat16":
                label = f"many-{form[0]}{form[1]}g{form[2]}"
                yield _case(label, dtype, form, 3, 14, 3, 40, 128).by("tiles")


def cases() -> Iterator[Case]:
    """Yield the cases."""
    yield from _tiles()
    four = ("affine", 4, 64)
    for index, form in enumerate(FORMATS):
        dtype, other = FLOATS[index % 3], FLOATS[(index + 1) % 3]
        label = f"{form[0]}{form[1]}g{form[2]}"
        yield _case(f"few-{label}", dtype, form, 5, 2, 3, 19, 256)
        yield _case(f"gated-{label}", other, form, 5, 2, 2, 9, 256, gated=True)
        yield _case(f"many-{label}", other, form, 3, 14, 3, 40, 128)
        yield _case(f"flipped-{label}", dtype, form, 3, 5, 2, 128, 39, transpose=False)
    for dtype in FLOATS:
        yield _case("tiny", dtype, four, 2, 1, 1, 3, 64, size="tiny", edges=("one",))
        yield _case("no-tokens", dtype, four, 2, 0, 2, 8, 64, size="tiny", edges=("empty",))
        yield _case("sorted", dtype, four, 5, 16, 3, 33, 192, indices="sorted", edges=("odd",))
        yield _case("all-to-one", dtype, four, 4, 20, 2, 33, 64, indices="one")
        yield _case("some-get-none", dtype, four, 7, 16, 4, 16, 64, indices="gap")
        yield _case("lhs", dtype, four, 3, 13, 3, 16, 64, indices="both")
        yield _case("lhs-few", dtype, four, 9, 3, 3, 16, 192, indices="both")
        yield _case("rows", dtype, four, 3, 5, 3, 24, 64, rows=7)
        yield _case("rows-few", dtype, four, 3, 2, 2, 24, 64, rows=5)
        yield _case("rows-flipped", dtype, four, 2, 2, 2, 64, 33, rows=18, transpose=False)
        yield _case("many-gated", dtype, four, 3, 14, 3, 24, 64, gated=True)
    # Rows by themselves whose K several wavefronts share: as few of them share an expert as there can, or all.
    for name, group, tokens, n, k, indices in (
        ("shared", 64, 3, 32, 1024, "random"), ("shared-one", 64, 3, 16, 768, "one"),
        ("shared-gap", 128, 2, 16, 1536, "gap"), ("shared-lhs", 64, 2, 16, 2048, "both"),
    ):  # fmt: skip
        for gated in (False, True):
            label = f"{name}-gated" if gated else name
            yield _case(label, "bfloat16", ("affine", 4, group), 5, tokens, 3, n, k, gated=gated, indices=indices)
    yield from _very_few()
    yield from _a_few()
    # Whole tiles of programs that stay: experts with no rows, with all, with more than a tile has.
    for form in (four, ("affine", 8, 64), ("mxfp4", 4, 32)):
        for name, tokens, n, k, indices in (
            ("random", 48, 512, 768, "random"), ("gap", 150, 256, 1024, "gap"), ("one", 61, 256, 2048, "one"),
            ("sorted", 40, 768, 1536, "sorted"),
        ):  # fmt: skip
            for gated in (False, True):
                label = f"stay-{name}-{form[0]}{form[1]}{'-gated' if gated else ''}"
                yield _case(label, "bfloat16", form, 7, tokens, 4, n, k, gated=gated, indices=indices, size="large")
    yield from _some_of_each()
    for dtype in ("float16", "bfloat16"):
        yield _case("decode", dtype, four, 128, 1, 8, 768, 2048, size="large", compiled=True)
        yield _case("decode-gated", dtype, four, 128, 1, 8, 768, 2048, gated=True, size="large", compiled=True)
        yield _case("several", dtype, four, 128, 8, 8, 768, 2048, size="large", compiled=True)
        yield _case("several-gated", dtype, four, 128, 8, 8, 768, 2048, gated=True, size="large", compiled=True)
        yield _case("sixteen", dtype, four, 128, 16, 8, 768, 2048, size="large")
        yield _case("thirty-two", dtype, four, 128, 32, 8, 768, 2048, size="large")
        yield _case("thirty-two-gated", dtype, four, 128, 32, 8, 768, 2048, gated=True, size="large")
        yield _case("batch", dtype, four, 128, 64, 8, 2048, 768, size="large", compiled=True)
        yield _case("batch-gated", dtype, four, 128, 64, 8, 768, 2048, gated=True, size="large", compiled=True)
        yield _case("long-gated", dtype, four, 32, 2048, 4, 1440, 2880, gated=True, size="large", compiled=True)
        yield _case("prefill", dtype, four, 128, 512, 8, 768, 2048, size="large", compiled=True)
        yield _case("prefill-gated", dtype, four, 128, 512, 8, 768, 2048, gated=True, size="large", compiled=True)
        yield _case("long", dtype, four, 32, 2048, 4, 2880, 2880, size="large", compiled=True)
        yield _case("long-mxfp4", dtype, ("mxfp4", 4, 32), 32, 1024, 4, 2880, 2880, size="large", compiled=True)
        yield _case("back", dtype, four, 128, 512, 8, 2048, 768, transpose=False, size="large", compiled=True)
    yield _case("prefill", "float32", four, 16, 64, 4, 768, 2048, size="large", compiled=True)
    # More than 2^31 weights.
    yield _case("huge", "bfloat16", four, 160, 3, 2, 4096, 4096, size="large", indices="one")
