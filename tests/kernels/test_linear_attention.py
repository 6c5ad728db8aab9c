"""Recurrences and short convolutions: what MLX gives, steps against whole sequences, autograd, errors."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.core.errors import UsageError
from rocmend.kernels import depthwise_conv1d, gated_delta, select, selective_scan, ssd_scan, wkv7

pytestmark = pytest.mark.cpu
GOLDEN = tomllib.loads((Path(__file__).parent / "golden" / "linear_attention.toml").read_text(encoding="utf-8"))


def _pattern(*shape: int, step: float = 0.37) -> Any:
    """Return numbers that the golden values' program makes as well."""
    return torch.sin(torch.arange(torch.Size(shape).numel(), dtype=torch.float64) * step).float().reshape(shape)


def _is_golden(name: str, found: tuple[Any, Any]) -> None:
    for kind, part in zip(("y", "state"), found, strict=True):
        wanted = torch.tensor(GOLDEN["values"][f"{name}_{kind}"])
        torch.testing.assert_close(part.flatten()[:: GOLDEN["every"]], wanted, rtol=1e-4, atol=1e-5)


def test_gated_delta_as_mlx() -> None:
    q, k, v = _pattern(1, 30, 1, 16) * 0.2, _pattern(1, 30, 1, 16, step=0.61) * 0.3, _pattern(1, 30, 2, 8, step=1.1)
    gates = (torch.sigmoid(_pattern(1, 30, 2, step=0.5)), torch.sigmoid(_pattern(1, 30, 2, step=0.8)))
    with select.prefer("triton"):
        _is_golden("gated_delta", gated_delta(q, k, v, *gates, state=_pattern(1, 2, 8, 16, step=0.23)))


def test_ssd_as_mlx() -> None:
    x, dt = _pattern(1, 30, 2, 8), _pattern(1, 30, 2, step=0.5)
    b, c = _pattern(1, 30, 1, 16, step=0.61), _pattern(1, 30, 1, 16, step=0.9)
    vectors = (_pattern(2, step=0.4), _pattern(2, step=0.7), _pattern(2, step=1.3))
    with select.prefer("triton"):
        found = ssd_scan(x, dt, vectors[0], b, c, *vectors[1:], state=_pattern(1, 2, 8, 16, step=0.23))
    _is_golden("ssd", found)


def test_wkv7_as_mlx() -> None:
    rows = [_pattern(1, 5, 2, 16, step=0.3 + 0.1 * n) * 0.5 for n in range(6)]
    with select.prefer("triton"):
        _is_golden("wkv7", wkv7(*rows, state=_pattern(1, 2, 16, 16, step=0.23)))


def test_conv_as_mlx() -> None:
    weight, bias, state = _pattern(6, 4, step=0.7), _pattern(6, step=0.4), _pattern(2, 3, 6, step=0.2)
    with select.prefer("triton"):
        _is_golden("conv", depthwise_conv1d(_pattern(2, 9, 6), weight, bias, state=state, activation="silu"))


def test_steps_are_the_sequence() -> None:
    """A prefill, then single steps, is the whole sequence at once."""
    x, weight = _pattern(1, 7, 5), _pattern(5, 4, step=0.7)
    with select.prefer("triton"):
        whole, end = depthwise_conv1d(x, weight)
        y, state = depthwise_conv1d(x[:, :5], weight)
        parts = [y]
        for t in (5, 6):
            y, state = depthwise_conv1d(x[:, t : t + 1], weight, state=state)
            parts.append(y)
    assert torch.equal(torch.cat(parts, 1), whole)
    assert torch.equal(state, end)


def test_scan_has_gradients() -> None:
    """Through autograd, beside the reference's own."""
    from rocmend.kernels.ops.recurrence.selective_scan.reference import selective_scan as reference

    dt, a = torch.rand(1, 6, 4) * 0.5, -torch.rand(4, 3)
    inputs = [torch.randn(1, 6, 4), dt, a, torch.randn(1, 6, 3), torch.randn(1, 6, 3), torch.randn(4)]
    found = []
    for function, tier in ((selective_scan, "triton"), (reference, "reference")):
        leaves = [one.clone().requires_grad_() for one in inputs]
        with select.prefer(tier):
            y, state = function(*leaves)
            (y.square().sum() + state.sum()).backward()
        found.append([leaf.grad for leaf in leaves])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_conv_has_gradients() -> None:
    inputs = [torch.randn(2, 6, 5), torch.randn(5, 3), torch.randn(5)]
    leaves = [one.clone().requires_grad_() for one in inputs]
    with select.prefer("triton"):
        y, _ = depthwise_conv1d(*leaves, activation="silu")
        y.square().sum().backward()
    twins = [one.clone().requires_grad_() for one in inputs]
    padded = torch.nn.functional.pad(twins[0].transpose(1, 2), (2, 0))
    wanted = torch.nn.functional.silu(torch.nn.functional.conv1d(padded, twins[1][:, None], twins[2], groups=5))
    wanted.square().sum().backward()
    for ours, theirs in zip(leaves, twins, strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-5)


def test_errors() -> None:
    x = torch.zeros(1, 4, 6)
    with pytest.raises(UsageError, match="expected weight"):
        depthwise_conv1d(x, torch.zeros(5, 4))
    with pytest.raises(UsageError, match="activation"):
        depthwise_conv1d(x, torch.zeros(6, 4), activation="relu")
    with pytest.raises(UsageError, match="expected a state"):
        depthwise_conv1d(x, torch.zeros(6, 4), state=torch.zeros(1, 4, 6))
    with pytest.raises(UsageError, match=r"expected b of shape \(1, 4, 2\)"):
        selective_scan(x, x, torch.zeros(6, 2), torch.zeros(1, 4, 3), torch.zeros(1, 4, 2))
    q, v = torch.zeros(1, 4, 2, 8), torch.zeros(1, 4, 3, 8)
    with pytest.raises(UsageError, match="multiples"):
        gated_delta(q, q, v, torch.zeros(1, 4, 3), torch.zeros(1, 4, 3))
    row = torch.zeros(1, 4, 2, 8, requires_grad=True)
    with pytest.raises(UsageError, match="without a gradient"):
        gated_delta(row, row, row, torch.zeros(1, 4, 2), torch.zeros(1, 4, 2))
    with pytest.raises(UsageError, match="without a gradient"):
        wkv7(*([row] * 6))
    with pytest.raises(UsageError, match="a_log"):
        ssd_scan(q, torch.zeros(1, 4, 2), torch.zeros(3), q, q, torch.zeros(2), torch.zeros(2))
