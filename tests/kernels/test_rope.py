"""RoPE against MLX, and its gradient."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("numpy")

from tests.kernels.norms_golden import golden

from rocmend.core.errors import UsageError
from rocmend.kernels import rope, rope_pair

pytestmark = [pytest.mark.cpu]


@pytest.mark.parametrize("traditional", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_as_mlx(dtype: str, traditional: bool) -> None:
    x = golden(dtype, "h")
    mark = "_traditional" if traditional else ""
    freqs = torch.tensor([1.5**one for one in range(8)])
    found = {
        f"rope{mark}": rope(
            x, 12, traditional=traditional, base=100.0, scale=0.5, offset=torch.tensor([3, 50], dtype=torch.int32)
        ),
        f"rope_freqs{mark}": rope(x, 16, traditional=traditional, base=None, offset=7, freqs=freqs),
    }
    # MLX's CPU back end rounds cosines, sines and products to half types; its GPU ones, which are followed, do not.
    near = {"float32": 5e-6, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    for name, out in found.items():
        torch.testing.assert_close(out, golden(dtype, name), rtol=0, atol=near)


def test_the_gradient_turns_back() -> None:
    q = torch.randn(2, 3, 4, 16, generator=torch.Generator().manual_seed(7)).requires_grad_()
    k = torch.randn(2, 1, 4, 16, generator=torch.Generator().manual_seed(8)).requires_grad_()
    first, second = rope_pair(q, k, 16, offset=5)
    dq, dk = torch.autograd.grad((first.square().sum() + second.square().sum()) / 2, (q, k))
    # A rotation keeps lengths: the gradient of half the squared length is the vector itself.
    torch.testing.assert_close(dq, q, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(dk, k, rtol=1e-5, atol=1e-6)


def test_says_what_does_not_fit() -> None:
    x = torch.zeros(1, 2, 3, 8)
    with pytest.raises(UsageError, match="dims to be even"):
        rope(x, 7)
    with pytest.raises(UsageError, match="at least 3 axes"):
        rope(x[0, 0], 8)
    with pytest.raises(UsageError, match="either base or freqs"):
        rope(x, 8, freqs=torch.ones(4))
    with pytest.raises(UsageError, match="integer offsets"):
        rope(x, 8, offset=torch.tensor(1.0))
    with pytest.raises(UsageError, match="one offset, or 1"):
        rope(x, 8, offset=torch.tensor([1, 2]))
