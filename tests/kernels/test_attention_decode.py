"""Attention decode: options, errors, plans, and what MLX gives."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.core.errors import UsageError
from rocmend.kernels import attention_decode, executor, quantized_attention, select
from rocmend.kernels import target as targets
from rocmend.kernels.ops.attention.attention_decode import Problem, host

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
GOLDEN = tomllib.loads((Path(__file__).parent / "golden" / "attention_decode.toml").read_text(encoding="utf-8"))


def _pattern(*shape: int, step: float = 0.37) -> Any:
    """Return numbers that the golden values' program makes as well."""
    count = 1
    for size in shape:
        count *= size
    return torch.sin(torch.arange(count, dtype=torch.float64) * step).float().reshape(shape)


@pytest.mark.parametrize("name", sorted(GOLDEN["decode"]))
def test_as_mlx(name: str) -> None:
    q, k, v = _pattern(1, 4, 2, 32), _pattern(1, 2, 11, 32, step=0.61), _pattern(1, 2, 11, 32, step=1.13)
    mask = torch.tensor([[n % 3 > 0 for n in range(11)], [False] * 11])
    options = {
        "plain": {},
        "causal": {"mask": "causal"},
        "boolean": {"mask": mask},
        "additive": {"mask": _pattern(2, 11, step=0.9)},
        "sinks": {"sinks": torch.tensor([0.5, -1.0, 2.0, 0.0]), "mask": mask},
    }[name]
    with select.prefer("triton"):
        out = attention_decode(q, k, v, scale=0.3, **options)
    wanted = torch.tensor(GOLDEN["decode"][name])
    assert torch.allclose(out.flatten()[:: GOLDEN["every"]], wanted, rtol=2e-5, atol=2e-6)


def _words(codes: Any, bits: int) -> Any:
    each = 32 // bits
    shifts = torch.arange(each, dtype=torch.int64) * bits
    packed = (codes.reshape(*codes.shape[:-1], -1, each) << shifts).sum(-1)
    return torch.where(packed >= 1 << 31, packed - (1 << 32), packed).to(torch.int32)


@pytest.mark.parametrize("bits", [4, 8])
def test_quantized_as_mlx(bits: int) -> None:
    codes = (torch.arange(2 * 9 * 64) * 7 % (1 << bits)).reshape(1, 2, 9, 64)
    scales, biases = _pattern(1, 2, 9, 2) * 0.1 / (1 << bits) * 16, _pattern(1, 2, 9, 2, step=0.7)
    cache = (_words(codes, bits), scales, biases)
    with select.prefer("triton"):
        out = quantized_attention(
            _pattern(1, 4, 3, 64), cache, cache, scale=0.2, mask="causal", group_size=32, bits=bits
        )
    wanted = torch.tensor(GOLDEN["quantized"][str(bits)])
    assert torch.allclose(out.flatten()[:: GOLDEN["every"]], wanted, rtol=5e-5, atol=5e-6)


def test_lengths_are_read_by_the_kernel() -> None:
    """The same buffers and launches, another length: what a captured graph does."""
    q, k, v = torch.randn(2, 4, 1, 64), torch.randn(2, 2, 200, 64), torch.randn(2, 2, 200, 64)
    for length in (1, 64, 65, 200):
        lengths = torch.full((2,), length, dtype=torch.int32)
        with select.prefer("triton"):
            out = attention_decode(q, k, v, scale=0.125, lengths=lengths)
            cut = attention_decode(q, k[:, :, :length], v[:, :, :length], scale=0.125)
        assert torch.allclose(out, cut, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dim", [1, 7, 16, 40, 64, 80, 96, 112, 128, 192, 256, 576])
def test_head_dimensions_are_covered(dim: int) -> None:
    first, second = host.cut_dim(dim)
    assert first >= 16
    assert first + second >= dim
    assert all(part == 0 or part & (part - 1) == 0 for part in (first, second))


def test_splits_fill_the_device_and_no_more() -> None:
    target = targets.by_name("sm90", compute_units=132)
    long = host.plan("split", Problem("bfloat16", 1, 32, 8, 1, 32768, 128, 128), target, 32768)
    assert 8 * long.splits <= 132 * 4
    assert long.splits > 8
    assert host.plan("split", Problem("bfloat16", 1, 32, 8, 1, 64, 128, 128), target, 64).splits == 1


def _launched(call: Any) -> list[executor.Launch]:
    recorder = executor.Recorder(targets.by_name("sm90", compute_units=132))
    with executor.using(recorder), select.prefer("triton"):
        call()
    return recorder.launches


@pytest.mark.parametrize("dim", [64, 128, 256])
@pytest.mark.parametrize("lengths", [False, True])
def test_what_is_launched_early_waits(dim: int, *, lengths: bool) -> None:
    """The merging kernel launches what is behind it at once only if the one in front of it has waited."""
    q, (k, v) = torch.zeros(1, 16, 1, dim).half(), torch.zeros(2, 1, 2, 8192, dim).half()
    more = {"lengths": torch.tensor([8000])} if lengths else {}
    split, *merge = [one.constants for one in _launched(lambda: attention_decode(q, k, v, scale=0.1, **more))]
    assert split["EARLY"]
    assert (split["AHEAD"] > 0) == (not lengths)  # where a part's keys lie is not known before
    assert split["AHEAD_VALUES"] <= split["AHEAD"]
    assert len(merge) == (0 if split["LAST"] else 1)
    assert split["LAST"] == (dim == 64)  # one launch where there is little to merge
    assert all(one["PDL"] and one["FIRST"] and split["PDL"] for one in merge)
    words, scales = torch.zeros(1, 2, 8192, dim // 8, dtype=torch.int32), torch.zeros(1, 2, 8192, dim // 64).half()
    cache = (words, scales, scales)
    others = _launched(lambda: quantized_attention(q, cache, cache, scale=0.1, bits=4, group_size=64, **more))
    assert len(others) == 2
    assert not others[1].constants["FIRST"]  # these launch it before they wait


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": (1, 2, 5, 32)}, "one head dimension"),
        ({"k": (1, 3, 5, 64), "v": (1, 3, 5, 64)}, "multiple of KV"),
        ({"mask": "upper"}, "causal"),
        ({"mask": torch.zeros(3, 5)}, "broadcasts"),
        ({"mask": torch.zeros(5, dtype=torch.int32)}, "boolean or floating"),
        ({"sinks": torch.zeros(3)}, "sinks"),
        ({"soft_cap": 0.0}, "soft_cap"),
        ({"window": 0}, "window"),
        ({"lengths": torch.zeros(2, dtype=torch.int32)}, "lengths"),
        ({"lengths": torch.zeros(1)}, "lengths"),
    ],
)
def test_errors(change: dict[str, object], words: str) -> None:
    shapes = {"q": (1, 4, 1, 64), "k": (1, 2, 5, 64), "v": (1, 2, 5, 64)}
    shapes |= {name: value for name, value in change.items() if name in shapes}  # type: ignore[misc]  # shapes only
    options = {name: value for name, value in change.items() if name not in shapes}
    with pytest.raises(UsageError, match=words):
        attention_decode(*(torch.zeros(shape) for shape in shapes.values()), scale=1.0, **options)


def test_no_backward() -> None:
    q = torch.zeros(1, 1, 1, 16, requires_grad=True)
    with pytest.raises(UsageError, match="without a gradient"):
        attention_decode(q, torch.zeros(1, 1, 3, 16), torch.zeros(1, 1, 3, 16), scale=1.0)


def test_types_must_agree() -> None:
    with pytest.raises(UsageError, match="one type"):
        attention_decode(torch.zeros(1, 1, 1, 16), torch.zeros(1, 1, 3, 16).half(), torch.zeros(1, 1, 3, 16), scale=1.0)


def test_quantized_errors() -> None:
    q = torch.zeros(1, 2, 1, 64)
    good = (torch.zeros(1, 1, 4, 16, dtype=torch.int32), torch.zeros(1, 1, 4, 1), torch.zeros(1, 1, 4, 1))
    assert quantized_attention(q, good, good, scale=1.0, bits=8).shape == (1, 2, 1, 64)
    with pytest.raises(UsageError, match="bits"):
        quantized_attention(q, good, good, scale=1.0, bits=7)
    with pytest.raises(UsageError, match="codes of 4 bits"):
        quantized_attention(q, good, good, scale=1.0, bits=4)
    with pytest.raises(UsageError, match="int32 or uint32"):
        quantized_attention(q, (good[0].long(), *good[1:]), good, scale=1.0)
