"""What an operation can change in its process that would reach the next one: seen by comparing before and after.

Nothing is put back: what one list forgets, no list restores. A process that was changed is replaced.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


_OF_TORCH = {"TORCHINDUCTOR_CACHE_DIR"}
"""Variables that torch sets when it imports a part of itself (its compiler, which every optimizer imports)."""


_SETTINGS = {
    "default dtype": ("get_default_dtype",),
    "default device": ("get_default_device",),
    "number of threads": ("get_num_threads", "get_num_interop_threads"),
    "gradient mode": ("is_grad_enabled", "is_inference_mode_enabled"),
    "anomaly mode": ("is_anomaly_enabled", "is_anomaly_check_nan_enabled"),
    "deterministic algorithms": (
        "are_deterministic_algorithms_enabled",
        "is_deterministic_algorithms_warn_only_enabled",
        "utils.deterministic.fill_uninitialized_memory",
    ),
    "convolution settings": (
        "backends.cudnn.enabled",
        "backends.cudnn.deterministic",
        "backends.cudnn.benchmark",
        "backends.cudnn.benchmark_limit",
        "backends.cudnn.allow_tf32",
        "backends.cudnn.conv.fp32_precision",
        "backends.cudnn.rnn.fp32_precision",
    ),
    "matrix product settings": (
        "get_float32_matmul_precision",
        "backends.fp32_precision",
        "backends.cuda.matmul.allow_tf32",
        "backends.cuda.matmul.fp32_precision",
        "backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
        "backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
        "backends.cuda.matmul.allow_fp16_accumulation",
    ),
    "oneDNN settings": (
        "backends.mkldnn.enabled",
        "backends.mkldnn.deterministic",
        "backends.mkldnn.fp32_precision",
        "backends.mkldnn.matmul.fp32_precision",
        "backends.mkldnn.conv.fp32_precision",
        "backends.mkldnn.rnn.fp32_precision",
    ),
    "choice of libraries": (
        "backends.cuda.preferred_blas_library",
        "backends.cuda.preferred_linalg_library",
        "backends.cuda.preferred_rocm_fa_library",
    ),
    "attention settings": (
        "backends.cuda.flash_sdp_enabled",
        "backends.cuda.mem_efficient_sdp_enabled",
        "backends.cuda.math_sdp_enabled",
        "backends.cuda.cudnn_sdp_enabled",
        "backends.cuda.fp16_bf16_reduction_math_sdp_allowed",
    ),
}
"""Settings of torch and the functions that return them, below ``torch``. Not every torch has all of them."""


def seed_all(seed: int) -> None:
    """Seed every generator that an operation may draw from."""
    import torch

    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % (1 << 32))


def snapshot() -> dict[str, Any]:
    """Return the state of this process that a later operation would meet, by what a person calls it."""
    import torch

    asked: dict[str, Callable[[], Any]] = {
        "environment variables": lambda: {name: text for name, text in os.environ.items() if name not in _OF_TORCH},
        "working folder": os.getcwd,
        "file mode mask": _umask,
        "standard streams": lambda: [_descriptor(number) for number in range(3)] + [id(sys.stdout), id(sys.stderr)],
        "signal handlers": lambda: [signal.getsignal(number) for number in sorted(signal.valid_signals())],
        "resource limits": lambda: [resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE)],
        "processors allowed": lambda: sorted(os.sched_getaffinity(0)),
        "Python threads": lambda: sorted(thread.ident or 0 for thread in threading.enumerate()),
        "module search path": lambda: list(sys.path),
        "warning filters": lambda: list(warnings.filters),
        "autocast": lambda: (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
        "handling of denormal numbers": lambda: bool((torch.tensor([1e-39]) * 1.0 == 0).item()),
    }
    settings = {name: [_setting(torch, path) for path in paths] for name, paths in _SETTINGS.items()}
    return {name: _answer(ask) for name, ask in asked.items()} | settings


def _setting(torch: Any, path: str) -> Any:
    """Return a setting; None where this torch has no such one."""

    def ask() -> Any:
        found = torch
        for name in path.split("."):
            found = getattr(found, name)
        return found() if callable(found) else found

    return _answer(ask)


def _answer(ask: Callable[[], Any]) -> Any:
    """Return what was asked for; None where this torch cannot say it, or it is gone."""
    with contextlib.suppress(AttributeError, TypeError, RuntimeError, OSError):
        return ask()
    return None


def changed(before: dict[str, Any]) -> list[str]:
    """Return what is not as it was, by name."""
    now = snapshot()
    return [name for name, value in before.items() if now[name] != value]


def tidied(device: torch.device) -> str:
    """Free what is no longer used and try the device out; return what is wrong with it, or nothing."""
    import torch

    gc.collect()
    if device.type != "cuda":
        return ""
    try:
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
        if torch.cuda.current_stream(device) != torch.cuda.default_stream(device):
            return "current stream"
        if int(torch.arange(1000, device=device).sum()) != 499_500:
            return "results of a sum"
    except RuntimeError as error:
        return f"GPU context ({str(error).splitlines()[0]})"
    return ""


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _descriptor(number: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino
