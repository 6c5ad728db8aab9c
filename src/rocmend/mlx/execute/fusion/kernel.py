"""One generated kernel: its source, and how it is launched on tensors of any strides."""

from __future__ import annotations

import hashlib
import linecache
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.launch import launch
from rocmend.kernels.tuning.config import Config
from rocmend.mlx import dtypes
from rocmend.mlx.execute.fusion.expressions import EXPRESSIONS, literal

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from rocmend.mlx.dtypes import Dtype

__all__ = ["Chain", "Micro"]

_ROUNDED = {dtypes.bfloat16: "tl.bfloat16", dtypes.float16: "tl.float16"}
_STORED = {**_ROUNDED, dtypes.float32: "tl.float32", dtypes.bool_: "tl.int1"}
_CONFIG = Config({"BLOCK": 1024, "num_warps": 4})
_SMALL = Config({"BLOCK": 256, "num_warps": 2})
_kernels: dict[tuple[Any, ...], Any] = {}

_HEAD = '''import triton
import triton.language as tl
from rocmend.kernels.language import narrow


@triton.jit
def tanh(x):
    """Return the hyperbolic tangent, exact to rounding for small arguments too."""
    square = x * x
    series = x * (1.0 + square * (-0.33333333 + square * (0.13333333 + square * (-0.053968254 + square * 0.021869488))))
    e = tl.exp(-2.0 * tl.abs(x))
    large = (1.0 - e) / (1.0 + e)
    return tl.where(tl.abs(x) < 0.25, series, tl.where(x < 0, -large, large))


'''


@dataclass(frozen=True, slots=True)
class Micro:
    """One operation of a chain.

    Attributes:
        out: name of its value.
        op: the primitive's name.
        ins: names of its operands.
        dtype: type of its value.
        attrs: the value of a ``Constant``.
    """

    out: Hashable
    op: str
    ins: tuple[Hashable, ...]
    dtype: Dtype
    attrs: Any = None


class Chain:
    """Operations that one kernel computes.

    Args:
        micros: in order.
        ins: names of what comes from outside.
        ins_dtypes: their types.
        outs: names of what is stored; all of one shape.
    """

    def __init__(
        self, micros: Sequence[Micro], ins: Sequence[Hashable], ins_dtypes: Sequence[Dtype], outs: Sequence[Hashable]
    ) -> None:
        self.micros = tuple(micros)
        self.ins = tuple(ins)
        self.ins_dtypes = tuple(ins_dtypes)
        self.outs = tuple(outs)
        types = {micro.out: micro.dtype for micro in micros}
        self.outs_dtypes = [types[out] for out in outs]

    def source(self, modes: Sequence[str]) -> str:
        """Return the kernel's source for inputs that are read in these ways."""
        names: dict[Hashable, str] = {}
        held: dict[Hashable, Dtype] = {}
        lines = []
        periods = [f"period_{k}" for k, mode in enumerate(modes) if mode in {"row", "column"}]
        for k, (name, mode, dtype) in enumerate(zip(self.ins, modes, self.ins_dtypes, strict=True)):
            names[name], held[name] = f"x{k}", dtype
            place = {
                "full": f"in_{k} + index, mask=inside",
                "scalar": f"in_{k}",
                "row": f"in_{k} + index % period_{k}, mask=inside",
                "column": f"in_{k} + index // period_{k}, mask=inside",
            }[mode]
            up = "" if dtype in {dtypes.float32, dtypes.bool_} else ".to(tl.float32)"
            lines.append(f"x{k} = tl.load({place}){'.to(tl.int1)' if dtype is dtypes.bool_ else up}")
        for number, micro in enumerate(self.micros):
            if micro.op == "Constant":
                names[micro.out], held[micro.out] = str(literal(micro.attrs, micro.dtype)), micro.dtype
                continue
            operands = [names[one] for one in micro.ins]
            text = EXPRESSIONS[micro.op](*operands)
            if micro.op == "AsType":
                source = held[micro.ins[0]]
                if micro.dtype is dtypes.bool_:
                    text = f"({operands[0]} != 0)"
                elif source is dtypes.bool_:
                    text = f"tl.where({operands[0]}, 1.0, 0.0)"
            if micro.dtype in _ROUNDED:
                text = f"narrow({text}, {_ROUNDED[micro.dtype]}).to(tl.float32)"
            names[micro.out], held[micro.out] = f"v{number}", micro.dtype
            lines.append(f"v{number} = {text}")
        for k, (out, dtype) in enumerate(zip(self.outs, self.outs_dtypes, strict=True)):
            value = f"narrow({names[out]}, {_ROUNDED[dtype]})" if dtype in _ROUNDED else f"({names[out]})"
            lines.append(f"tl.store(out_{k} + index, {value}.to({_STORED[dtype]}), mask=inside)")
        parameters = [f"in_{k}" for k in range(len(self.ins))] + [f"out_{k}" for k in range(len(self.outs))]
        body = "\n    ".join([
            "index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)",
            "inside = index < total",
            *lines,
        ])  # fmt: skip
        given = ", ".join([*parameters, "total", *periods])
        return f"{_HEAD}@triton.jit\ndef chain({given}, BLOCK: tl.constexpr):\n    {body}\n"

    def __call__(self, shape: tuple[int, ...], tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Compute the chain.

        Args:
            shape: of the outputs.
            tensors: one for each of ``ins``; each broadcasts to ``shape``.
        """
        device = tensors[0].device
        outs = [torch.empty(shape, dtype=dtype.storage, device=device) for dtype in self.outs_dtypes]
        total = outs[0].numel()
        if total == 0:
            return outs
        modes, given, periods = [], [], []
        for tensor in tensors:
            mode, readable, period = _reading(tensor, shape, total)
            modes.append(mode)
            given.append(readable)
            if period:
                periods.append(period)
        kernel = _kernel(self.source(modes))
        config = _CONFIG if total >= 1 << 18 else _SMALL
        launch(kernel, (cdiv(total, config["BLOCK"]),), (*given, *outs, total, *periods), {}, config)
        return outs


def _reading(tensor: torch.Tensor, shape: tuple[int, ...], total: int) -> tuple[str, torch.Tensor, int]:
    """Return how a tensor is read along the flattened output: the way, the tensor and, for two ways, a period."""
    count = tensor.numel()
    if count == 1:
        return "scalar", tensor, 0
    if count == total:
        return "full", tensor.contiguous(), 0
    wide = (1,) * (len(shape) - tensor.dim()) + tuple(tensor.shape)
    first = next(k for k, size in enumerate(wide) if size != 1)
    last = max(k for k, size in enumerate(wide) if size != 1)
    if wide[first:] == shape[first:]:
        return "row", tensor.contiguous(), count
    if wide[: last + 1] == shape[: last + 1]:
        return "column", tensor.contiguous(), total // count
    return "full", tensor.expand(shape).contiguous(), 0


def _kernel(source: str) -> Any:
    found = _kernels.get((source,))
    if found is None:
        name = f"<rocmend chain {hashlib.sha256(source.encode()).hexdigest()[:16]}>"
        # Triton reads a function's source from where the traceback module would.
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        space: dict[str, Any] = {"__name__": "rocmend_chain", "__file__": name}
        exec(compile(source, name, "exec"), space)  # noqa: S102 our own source, from our own table
        found = _kernels[source,] = space["chain"]
    return found
