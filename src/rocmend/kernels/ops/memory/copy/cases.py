"""The suite's cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from rocmend.kernels.common.floats import ELEMENTS
from rocmend.kernels.dtypes import BY_NAME
from rocmend.kernels.ops.rowwise.sort.cases import elements
from rocmend.kernels.suite import Call, Case, Maker, Size

View = Callable[[Tensor], Tensor]
NUMERIC = tuple(name for name in ELEMENTS if name not in ("complex64", "float8_e4m3fn", "float8_e5m2"))
VIEWS: dict[str, tuple[tuple[int, ...], View]] = {
    "scalar": ((), lambda x: x),
    "flat": ((301,), lambda x: x),
    "step": ((300,), lambda x: x[1::3]),
    "turned": ((33, 70), lambda x: x.t()),
    "swapped": ((5, 9, 33), lambda x: x.transpose(1, 2)),
    "reversed": ((3, 4, 5, 6), lambda x: x.permute(3, 2, 1, 0)),
    "broadcast": ((7, 1, 9), lambda x: x.expand(7, 5, 9)),
    "row-broadcast": ((7, 1), lambda x: x.expand(3, 7, 40)),
    "window": ((50,), lambda x: x.as_strided((10, 9), (4, 1))),
    "rows": ((6, 4200), lambda x: x[:, 50:4150]),
    "halves": ((3, 5, 64), lambda x: x[:, :4, 32:]),
    "few-heads": ((2, 64, 3, 32), lambda x: x.transpose(1, 2)),
    "odd-heads": ((2, 37, 3, 24), lambda x: x.transpose(1, 2)),
    "many": ((2, 3, 2, 3, 2, 3, 2, 3, 2, 3), lambda x: x.permute(8, 0, 6, 2, 4, 9, 1, 7, 3, 5)),
    "empty": ((4, 0, 3), lambda x: x.transpose(0, 2)),
}  # fmt: skip
LARGE: dict[str, tuple[tuple[int, ...], View]] = {
    "heads": ((4, 2048, 32, 128), lambda x: x.transpose(1, 2)),
    "square": ((4099, 4097), lambda x: x.t()),
    "huge-stride": ((3, 40_000_000), lambda x: x.t()),
    "channels": ((8, 64, 224, 224), lambda x: x.permute(0, 2, 3, 1)),
}


def _case(
    name: str, shape: tuple[int, ...], view: View, dtype: str, to: str | None = None, size: Size = "tiny"
) -> Case:
    def make(m: Maker) -> Call:
        if size == "large":
            return Call((view(m.normal(*shape, dtype=dtype) * 100), BY_NAME[to or dtype]))
        x = elements(m, *shape, dtype=dtype) if shape else elements(m, 1, dtype=dtype).reshape(())
        if to and to != "bool" and BY_NAME[dtype].is_floating_point and not BY_NAME[to].is_floating_point:
            # Only numbers that an integer type holds are cast alike everywhere.
            x = (
                torch.nan_to_num(x.float(), 1.0, 90.0, 0.0)
                .clamp(0 if to.startswith("u") else -90, 90)
                .to(BY_NAME[dtype])
            )
        return Call((view(x), BY_NAME[to] if to else None))

    label = f"{dtype}{f'-to-{to}' if to else ''}-{name}"
    compiled = (
        dtype in ("float32", "bfloat16", "int64") and name in ("turned", "flat", "reversed", "heads") and to is None
    )
    return Case(label, make, to or dtype, size, compiled=compiled, edges=("empty",) if 0 in shape else ("strides",))


def _into(dtype: str) -> Case:
    def make(m: Maker) -> Call:
        out = torch.zeros(9, 14, dtype=BY_NAME[dtype], device=m.device)[1:, ::2].t()
        return Call((out, elements(m, 7, 1, dtype="float32").nan_to_num(0.0, 1.0, -1.0)))

    reference = "rocmend.kernels.ops.memory.copy.reference:copy_into"
    return Case(f"into-{dtype}", make, dtype, "tiny", function="copy_into", reference=reference, edges=("strides",))


def _beyond(m: Maker) -> Call:
    x = torch.arange(46_400, dtype=torch.int16, device=m.device).view(1, -1).expand(46_400, -1)
    return Call((x.t(), torch.int8))


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for name, (shape, view) in VIEWS.items():
        for dtype in ("float32", "bfloat16"):
            yield _case(name, shape, view, dtype)
    for dtype in (name for name in ELEMENTS if name not in ("float32", "bfloat16")):
        yield _case("turned", *VIEWS["turned"], dtype)
        yield _case("reversed", *VIEWS["reversed"], dtype)
    for dtype in NUMERIC:
        for to in NUMERIC:
            if to != dtype:
                yield _case("step", *VIEWS["step"], dtype, to)
    for dtype in ("int16", "bfloat16", "float32"):
        yield _into(dtype)
    for name, (shape, view) in LARGE.items():
        for kind, cast in (("float32", None), ("bfloat16", None), ("float32", "bfloat16")):
            yield _case(name, shape, view, kind, cast, "large")
    yield Case("int16-to-int8-beyond-2^31", _beyond, "int8", "large")
