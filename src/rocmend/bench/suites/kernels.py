"""Our kernels and torch's, operation by operation, at the shapes of Llama-3.1-8B."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from rocmend.bench.calls import CallSession, Torch
from rocmend.bench.case import Case, Setting
from rocmend.bench.session import Stop
from rocmend.bench.suite import Suite

_LIGHT = 1e7
"""Operations of a product below which its speed is told in GFLOPS: it can't keep a GPU busy for long."""
WIDTHS = {"float32": 4, "float16": 2, "bfloat16": 2}
SETTINGS = (
    Setting("torch", options={"implementation": "torch"}, note="torch's function, or what models compose of several"),
    Setting("rocmend", options={"implementation": "rocmend"}, note="what rocmend.kernels chooses"),
    Setting("torch-compile", options={"implementation": "torch", "compile": True}, note="torch.compile of torch's"),
)
DEFAULT_SETTINGS = ("torch", "rocmend")


class Shapes(msgspec.Struct, frozen=True):
    """Sizes of a language model."""

    hidden: int = 4096
    feedforward: int = 14336
    heads: int = 32
    key_heads: int = 8
    dim: int = 128
    vocabulary: int = 128256
    prompt: int = 2048
    depth: int = 8192


LLAMA = Shapes()
TINY = Shapes(128, 256, 4, 2, 32, 100, 8, 40)


def operation_cases(dtypes: Sequence[str], shapes: Shapes = LLAMA) -> list[Case]:
    """Return the cases: of one token, and of a prompt.

    Bytes are those that must travel, operations those of the product. A product with 4-bit weights is counted by its
    operations, as torch reads weights of 16 bits for it.
    """
    return [case for dtype in dtypes for case in _cases(dtype, shapes)]


def _cases(dtype: str, s: Shapes) -> Iterator[Case]:
    def case(function: str, size: dict[str, Any], work: float, unit: str = "GB/s") -> Case:
        label = "x".join(str(value) for value in size.values())
        parameters = {"function": function, **size, "dtype": dtype}
        if unit == "TFLOPS" and work < _LIGHT:
            unit = "GFLOPS"
        return Case(f"kernels/{function}/{dtype}/{label}", "kernels", parameters, unit, work, f"{function} {label}")

    width = WIDTHS[dtype]
    for rows in (1, s.prompt):
        norm = {"rows": rows, "columns": s.hidden}
        yield case("rms_norm", norm, 2.0 * rows * s.hidden * width)
        yield case("add_rms_norm", norm, 4.0 * rows * s.hidden * width)
        yield case("swiglu", {"rows": rows, "columns": s.feedforward}, 3.0 * rows * s.feedforward * width)
    turned = {"heads": s.heads, "tokens": s.prompt, "dim": s.dim}
    yield case("rope", turned, 2.0 * s.heads * s.prompt * s.dim * width)
    yield case("cross_entropy", {"rows": s.prompt, "columns": s.vocabulary}, 1.0 * s.prompt * s.vocabulary * width)
    heads = {"heads": s.heads, "key_heads": s.key_heads, "dim": s.dim}
    read = 2.0 * s.key_heads * s.depth * s.dim * width
    yield case("scaled_dot_product_attention", {**heads, "tokens": 1, "keys": s.depth}, read)
    work = 2.0 * s.heads * s.prompt * s.prompt * s.dim  # half of the places, two products
    yield case("scaled_dot_product_attention", {**heads, "tokens": s.prompt, "keys": s.prompt}, work, "TFLOPS")
    for rows in (1, s.prompt // 4):
        size = {"rows": rows, "n": s.feedforward, "k": s.hidden}
        yield case("quantized_matmul", size, 2.0 * rows * s.feedforward * s.hidden, "TFLOPS")


class Operations(Suite):
    """Given operations, by torch and by rocmend."""

    name = "kernels"
    title = "Kernels"

    def __init__(self, torch: Torch, cases: Sequence[Case], settings: Sequence[Setting] = SETTINGS) -> None:
        self._torch, self._cases, self._settings = torch, list(cases), list(settings)

    def cases(self) -> list[Case]:
        """Return the operations."""
        return self._cases

    def settings(self) -> list[Setting]:
        """Return the implementations."""
        return self._settings

    def more_settings(self) -> list[Setting]:
        """Return those that are measured only where they are named."""
        return [setting for setting in SETTINGS if setting not in self._settings]

    def open(self, setting: Setting, stop: Stop) -> CallSession:
        """Start a process."""
        env = {"TRITON_INTERPRET": None, **setting.env}  # the interpreter's speed says nothing
        return CallSession(self.name, msgspec.structs.replace(setting, env=env), self._torch, stop)
