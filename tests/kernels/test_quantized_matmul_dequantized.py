"""Products of many rows: what is dequantized and handed to torch's product."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import dequantize, quantize
from rocmend.kernels.common.formats import format_of
from rocmend.kernels.ops.matmul.quantized_matmul import Problem, dequantized

pytestmark = pytest.mark.cpu

FORM = format_of("quantized_matmul", "affine", 4, 32)


def _normal(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)))


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize(
    ("x", "w"), [((40, 64), (64, 64)), ((2, 20, 64), (64, 64)), ((64,), (64, 64)), ((2, 20, 64), (2, 64, 64))]
)
def test_it_is_the_product_with_the_values(x: tuple[int, ...], w: tuple[int, ...], transpose: bool) -> None:
    left, weights = _normal(*x), quantize(_normal(*w), 32, 4)
    problem = Problem("float32", *FORM, transpose, 1, 40, 64, 64)
    values = dequantize(*weights, 32, 4)
    wanted = left @ (values.mT if transpose else values)
    for _ in range(4):  # normally, captured, replayed twice
        torch.testing.assert_close(dequantized.run(left, *weights, FORM, problem), wanted)


def test_it_is_differentiable_in_x() -> None:
    x, weights = _normal(40, 64).requires_grad_(), quantize(_normal(64, 64), 32, 4)
    problem = Problem("float32", *FORM, True, 1, 40, 64, 64)
    dequantized.run(x, *weights, FORM, problem).sum().backward()
    torch.testing.assert_close(x.grad, dequantize(*weights, 32, 4).sum(0).expand(40, 64))
