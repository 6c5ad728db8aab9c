"""Attention with flash-attn's interface, against products in float64 that are written out one query at a time."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from rocmend.port.support import attention  # noqa: E402

pytestmark = pytest.mark.cpu

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    attention._chosen.clear()
    attention.prefer(None)
    yield
    attention.prefer(None)


def expected(q: Any, k: Any, v: Any, **options: Any) -> Any:
    """One query after another, in float64: flash-attn's documentation put into loops."""
    q, k, v = (tensor.double() for tensor in (q, k, v))
    batch, queries, heads, size = q.shape
    keys, groups = k.shape[1], heads // k.shape[2]
    scale = options.get("softmax_scale") or 1 / math.sqrt(size)
    left, right = options.get("window_size", (-1, -1))
    slopes = options.get("alibi_slopes")
    cap = options.get("softcap", 0.0)
    out = torch.zeros(batch, queries, heads, v.shape[-1], dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            for i in range(queries):
                own = i + keys - queries
                seen = [
                    j
                    for j in range(keys)
                    if not (options.get("causal") and j > own)
                    and not (left >= 0 and j < own - left)
                    and not (right >= 0 and j > own + right)
                ]
                if not seen:
                    continue
                products = torch.stack([q[b, i, h] @ k[b, j, h // groups] for j in seen]) * scale
                if cap:
                    products = cap * torch.tanh(products / cap)
                if slopes is not None:
                    slope = slopes[h] if slopes.dim() == 1 else slopes[b, h]
                    products = products - slope.double() * torch.tensor([abs(j - own) for j in seen])
                out[b, i, h] = products.softmax(0) @ torch.stack([v[b, j, h // groups] for j in seen])
    return out


def drawn(shapes: tuple[tuple[int, ...], ...], dtype: Any, seed: int = 0) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 7, 2, 8), (2, 7, 2, 8), {}),
    "causal": ((1, 9, 2, 8), (1, 9, 2, 8), {"causal": True}),
    "causal, fewer queries": ((2, 3, 2, 8), (2, 8, 2, 8), {"causal": True}),
    "causal, fewer keys": ((1, 8, 2, 8), (1, 3, 2, 8), {"causal": True}),
    "one query": ((2, 1, 4, 8), (2, 11, 2, 8), {"causal": True}),
    "grouped heads": ((1, 5, 6, 8), (1, 5, 2, 8), {"causal": True}),
    "window": ((1, 10, 2, 8), (1, 10, 2, 8), {"window_size": (3, 2)}),
    "causal window": ((1, 6, 2, 8), (1, 10, 2, 8), {"causal": True, "window_size": (4, 0)}),
    "left window alone": ((1, 6, 2, 8), (1, 9, 2, 8), {"window_size": (2, -1)}),
    "scale": ((1, 6, 2, 8), (1, 6, 2, 8), {"softmax_scale": 0.7}),
    "softcap": ((1, 6, 2, 8), (1, 6, 2, 8), {"softcap": 1.5, "causal": True}),
    "slopes": ((2, 6, 2, 8), (2, 9, 2, 8), {"alibi_slopes": [0.25, 0.5], "causal": True}),
    "slopes of each sequence": ((2, 4, 2, 8), (2, 4, 2, 8), {"alibi_slopes": [[0.25, 0.5], [1.0, 2.0]]}),
}


@pytest.mark.parametrize("tier", ["sdpa", "eager", None])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_against_loops(name: str, dtype: Any, tier: str | None) -> None:
    shape_q, shape_k, options = CASES[name]
    options = dict(options)
    if "alibi_slopes" in options:
        options["alibi_slopes"] = torch.tensor(options["alibi_slopes"])
    q, k, v = drawn((shape_q, shape_k, shape_k), dtype)
    attention.prefer(tier)
    if tier == "sdpa" and "softcap" in options:
        with pytest.raises(NotImplementedError, match="softcap"):
            attention.flash_attn_func(q, k, v, **options)
        return
    out = attention.flash_attn_func(q, k, v, **options)
    assert out.dtype is dtype
    assert out.shape == q.shape
    torch.testing.assert_close(out.double(), expected(q, k, v, **options), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("tier", ["sdpa", "eager"])
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"causal": True, "window_size": (2, 0)}], ids=str)
def test_packed_sequences(tier: str, options: dict[str, Any]) -> None:
    queries, keys = [3, 1, 0, 5], [3, 6, 2, 4]
    q, k, v = drawn(((sum(queries), 4, 8), (sum(keys), 2, 8), (sum(keys), 2, 8)), torch.float64)
    cu_q = torch.tensor([0, *queries]).cumsum(0).to(torch.int32)
    cu_k = torch.tensor([0, *keys]).cumsum(0).to(torch.int32)
    attention.prefer(tier)
    out = attention.flash_attn_varlen_func(q, k, v, cu_q, cu_k, max(queries), max(keys), **options)
    for n in range(len(queries)):
        rows, columns = slice(cu_q[n], cu_q[n + 1]), slice(cu_k[n], cu_k[n + 1])
        alone = expected(q[None, rows], k[None, columns], v[None, columns], **options)[0]
        torch.testing.assert_close(out[rows], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("tier", ["sdpa", "eager"])
def test_gradients_are_those_of_the_loops(tier: str) -> None:
    q, k, v = (t.requires_grad_() for t in drawn(((1, 5, 2, 8), (1, 3, 2, 8), (1, 3, 2, 8)), torch.float64))
    attention.prefer(tier)
    grads = torch.autograd.grad(attention.flash_attn_func(q, k, v, causal=True).square().sum(), (q, k, v))
    wanted = torch.autograd.grad(expected(q, k, v, causal=True).square().sum(), (q, k, v))
    for one, other in zip(grads, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("tier", ["sdpa", "eager"])
def test_dropout_keeps_the_mean(tier: str) -> None:
    torch.manual_seed(0)
    q, k = torch.zeros(64, 4, 2, 8), torch.zeros(64, 64, 2, 8)
    v = torch.ones(64, 64, 2, 8)
    attention.prefer(tier)
    out = attention.flash_attn_func(q, k, v, dropout_p=0.5)
    assert abs(float(out.mean()) - 1.0) < 0.05
    assert float(out.std()) > 0.05
    torch.testing.assert_close(attention.flash_attn_func(q, k, v), torch.ones_like(q))


def test_a_tier_is_chosen_once_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    q, k, v = drawn(((1, 4, 2, 8),) * 3, torch.float32)
    with caplog.at_level(logging.INFO, attention.__name__):
        attention.flash_attn_func(q, k, v)
        attention.flash_attn_func(q, k, v)
        attention.flash_attn_func(q, k, v, softcap=1.0)
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == [
        "attention in torch.float32 on cpu: sdpa",
        "attention in torch.float32 on cpu: eager",
    ]


def test_the_vendor_is_given_what_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []
    vendor = ModuleType("aiter")

    def flash_attn_func(q: Any, *_: Any, **named: Any) -> Any:
        calls.append(named)
        return q

    vendor.flash_attn_func = flash_attn_func  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "aiter", vendor)
    q = torch.empty(1, 4, 2, 8, dtype=torch.float16, device="meta")
    options = attention._Options(0.0, 0.5, True, (-1, -1), 0.0, None, False)
    with pytest.raises(NotImplementedError, match="GPU"):
        attention._by_vendor("flash_attn_func", (q, q, q), options, q)

    class OnGpu:
        device = torch.device("cuda")
        dtype = torch.float16

    attention._by_vendor("flash_attn_func", (q, q, q), options, OnGpu())  # type: ignore[arg-type]
    window = attention._Options(0.1, 0.5, True, (7, 0), 2.0, None, True)
    attention._by_vendor("flash_attn_func", (q, q, q), window, OnGpu())  # type: ignore[arg-type]
    assert calls == [
        {"dropout_p": 0.0, "softmax_scale": 0.5, "causal": True},
        {
            "dropout_p": 0.1,
            "softmax_scale": 0.5,
            "causal": True,
            "window_size": (7, 0),
            "softcap": 2.0,
            "deterministic": True,
        },
    ]


def test_what_does_not_fit_is_refused() -> None:
    q, k, v = drawn(((1, 4, 3, 8), (1, 4, 2, 8), (1, 4, 2, 8)), torch.float32)
    with pytest.raises(ValueError, match="not a multiple"):
        attention.flash_attn_func(q, k, v)
    with pytest.raises(ValueError, match="do not fit"):
        attention.flash_attn_func(q, k, v[:, :3])
    with pytest.raises(NotImplementedError, match="probabilities"):
        attention.flash_attn_func(k, k, v, return_attn_probs=True)
    with pytest.raises(ValueError, match="expected vendor"):
        attention.prefer("cudnn")


def test_packed_forms_are_the_plain_ones() -> None:
    q, k, v = drawn(((2, 5, 4, 8), (2, 5, 4, 8), (2, 5, 4, 8)), torch.float64)
    plain = attention.flash_attn_func(q, k, v, 0.0, 0.3, True)
    assert torch.equal(attention.flash_attn_qkvpacked_func(torch.stack([q, k, v], 2), 0.0, 0.3, True), plain)
    packed = attention.flash_attn_kvpacked_func(q, torch.stack([k, v], 2), softmax_scale=0.3, causal=True)
    assert torch.equal(packed, plain)
    lengths = torch.tensor([0, 5, 10], dtype=torch.int32)
    flat = [tensor.flatten(0, 1) for tensor in (q, k, v)]
    assert torch.allclose(
        attention.flash_attn_varlen_qkvpacked_func(torch.stack(flat, 1), lengths, 5, 0.0, 0.3, True),
        plain.flatten(0, 1),
    )
    kv = torch.stack(flat[1:], 1)
    assert torch.allclose(
        attention.flash_attn_varlen_kvpacked_func(flat[0], kv, lengths, lengths, 5, 5, 0.0, 0.3, True),
        plain.flatten(0, 1),
    )
    assert attention.flash_attn.flash_attn_func is attention.flash_attn_func


@pytest.mark.slow
@pytest.mark.parametrize("softcap", [0.0, 2.0])
def test_a_compiled_function_has_one_graph(softcap: float) -> None:
    """flash-attn's functions are operators, which ``fullgraph`` takes."""
    q, k, v = drawn(((2, 5, 4, 8), (2, 7, 2, 8), (2, 7, 2, 8)), torch.float64)
    compiled = torch.compile(attention.flash_attn_func, fullgraph=True, backend="eager")
    out = compiled(q, k, v, causal=True, softcap=softcap)
    assert (out - expected(q, k, v, causal=True, softcap=softcap)).abs().max() < 1e-12


def test_a_tier_that_served_before_and_fails_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = drawn(((1, 5, 2, 8),) * 3, torch.float64)
    wanted = attention.flash_attn_func(q, k, v)

    def fails(*_: Any) -> Any:
        raise RuntimeError("not this length")

    monkeypatch.setattr(attention, "_sdpa", fails)
    assert torch.allclose(attention.flash_attn_func(q, k, v), wanted)
