"""The suite's cases."""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.kernels.common.floats import FLOATS
from rocmend.kernels.ops.rowwise.gated_linear_unit import KINDS
from rocmend.kernels.ops.rowwise.logsumexp.cases import rows_size
from rocmend.kernels.suite import Call, Case, Maker, sizes


def _case(dtype: str, kind: str, *shape: int, halves: bool = False, edges: bool = False) -> Case:
    def make(m: Maker) -> Call:
        if halves:
            both = m.normal(*shape[:-1], 2 * shape[-1], dtype=dtype, scale=2.0)
            gate, up = both[..., : shape[-1]], both[..., shape[-1] :]
        else:
            gate = m.edges(*shape, dtype=dtype, largest=False) if edges else m.normal(*shape, dtype=dtype, scale=2.0)
            up = m.normal(*shape, dtype=dtype)
        gate = gate.abs() if shape == (1, 1) else gate  # below 0 the one element would be its own yardstick
        return Call((gate, up), {"approximate": "tanh"} if kind == "gelu_tanh" else {})

    function = "swiglu" if kind == "silu" else "geglu"
    name = f"{dtype}-{kind}-{sizes(shape)}{'-halves' * halves}{'-edges' * edges}"
    marks = ("nan", "inf") if edges else ("strides",) if halves else ()
    return Case(
        name, make, dtype, rows_size(shape), function=function, compiled=shape in ((4, 14336), (300, 96)), edges=marks
    )


def _gradient(dtype: str, kind: str, *shape: int, halves: bool = False) -> Case:
    def make(m: Maker) -> Call:
        both = m.normal(*shape[:-1], 2 * shape[-1], dtype=dtype, scale=2.0)
        gate, up = both[..., : shape[-1]], both[..., shape[-1] :]
        if not halves:
            gate, up = gate.contiguous(), up.contiguous()
        return Call((m.normal(*shape, dtype=dtype), gate, up, kind))

    return Case(
        f"{dtype}-{kind}-{sizes(shape)}-gradients{'-halves' * halves}", make, dtype, rows_size(shape),
        function="glu_backward", compiled=shape in ((4, 14336), (300, 96)),
    )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for dtype in FLOATS:
        for kind in KINDS:
            for shape in ((1, 1), (3, 7), (0, 5), (2, 3, 65)):
                yield _case(dtype, kind, *shape)
            yield _case(dtype, kind, 4, 14336, halves=True)
            yield _case(dtype, kind, 300, 96, halves=True)
            yield _case(dtype, kind, 6, 50, edges=True)
            yield _case(dtype, kind, 4096, 14336)
            yield _gradient(dtype, kind, 3, 7)
            yield _gradient(dtype, kind, 300, 96, halves=True)
            yield _gradient(dtype, kind, 4, 14336)
            yield _gradient(dtype, kind, 4096, 14336, halves=True)
