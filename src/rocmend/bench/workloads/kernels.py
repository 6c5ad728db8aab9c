"""Operations of ``rocmend.kernels``, and torch's for the same: calls at the shapes of language models.

It needs what ``rocmend.kernels`` needs in the interpreter that runs it: rocmend's own dependencies, and Triton.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from rocmend.bench.workload import Workload
from rocmend.kernels import backends, registry, select
from rocmend.kernels.op import Op, Tolerance, resolve
from rocmend.kernels.suite import Call, Maker, compare
from rocmend.kernels.suite.run import flatten, in_float64
from rocmend.runner.torch_device import UnsupportedError

EPSILON = 1e-5
GROUP, BITS = 64, 4
SETS_BYTES, MOST_SETS = 512 << 20, 16
"""Sets of arguments are used in turn, so that no cache serves them."""
COMPOSED = 2.0
"""Units in the last place, of each value and of the largest one, that torch may be off more: what it composes of
several functions is rounded between them."""


class Operation(NamedTuple):
    """A public function at a shape.

    Attributes:
        make: Makes a call from a maker and the case's sizes.
        torch: torch's function.
        prepared: Returns the call of torch's function that a call of ours becomes; none for the same one.
    """

    make: Callable[[Maker, dict[str, Any]], Call]
    torch: Callable[..., Any]
    prepared: Callable[[Call], Call] | None = None


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return torch's root mean square norm."""
    return functional.rms_norm(x, (x.shape[-1],), weight, eps)


def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return torch's norm of a sum, and the sum."""
    total = x + residual
    return rms_norm(total, weight, eps), total


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Return torch's gated unit."""
    return functional.silu(gate) * up


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return torch's losses, in float32."""
    return functional.cross_entropy(logits.float(), targets, reduction="none")


def rope(x: torch.Tensor, dims: int, *, base: float) -> torch.Tensor:
    """Return ``x`` turned by its positions from 0 on, as models in plain torch do."""
    rates = base ** (-torch.arange(0, dims, 2, device=x.device, dtype=torch.float32) / dims)
    angles = torch.arange(x.shape[-2], device=x.device, dtype=torch.float32)[:, None] * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, scale: float, mask: str | None = None
) -> torch.Tensor:
    """Return torch's attention."""
    causal = mask == "causal"
    return functional.scaled_dot_product_attention(q, k, v, scale=scale, is_causal=causal, enable_gqa=True)


def _dense(call: Call) -> Call:
    """Return the call with the weights unpacked: what torch has a product for."""
    x, words, scales, biases = call.args[:4]
    reference = resolve("rocmend.kernels.ops.matmul.dequantize.reference:dequantize")
    return Call((x, reference(words, scales.double(), biases.double(), GROUP, BITS, "affine").to(x.dtype)))


def _rows(count: int, *, vectors: int = 0) -> Callable[[Maker, dict[str, Any]], Call]:
    """Return what makes matrices, weights of a row, and the norms' epsilon where there are weights."""

    def make(m: Maker, size: dict[str, Any]) -> Call:
        rows, columns, dtype = size["rows"], size["columns"], size["dtype"]
        matrices = [m.normal(rows, columns, dtype=dtype) for _ in range(count)]
        weights = [m.normal(columns, dtype=dtype) for _ in range(vectors)]
        return Call((*matrices, *weights, *([EPSILON] if vectors else [])))

    return make


def _losses(m: Maker, size: dict[str, Any]) -> Call:
    rows, columns = size["rows"], size["columns"]
    return Call((m.normal(rows, columns, dtype=size["dtype"]), m.integers(0, columns, rows, dtype="int64")))


def _turned(m: Maker, size: dict[str, Any]) -> Call:
    x = m.normal(1, size["heads"], size["tokens"], size["dim"], dtype=size["dtype"])
    return Call((x, size["dim"]), {"base": 10000.0})


def _attention(m: Maker, size: dict[str, Any]) -> Call:
    dim, dtype = size["dim"], size["dtype"]
    q = m.normal(1, size["heads"], size["tokens"], dim, dtype=dtype)
    k, v = (m.normal(1, size["key_heads"], size["keys"], dim, dtype=dtype) for _ in range(2))
    return Call((q, k, v), {"scale": dim**-0.5} | ({"mask": "causal"} if size["tokens"] > 1 else {}))


def _quantized(m: Maker, size: dict[str, Any]) -> Call:
    n, k, dtype = size["n"], size["k"], size["dtype"]
    words = m.integers(-(2**31), 2**31, n, k * BITS // 32)
    scales = m.normal(n, k // GROUP, dtype=dtype, scale=1 / (2**BITS - 1))
    biases = m.normal(n, k // GROUP, dtype=dtype, scale=0.5)
    x = m.normal(size["rows"], k, dtype=dtype)
    return Call((x, words, scales, biases, True, GROUP, BITS, "affine"))


OPERATIONS = {
    "rms_norm": Operation(_rows(1, vectors=1), rms_norm),
    "add_rms_norm": Operation(_rows(2, vectors=1), add_rms_norm),
    "swiglu": Operation(_rows(2), swiglu),
    "cross_entropy": Operation(_losses, cross_entropy),
    "rope": Operation(_turned, rope),
    "scaled_dot_product_attention": Operation(_attention, attention),
    "quantized_matmul": Operation(_quantized, functional.linear, _dense),
}
"""By the name of the public function."""


class Operated(Workload):
    """Calls of a function on several sets of arguments in turn.

    Args:
        parameters: ``function``, the sizes, ``dtype``; ``implementation`` (``rocmend`` or ``torch``), ``compile``.
        device: Where it runs.
    """

    def __init__(self, parameters: dict[str, Any], device: torch.device) -> None:
        name = str(parameters["function"])
        self._ours, compiled = parameters["implementation"] == "rocmend", bool(parameters.get("compile"))
        self.slow = ("triton" if self._ours else "torch-compile" if compiled else "") if device.type == "cuda" else ""
        self._on_gpu = device.type == "cuda"
        self._op = next(op for op in registry.ops() if name in op.functions)
        self._name, operation = name, OPERATIONS[name]
        self._tolerance = _tolerance(self._op, parameters["dtype"], ours=self._ours)
        self._first: Call | None = operation.make(Maker(device, 7), parameters)
        size = sum(one.nbytes for one in self._first.args if isinstance(one, torch.Tensor))
        count = max(1, min(MOST_SETS, SETS_BYTES // max(size, 1))) if device.type == "cuda" else 1
        self._sets = [self._first, *(operation.make(Maker(device, 8 + one), parameters) for one in range(count - 1))]
        self._function: Callable[..., Any] = resolve(self._op.functions[name]) if self._ours else operation.torch
        if operation.prepared is not None and not self._ours:
            self._sets = [operation.prepared(call) for call in self._sets]
        if compiled:
            self._function = torch.compile(self._function, dynamic=False)
        self._turn, self._detail = 0, dict[str, Any]()

    def run(self) -> Any:
        """Call it with the next set."""
        self._turn = (self._turn + 1) % len(self._sets)
        return self._called(self._sets[self._turn])

    def _called(self, call: Call) -> Any:
        with torch.inference_mode():
            return self._function(*call.args, **call.kwargs)

    def wrong(self) -> str:
        """Compare the first set's result with the op's reference in float64, within the op's tolerance."""
        call, self._first = self._first, None
        assert call is not None  # noqa: S101  it is compared once
        with select.observed() as chosen:
            got = flatten(self._called(self._sets[0]))
        if self._ours:
            taken = next((name for op, _, name in chosen if op == self._op.name), "")
            tier = next((one.tier for one in backends.known(self._op) if one.name == taken), "")
            if tier != "triton" and not self._on_gpu:
                raise UnsupportedError("there is no GPU here, and without one no kernel of rocmend's computes it")
            self._detail["implementation"] = taken
        wide = in_float64(call)
        named = None if self._name == next(iter(self._op.functions)) else self._name
        wanted = flatten(resolve(self._op.reference_of(named))(*wide.args, **wide.kwargs))
        if len(got) != len(wanted):
            return f"{len(got)} outputs, {len(wanted)} were expected"
        found = [compare(one, want, self._tolerance) for one, want in zip(got, wanted, strict=True)]
        worst = max(found, key=lambda one: (not one.ok, one.worst))
        self._detail["error_of_allowed"] = worst.worst
        return "" if worst.ok else worst.detail

    def detail(self) -> dict[str, Any]:
        """Return which implementation was chosen, and the error as a multiple of what is allowed."""
        return self._detail


def _tolerance(op: Op, dtype: str, *, ours: bool) -> Tolerance:
    held: Tolerance = op.tolerance.get(dtype) or next(iter(op.tolerance.values()))
    if ours:
        return held
    step = torch.finfo(getattr(torch, dtype)).eps
    return Tolerance(held.ulps + COMPOSED, held.scaled + COMPOSED * step)


def make(parameters: dict[str, Any], device: torch.device) -> Operated:
    """Make the calls."""
    return Operated(parameters, device)
