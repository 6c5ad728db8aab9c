"""Convolutions of float32 are computed in float32, and the user's settings stay as they were."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels.ops.conv.conv.vendor import in_full_precision

pytestmark = pytest.mark.cpu


def test_settings_are_as_they_were_afterwards() -> None:
    if not hasattr(torch.backends.cudnn, "conv"):
        pytest.skip("torch before 2.9 has one setting for all of cuDNN")
    before = torch.backends.cudnn.conv.fp32_precision
    with in_full_precision(torch.float16):
        assert torch.backends.cudnn.conv.fp32_precision == before
    with in_full_precision(torch.float32):
        assert torch.backends.cudnn.conv.fp32_precision == "ieee"
    with pytest.raises(RuntimeError), in_full_precision(torch.float32):
        torch.nn.functional.conv1d(torch.zeros(1), torch.zeros(1))
    assert torch.backends.cudnn.conv.fp32_precision == before
    assert isinstance(torch.backends.cudnn.allow_tf32, bool)  # readable: both settings agree again
