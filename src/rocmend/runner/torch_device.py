"""Torch and its device, as a child process meets them: started, named, and what its exceptions stand for.

Standard library and torch alone: it runs in whatever environment holds the user's torch.
"""

from __future__ import annotations

import contextlib
import gc
import os
import traceback
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_UNSUPPORTED = (
    "not implemented for",
    "is not supported",
    "not supported on",
    "unsupported",
    "no available kernel",
    "not currently supported",
    "only supported",
    "requires compute capability",
    "no kernel image is available",
    "invalid device function",
    "cannot find a working triton installation",
)
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


class UnsupportedError(Exception):
    """What is tried is not offered here; the message says why."""


def begun(device: str = "auto") -> dict[str, Any]:
    """Import torch, use the device for the first time and return what both are, as a JSON value.

    Args:
        device: ``auto``, ``cpu``, ``cuda`` or a device such as ``cuda:1``.

    Returns:
        ``error`` (empty where all is well), ``device``, ``device_name``, ``gfx_target``, ``versions``.
    """
    from rocmend.kernels.triton_cache import use_trusted_cache
    from rocmend.runner.child import phase

    use_trusted_cache()
    phase("import")
    warnings.filterwarnings("ignore", "Failed to initialize NumPy")  # probes need none; torch says it on import
    try:
        import torch
    except (ImportError, OSError) as error:
        return {"error": f"torch cannot be imported: {error}", "trace": traceback.format_exc()}
    phase("context")
    try:
        where = device_of(device)
        torch.zeros(1, device=where)
        synchronize(where)
    except (UnsupportedError, RuntimeError) as error:
        return {"error": str(error).strip(), "versions": versions()}
    plain_arithmetic()
    gc.freeze()  # torch's own objects stay: collecting after each probe need not look at them
    torch.set_warn_always(True)  # a warning that is given once in a process would be missed by all but the first probe
    return {
        "error": "",
        "device": str(where),
        "device_name": device_name(where),
        "gfx_target": gfx_target(where),
        "versions": versions(),
    }


def outcome_of(error: Exception) -> dict[str, Any]:
    """Return the outcome that an exception stands for."""
    text = str(error).strip()
    lower = text.lower()
    reason = f"{type(error).__name__}: {text.splitlines()[0] if text else 'no message'}"
    trace = "".join(traceback.format_exception(error))[-8000:]
    if isinstance(error, MemoryError) or any(words in lower for words in _OUT_OF_MEMORY):
        kind = "oom"
    elif isinstance(error, UnsupportedError):
        return {"outcome": "unsupported", "reason": text, "trace": trace}
    elif isinstance(error, UnsupportedError):
        kind, reason = "unsupported", text
    elif isinstance(error, NotImplementedError) or any(words in lower for words in _UNSUPPORTED):
        kind = "unsupported"
    else:
        kind = "error"
    return {"outcome": kind, "reason": reason, "trace": trace}


def device_of(asked: str) -> torch.device:
    """Return the device asked for.

    Raises:
        UnsupportedError: It is not there.
    """
    import torch

    if asked == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device("cuda" if asked == "hip" else asked)
    except RuntimeError as error:
        raise UnsupportedError(f"torch knows no device called {asked!r}: {error}") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise UnsupportedError(f"torch {torch.__version__} sees {count or 'no'} GPUs here, {asked} was asked for")
    return device


def make_current(device: torch.device) -> None:
    """Make a GPU the current one: streams and graphs that name none belong to it."""
    import torch

    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)


def plain_arithmetic() -> None:
    """Keep float32 in float32: TF32 is another dtype in disguise, and its error would look like a fault."""
    import torch

    torch.set_float32_matmul_precision("highest")
    with contextlib.suppress(AttributeError, RuntimeError):
        torch.backends.cudnn.allow_tf32 = False


def device_name(device: torch.device) -> str:
    """Return what the device calls itself."""
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else _cpu_name()


def _cpu_name() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:  # noqa: PTH123
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return os.uname().machine


def gfx_target(device: torch.device) -> str:
    """Return the gfx target of an AMD GPU, ``sm_90`` or the like of an NVIDIA one, ``cpu`` otherwise."""
    import torch

    if device.type != "cuda":
        return device.type
    properties = torch.cuda.get_device_properties(device)
    name = str(getattr(properties, "gcnArchName", ""))
    if torch.version.hip and name:
        return name.partition(":")[0]
    return f"sm_{properties.major}{properties.minor}"


def versions() -> dict[str, str]:
    """Return the versions of what a result depends on."""
    import platform
    from importlib import metadata

    import torch

    found = {"python": platform.python_version(), "torch": str(torch.__version__)}
    if torch.version.hip:
        found["hip"] = str(torch.version.hip)
    if torch.version.cuda:
        found["cuda"] = str(torch.version.cuda)
    with contextlib.suppress(metadata.PackageNotFoundError):
        found["triton"] = metadata.version("triton")
    return found


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what was asked of it; errors of its kernels are raised here."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
