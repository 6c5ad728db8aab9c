"""Three tiers of attention: each right, the first that works is taken, and said."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from rocmend.core.errors import UsageError  # noqa: E402
from rocmend.fallbacks import attend, attention, safe_attention  # noqa: E402
from rocmend.fallbacks.attention import eager, sdpa, vendor_name  # noqa: E402
from rocmend.fallbacks.outcomes import Outcome  # noqa: E402

pytestmark = pytest.mark.cpu
F = torch.nn.functional

FAKE_VENDOR = """
import torch
def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False):
    q, k, v = (t.transpose(1, 2).float() for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    scores = q @ k.transpose(-2, -1) * (softmax_scale or q.shape[-1] ** -0.5)
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    return (scores.softmax(-1) @ v).to(torch.float16).transpose(1, 2) * FACTOR
FACTOR = {factor}
"""


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["none", "causal", "boolean", "added"]),
    st.sampled_from([None, 0.3]),
)
def test_the_eager_tier_equals_pytorchs(
    lengths: tuple[int, int], key_heads: int, kind: str, scale: float | None
) -> None:
    q = torch.randn(2, 4, lengths[0], 8, dtype=torch.float64)
    k, v = (torch.randn(2, key_heads, lengths[1], 8, dtype=torch.float64) for _ in range(2))
    masks = {"boolean": torch.rand(lengths) < 0.8, "added": torch.randn(lengths, dtype=torch.float64)}
    mask = masks.get(kind)
    if mask is not None and kind == "boolean":
        mask[:, 0] = True
    options: dict[str, Any] = {
        "attn_mask": mask,
        "is_causal": kind == "causal",
        "scale": scale,
        "enable_gqa": key_heads != 4,
    }
    torch.testing.assert_close(eager(q, k, v, **options), F.scaled_dot_product_attention(q, k, v, **options))


def test_a_query_that_sees_no_key_gives_zeros_and_no_nan() -> None:
    q = torch.randn(1, 1, 3, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, True], [False, False, False], [True, False, False]])
    found = eager(q, q, q, mask)
    assert found[0, 0, 1].abs().max() == 0
    found.sum().backward()
    assert q.grad is not None
    assert bool(q.grad.isfinite().all())


@pytest.mark.slow
def test_the_eager_tiers_gradient() -> None:
    q, k, v = (torch.randn(1, 2, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    with safe_attention("eager", device="cpu"):
        assert torch.autograd.gradcheck(lambda *t: F.scaled_dot_product_attention(*t, is_causal=True), (q, k, v))


@pytest.mark.parametrize("mode", ["eager", "sdpa"])
def test_every_caller_comes_through_and_nothing_stays(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    plain = {"eager": eager, "sdpa": sdpa}[mode]
    monkeypatch.setattr(attend, mode, lambda *a, **k: seen.append(1) or plain(*a, **k))  # type: ignore[func-returns-value]
    q = torch.randn(1, 4, 6, 8)
    expected = F.scaled_dot_product_attention(q, q, q)
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    with safe_attention(mode, device="cpu"):
        torch.testing.assert_close(F.scaled_dot_product_attention(q, q, q), expected)
        with torch.inference_mode():
            F.scaled_dot_product_attention(q, q, q)
        layer(q[0], q[0], q[0], need_weights=False)
    assert len(seen) == 3
    F.scaled_dot_product_attention(q, q, q)
    assert len(seen) == 3


def test_sdpa_is_taken_where_it_works_and_eager_where_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    q = torch.randn(1, 4, 6, 8)
    verdicts = {"sdpa": "wrong-output", "eager": "pass"}
    monkeypatch.setattr(attend, "try_path", lambda _d, _s, path: Outcome(path, verdicts[path], "said so"))
    attention(q, q, q)
    attention(q, q, q)
    assert attend.choices.all()[0].path == "eager"
    assert caplog.text.count("sdpa does not work here") == 1
    attend.choices.forget()
    verdicts["sdpa"] = "pass"
    attention(q, q, q)
    assert attend.choices.all()[0].path == "sdpa"


@pytest.fixture(params=["1.0", "1.1"])
def fake_vendor(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "flash_attn.py").write_text(FAKE_VENDOR.replace("{factor}", request.param))
    monkeypatch.syspath_prepend(tmp_path)
    yield request.param == "1.0"
    sys.modules.pop("flash_attn", None)


@pytest.mark.slow
def test_a_vendors_library_is_taken_only_where_its_child_is_right(fake_vendor: bool) -> None:
    assert vendor_name() == "flash_attn"
    q, k = torch.randn(2, 4, 7, 16).half(), torch.randn(2, 2, 7, 16).half()
    with safe_attention(device="cpu"):
        found = F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)
    chosen = attend.choices.all()[0]
    assert chosen.path == ("vendor" if fake_vendor else "sdpa"), str(chosen)
    assert chosen.outcomes[0].verdict == ("pass" if fake_vendor else "wrong-output")
    expected = F.scaled_dot_product_attention(q.double(), k.double(), k.double(), is_causal=True, enable_gqa=True)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=5e-3)


@pytest.mark.parametrize("fake_vendor", ["1.1"], indirect=True)
def test_what_a_vendor_cannot_express_goes_on(fake_vendor: bool) -> None:
    assert not fake_vendor
    q, k = torch.randn(1, 2, 3, 8).half(), torch.randn(1, 2, 5, 8).half()
    found = attention(q, k, k, is_causal=True, mode="vendor")
    torch.testing.assert_close(found, F.scaled_dot_product_attention(q, k, k, is_causal=True))


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(UsageError, match="quick"):
        safe_attention("quick")
