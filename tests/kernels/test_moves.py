"""Copy, gather and scatter: what MLX says of indices, gradients against torch's, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import rocmend.kernels as rk
from rocmend.core.errors import UsageError
from rocmend.kernels import select
from rocmend.kernels.ops.memory.copy import host
from rocmend.kernels.ops.memory.copy.host import collapse
from rocmend.kernels.tuning import Config

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def test_values_of_mlx() -> None:
    """``mx.take``, ``mx.put_along_axis``, ``x.at[...]`` and assignment of MLX 0.32.4 on the CPU."""
    x = torch.arange(12, dtype=torch.int32).view(3, 4)
    with select.prefer("triton"):
        assert rk.take(torch.tensor([1, 2, 3]), torch.tensor([-1, 0, -3, 2])).tolist() == [3, 1, 1, 3]
        assert rk.take(x, torch.tensor([[0, 1], [-1, 2]]), 1).shape == (3, 2, 2)
        places = (torch.tensor([0, 0]), torch.tensor([1, 1]))
        assert rk.scatter(x, places, torch.tensor(5), mode="add")[0].tolist() == [0, 11, 2, 3]
        rows = torch.tensor([[3, 9, 0, 0], [1, 2, 3, 4]])
        assert rk.scatter(x, torch.tensor([0, 0]), rows, mode="max")[0].tolist() == [3, 9, 3, 4]
        assert rk.scatter(x, torch.tensor([0, 0]), torch.tensor([[1], [2]]))[0].tolist() == [2, 2, 2, 2]
        put = rk.put_along_axis(x, torch.tensor([[0, 0]] * 3), torch.tensor([[7, 8]] * 3), 1)
        assert put.tolist() == [[8, 1, 2, 3], [8, 5, 6, 7], [8, 9, 10, 11]]
        adds = rk.scatter(torch.zeros(4, 3), torch.tensor([0, 0, -1]), torch.tensor(1.0), mode="add")
        assert adds.tolist() == [[2.0] * 3, [0.0] * 3, [0.0] * 3, [1.0] * 3]


def test_tuples_leave_out_what_lies_outside() -> None:
    x = torch.zeros(2, 3)
    with select.prefer("triton"):
        places = (torch.tensor([0, 1, 2, -1]), torch.tensor([3, -3, 0, 2]))
        assert rk.scatter(x, places, torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [[0, 0, 0], [2, 0, 4]]


def test_truth_values_are_joined() -> None:
    x = torch.tensor([False, True])
    with select.prefer("triton"):
        both = torch.tensor([0, 1])
        assert rk.scatter(x, both, torch.tensor([True, True]), mode="add").tolist() == [True, True]
        assert rk.scatter(x, both, torch.tensor([True, False]), mode="prod").tolist() == [False, False]


@pytest.mark.parametrize("along", [False, True])
def test_take_has_a_gradient(along: bool) -> None:
    x = torch.randn(4, 5, requires_grad=True)
    index = torch.randint(0, 5, (4, 9) if along else (9,))
    weight = torch.randn(4, 9)
    with select.prefer("triton"):
        ours = rk.take_along_axis(x, index, 1) if along else rk.take(x, index, 1)
        (ours * weight).sum().backward()
    got, x.grad = x.grad, None
    theirs = x.gather(1, index) if along else x[:, index]
    assert torch.equal(ours, theirs)
    (theirs * weight).sum().backward()
    torch.testing.assert_close(got, x.grad)


def test_copy_has_a_gradient() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    with select.prefer("triton"):
        rk.copy(x.t(), torch.bfloat16).float().sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.ones(3, 4))


def test_axes_that_can_be_merged_are() -> None:
    x = torch.empty(4, 5, 6, 7)
    assert len(collapse(x.shape, x.stride(), x.stride())) == 1
    heads = x.transpose(1, 2)
    assert len(collapse(heads.shape, heads.stride(), heads.contiguous().stride())) == 4
    flat = torch.empty(1).expand(5, 6)
    assert len(collapse(flat.shape, flat.stride(), (6, 1))) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda x: rk.copy_into(x, torch.ones(4)),
        lambda x: rk.copy(x.to(torch.complex64), torch.float32),
        lambda x: rk.take(x, torch.ones(2)),
        lambda x: rk.take(x[:0], torch.tensor([0]), 0),
        lambda x: rk.take(x, torch.tensor([0]), 2),
        lambda x: rk.take_along_axis(x, torch.tensor([0]), 1),
        lambda x: rk.take_along_axis(x, torch.zeros(2, 3, dtype=torch.int64), 1),
        lambda x: rk.scatter(x, torch.tensor([0]), torch.ones(4)),
        lambda x: rk.scatter(x, torch.tensor([0]), torch.ones(3), mode="mean"),
        lambda x: rk.scatter(x, (torch.tensor([0]),) * 3, torch.ones(3)),
        lambda x: rk.put_along_axis(x, torch.zeros(2, 3, dtype=torch.int64), torch.ones(3), 1),
        lambda x: rk.put_along_axis(x, torch.zeros(3, dtype=torch.int64), torch.ones(3), 1),
    ],
)
def test_what_does_not_fit_is_said(call: Any) -> None:
    with pytest.raises(UsageError, match="expected"):
        call(torch.randn(3, 3))


@pytest.mark.slow
@pytest.mark.parametrize("vector", [0, 8])
@pytest.mark.parametrize("tile", [32, 256])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_copies_of_any_tiles(tile: int, vector: int, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that fill tiles, and such that do not; several of them in a tile, and several tiles in one."""
    lines = Config({"tile": tile, "vector": vector, "num_warps": 4})
    monkeypatch.setattr(host, "config_for", lambda *_: lines)
    x = torch.randn(2, 3, 2, 150).to(dtype)
    for n in (16, 60, 64, 100):
        for given in (x[..., :n], x[..., :n].transpose(1, 2), x[:, :, 1, :n], x[1, :, 1, :n], x[..., : 2 * n : 2]):
            assert torch.equal(host.run(given, dtype), given)
            for out in (torch.zeros(*given.shape[:-1], 160, dtype=dtype), torch.zeros(*given.shape, 2, dtype=dtype)):
                into = out[..., 3 : 3 + given.shape[-1]] if out.dim() == given.dim() else out[..., 1]
                before = out.clone()
                assert host.copy_into(into, given) is into
                assert torch.equal(into, given)
                into.zero_()
                assert torch.equal(out, before)  # nothing beside it was written
