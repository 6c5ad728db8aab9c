"""Everything here needs PyTorch, keeps outcomes in a folder of its own, and must leave nothing patched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    import torch

    from rocmend.fallbacks import attend, conv

    monkeypatch.setenv("ROCMEND_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ROCMEND_SAFE_CONV", raising=False)
    monkeypatch.delenv("ROCMEND_SAFE_ATTENTION", raising=False)
    conv.choices.forget()
    attend.choices.forget()
    torch.manual_seed(0)
    yield tmp_path / "home"
    conv.choices.forget()
    attend.choices.forget()
    assert not conv.SafeConv.active, "a test left convolutions routed"
    assert not attend.SafeAttention.active, "a test left attention routed"


@pytest.fixture
def poisoned() -> Iterator[None]:
    """Fresh memory holds NaN."""
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(before)
