"""What an operation changes in its process is seen, so that the process is replaced."""

from __future__ import annotations

import functools
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from rocmend.probe import state  # noqa: E402  torch is looked for before

pytestmark = pytest.mark.cpu

SETTINGS = [
    ("backends.cudnn.benchmark", True, "convolution settings"),
    ("backends.cudnn.conv.fp32_precision", "ieee", "convolution settings"),
    ("backends.fp32_precision", "ieee", "matrix product settings"),
    ("backends.cuda.matmul.fp32_precision", "ieee", "matrix product settings"),
    ("backends.cuda.matmul.allow_fp16_reduced_precision_reduction", False, "matrix product settings"),
    ("backends.cuda.matmul.allow_bf16_reduced_precision_reduction", False, "matrix product settings"),
    ("backends.cuda.matmul.allow_fp16_accumulation", True, "matrix product settings"),
    ("backends.mkldnn.enabled", False, "oneDNN settings"),
    ("backends.mkldnn.matmul.fp32_precision", "ieee", "oneDNN settings"),
    ("utils.deterministic.fill_uninitialized_memory", False, "deterministic algorithms"),
]
CALLS = [
    ("backends.cuda.enable_cudnn_sdp(False)", "backends.cuda.enable_cudnn_sdp(True)", "attention settings"),
    ("backends.cuda.enable_flash_sdp(False)", "backends.cuda.enable_flash_sdp(True)", "attention settings"),
    (
        "backends.cuda.preferred_blas_library('ck')",
        "backends.cuda.preferred_blas_library('default')",
        "choice of libraries",
    ),
    (
        "backends.cuda.preferred_linalg_library('magma')",
        "backends.cuda.preferred_linalg_library('default')",
        "choice of libraries",
    ),
    ("autograd.set_detect_anomaly(True)", "autograd.set_detect_anomaly(False)", "anomaly mode"),
    (
        "use_deterministic_algorithms(True, warn_only=True)",
        "use_deterministic_algorithms(False)",
        "deterministic algorithms",
    ),
    ("set_default_dtype(torch.float64)", "set_default_dtype(torch.float32)", "default dtype"),
]


@pytest.mark.parametrize(("path", "value", "name"), SETTINGS)
def test_a_setting_that_was_changed_is_named(path: str, value: Any, name: str) -> None:
    holder_path, _, attribute = path.rpartition(".")
    try:
        holder: Any = functools.reduce(getattr, holder_path.split("."), torch)
        old = getattr(holder, attribute)
    except AttributeError:
        pytest.skip("this torch has no such setting")
    before = state.snapshot()
    assert state.changed(before) == []
    setattr(holder, attribute, value)
    try:
        assert name in state.changed(before)
    finally:
        setattr(holder, attribute, old)
    assert state.changed(before) == []


@pytest.mark.parametrize(("call", "back", "name"), CALLS)
@pytest.mark.filterwarnings("ignore")
def test_a_call_that_changes_a_setting_is_named(call: str, back: str, name: str) -> None:
    before = state.snapshot()
    try:
        exec(f"torch.{call}", {"torch": torch})  # noqa: S102  the text is above
    except (AttributeError, RuntimeError) as error:
        pytest.skip(f"not in this build of torch: {error}")
    try:
        assert name in state.changed(before)
    finally:
        exec(f"torch.{back}", {"torch": torch})  # noqa: S102
    assert name not in state.changed(before)
