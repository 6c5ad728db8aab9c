"""Matrix products of ``[m, k]`` and ``[k, n]``, one or a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.bench.workload import Workload

if TYPE_CHECKING:
    import torch

_ROWS = 8
"""Rows of the result that are compared: each is a sum over all of k."""
_ULP = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


class Product(Workload):
    """A product on several sets of operands in turn, so that no cache serves them."""

    def __init__(self, sets: list[tuple[torch.Tensor, torch.Tensor]], dtype: str) -> None:
        self._sets, self._dtype, self._turn = sets, dtype, 0
        self._worst = 0.0

    def run(self) -> torch.Tensor:
        """Multiply the next set."""
        self._turn = (self._turn + 1) % len(self._sets)
        left, right = self._sets[self._turn]
        return left @ right

    def wrong(self) -> str:
        """Compare some rows with float64."""
        left, right = self._sets[0]
        rows = left[..., :_ROWS, :].double().cpu()
        expected = rows @ right.double().cpu()
        got = (left @ right)[..., :_ROWS, :].double().cpu()
        scale = (rows.abs() @ right.double().cpu().abs()).clamp_min(1e-300)
        error = ((got - expected).abs() / scale).nan_to_num(float("inf")).max().item()
        allowed = 4 * _ULP[self._dtype]
        self._worst = error
        return f"error {error:.2g} of the sum of magnitudes, {allowed:.2g} is allowed" if error > allowed else ""

    def detail(self) -> dict[str, Any]:
        """Return the largest error."""
        return {"error": self._worst}


def make(parameters: dict[str, Any], device: torch.device) -> Product:
    """Make a product of random operands."""
    import torch

    m, n, k, batch = (int(parameters[name]) for name in ("m", "n", "k", "batch"))
    dtype = getattr(torch, parameters["dtype"])
    size = batch * (m * k + k * n) * torch.empty((), dtype=dtype).element_size()
    count = max(1, min(16, (512 << 20) // max(size, 1))) if device.type == "cuda" else 1
    generator = torch.Generator(device).manual_seed(7)

    def draw(*shape: int) -> torch.Tensor:
        whole = (batch, *shape) if batch > 1 else shape
        return torch.randn(whole, generator=generator, device=device).to(dtype)

    sets = []
    for _ in range(count):
        left = draw(k, m).transpose(-1, -2) if parameters["layout"][0] == "t" else draw(m, k)
        right = draw(n, k).transpose(-1, -2) if parameters["layout"][1] == "t" else draw(k, n)
        sets.append((left, right))
    return Product(sets, parameters["dtype"])
