"""Which matrix products are measured: shapes by preset, and the cases made from them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rocmend.bench.case import Case

LAYOUTS = ("nn", "nt", "tn", "tt")
DTYPES = {
    "fp64": "float64",
    "fp32": "float32",
    "tf32": "tf32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8": "float8",
    "int8": "int8",
}
"""What an option calls a dtype, and what cases call it. ``tf32`` is float32 that may be rounded for a matrix unit."""
_BYTES = {"float64": (8, 8), "float32": (4, 4), "tf32": (4, 4), "float16": (2, 2), "bfloat16": (2, 2), "float8": (1, 2),
          "int8": (1, 4)}  # fmt: skip
"""Bytes of an element of the operands and of the result."""
_FULL = ("float32", "tf32", "float16", "bfloat16", "float8", "int8")
TRANSPOSED_ALONE = {"float8", "int8"}
"""Dtypes that libraries multiply in the layout of a model's weights alone."""
_INT8_ROWS = 17
_DEEP = 32
"""Times m and n from which on k makes a product one of few results with long sums."""
_OTHERS = ("float16", "float32", "tf32", "float8", "int8")
"""Dtypes that the standard preset has a few products in, besides those in bfloat16."""
_SETS = {False: (512 << 20, 64), True: (64 << 20, 8)}
"""Bytes of operands that take turns on a GPU and on a CPU, and sets of them at most; see ``workloads.gemm``."""
_CPU_FLOP = 2e10
"""Work of a case up to which a preset has it on a CPU: a run takes less than some tenths of a second."""


PEAK, FASTEST = "peak of the GPU", "fastest square product"
"""What bounds arithmetic: the product table's figure, else one measured in the run."""


class Shape(NamedTuple):
    """A product of ``[m, k]`` and ``[k, n]``."""

    m: int
    n: int
    k: int
    layout: str = "nn"
    batch: int = 1
    pad: int = 0


class Projection(NamedTuple):
    """A model's weight matrix: outputs and inputs."""

    n: int
    k: int


_LLAMA_8B = (Projection(4096, 4096), Projection(1024, 4096), Projection(14336, 4096), Projection(4096, 14336))
_QWEN_06B = (Projection(2048, 1024), Projection(1024, 1024), Projection(1024, 2048), Projection(3072, 1024),
             Projection(1024, 3072))  # fmt: skip
_QWEN_30B = (Projection(4096, 2048), Projection(512, 2048), Projection(2048, 4096), Projection(768, 2048),
             Projection(2048, 768))  # fmt: skip
_MODELS = {"Llama-3.1-8B": _LLAMA_8B, "Qwen3-0.6B": _QWEN_06B, "Qwen3-30B-A3B": _QWEN_30B}
"""Query and output, key and value, gate and up, down; of the last, those of one expert."""
_HEADS = (Projection(128256, 4096), Projection(151936, 1024))
"""The last matrix, from hidden states to the vocabulary; a prompt needs it for its last token alone."""
_TOKENS = (1, 16, 512, 2048)


def _square() -> list[Shape]:
    return [Shape(size, size, size) for size in (256, 512, 1024, 2048, 4096, 8192)]


def _llm() -> list[Shape]:
    weights = dict.fromkeys(itertools.chain(*_MODELS.values()))
    shapes = [Shape(tokens, one.n, one.k, "nt") for one in weights for tokens in _TOKENS]
    return shapes + [Shape(1, one.n, one.k, "nt") for one in _HEADS]


def _quick() -> list[Shape]:
    rows = (1, 16, 512)
    shapes = [Shape(size, size, size) for size in (1024, 4096)]
    return shapes + [Shape(m, 14336, 4096, "nt") for m in rows] + [Shape(m, 1024, 1024, "nt") for m in rows]


def _standard() -> list[Shape]:
    skinny = [Shape(8, 4096, 4096), Shape(4096, 16, 4096), Shape(64, 64, 65536)]
    batched = [*_batched()[:2], Shape(512, 512, 512, "nn", 16)]
    layouts = [Shape(1024, 1024, 1024, layout) for layout in ("nt", "tn", "tt")]
    return [*_quick(), *skinny, *batched, *layouts, Shape(2048, 2048, 2048, pad=64)]


def _few(*, cpu: bool) -> list[Shape]:
    if cpu:  # which takes a second for 512x4096x4096 in fp16
        return [Shape(512, 1024, 1024, "nt")]
    return [Shape(4096, 4096, 4096), Shape(512, 4096, 4096, "nt")]


def _skinny() -> list[Shape]:
    few = [Shape(rows, 4096, 4096) for rows in (1, 2, 4, 8, 32, 64)]
    return [*few, Shape(4096, 1, 4096), Shape(4096, 16, 4096), Shape(4096, 4096, 16), Shape(64, 64, 65536)]


def _batched() -> list[Shape]:
    return [
        Shape(2048, 2048, 128, "nt", 32),  # scores of 32 heads
        Shape(2048, 128, 2048, "nn", 32),  # and their values
        Shape(1, 4096, 128, "nt", 32),
        Shape(128, 768, 2048, "nt", 64),  # experts
        Shape(512, 512, 512, "nn", 16),
    ]


def _layouts() -> list[Shape]:
    made = [Shape(size, size, size, layout) for size in (1024, 4096) for layout in LAYOUTS]
    return [*made, Shape(2048, 2048, 2048, pad=64), Shape(512, 4096, 4096, "nt", pad=64)]


_PRESETS = {"quick": _quick, "standard": _standard, "square": _square, "llm": _llm}
PRESETS = (*_PRESETS, "full")
"""What an option calls them."""


def case_of(shape: Shape, dtype: str, *, cpu: bool = False) -> Case:
    """Return the case of a product; a CPU's figures are in thousandths of a GPU's unit."""
    m, n, k, layout, batch, pad = shape
    text = f"{m}x{n}x{k}" if batch == 1 else f"{batch}x{m}x{n}x{k}"
    parameters: dict[str, Any] = {"m": m, "n": n, "k": k, "batch": batch, "dtype": dtype, "layout": layout}
    if pad:
        parameters["pad"] = pad
    short = next(name for name, long in DTYPES.items() if long == dtype)
    padded = f" rows {pad} apart" if pad else ""
    return Case(
        f"gemm/{dtype}/{text}/{layout}{f'/pad{pad}' if pad else ''}",
        "gemm",
        parameters,
        f"{'G' if cpu else 'T'}{'OPS' if dtype == 'int8' else 'FLOPS'}",
        2.0 * batch * m * n * k,
        f"{short} {text} {layout}{padded}",
    )


def preset_cases(preset: str, dtypes: Sequence[str], *, cpu: bool = False) -> list[Case]:
    """Return the cases of a preset.

    Args:
        preset: One of ``PRESETS``.
        dtypes: As cases call them; none for bfloat16, in ``standard`` for a few products in others too, in ``full`` for
            all but float64.
        cpu: Leave out what takes a CPU long.
    """
    if preset == "full":
        shapes = [*_square(), *_llm(), *_skinny(), *_batched(), *_layouts()]
        wanted = dtypes or _FULL
    else:
        shapes, wanted = _PRESETS[preset](), dtypes or ("bfloat16",)
    made = [case_of(shape, dtype, cpu=cpu) for dtype in wanted for shape in _fitting(shapes, dtype)]
    if preset == "standard" and not dtypes:
        made += [case_of(shape, dtype, cpu=cpu) for dtype in _OTHERS for shape in _fitting(_few(cpu=cpu), dtype)]
    return [case for case in {case.id: case for case in made}.values() if not cpu or case.work <= _CPU_FLOP]


def _fitting(shapes: Iterable[Shape], dtype: str) -> list[Shape]:
    """Return the shapes that torch has products of a dtype for."""
    if dtype not in TRANSPOSED_ALONE:
        return list(shapes)
    plain = [shape._replace(layout="nt") for shape in shapes if shape.batch == 1 and not shape.pad]
    whole = [shape for shape in plain if shape.n % 16 == 0 and shape.k % 16 == 0]
    return [shape for shape in whole if dtype != "int8" or shape.m >= _INT8_ROWS]


def group_of(case: Case) -> str:
    """Return what kind of product a case is."""
    m, n, k, batch = (int(case.parameters[name]) for name in ("m", "n", "k", "batch"))
    if batch > 1:
        return "batched"
    if case.parameters.get("pad"):
        return "strided"
    if min(m, n) <= 32:
        return "few-row (decode)"
    if k >= _DEEP * max(m, n):
        return "deep"
    return "square" if m == n == k else "rectangular (prompt)"


def short_dtype(case: Case) -> str:
    """Return what an option calls the dtype of a case."""
    return next(name for name, long in DTYPES.items() if long == case.parameters["dtype"])


def operand_bytes(case: Case, *, cpu: bool) -> int:
    """Return the bytes that the operands and results of a case take in a process, all sets of them."""
    size = int(bytes_of(case))
    cold, most = _SETS[cpu]
    return size * min(most, -(-cold // size))


def bytes_of(case: Case) -> float:
    """Return the bytes that a product reads and writes at least."""
    m, n, k, batch = (float(case.parameters[name]) for name in ("m", "n", "k", "batch"))
    operand, result = _BYTES[str(case.parameters["dtype"])]
    return batch * ((m * k + k * n) * operand + m * n * result)
