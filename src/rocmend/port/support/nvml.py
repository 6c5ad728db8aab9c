"""What programs most often ask NVML, answered by amdsmi.

Functions, constants and fields are named as in pynvml, in its units: bytes, milliwatts, degrees Celsius, per cent.
amdsmi comes with ROCm (``/opt/rocm/share/amd_smi``) and is on PyPI; it is imported by ``nvmlInit``.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

NVML_SUCCESS = 0
NVML_ERROR_UNKNOWN = 999
NVML_TEMPERATURE_GPU = 0

_amdsmi: Any = None


class _Memory(NamedTuple):
    total: int
    free: int
    used: int


class _Utilization(NamedTuple):
    gpu: int
    memory: int


class NVMLError(Exception):
    """amdsmi is not there, or did not answer."""

    def __init__(self, value: object = NVML_ERROR_UNKNOWN) -> None:
        super().__init__(value)
        self.value = value


def nvmlInit() -> None:
    """Import and start amdsmi."""
    global _amdsmi
    try:
        import amdsmi
    except (ImportError, OSError, KeyError) as error:
        raise NVMLError(f"amdsmi cannot be imported: {error}") from error
    try:
        amdsmi.amdsmi_init()
    except amdsmi.AmdSmiException as error:
        raise NVMLError(f"amdsmi does not start: {error}") from error
    _amdsmi = amdsmi


def nvmlInitWithFlags(flags: int) -> None:
    """Import and start amdsmi; the flags are NVML's and mean nothing here."""
    nvmlInit()


def nvmlShutdown() -> None:
    """Stop amdsmi."""
    global _amdsmi
    _ask("amdsmi_shut_down")
    _amdsmi = None


def nvmlSystemGetDriverVersion() -> str:
    """Return the version of the kernel's driver, as the first GPU gives it."""
    return str(_ask("amdsmi_get_gpu_driver_info", nvmlDeviceGetHandleByIndex(0))["driver_version"])


def nvmlDeviceGetCount() -> int:
    """Return how many GPUs there are."""
    return len(_ask("amdsmi_get_processor_handles"))


def nvmlDeviceGetHandleByIndex(index: int) -> Any:
    """Return a GPU by its number in amdsmi, which no variable changes."""
    handles = _ask("amdsmi_get_processor_handles")
    if not 0 <= index < len(handles):
        raise NVMLError(f"there is no GPU {index}: amdsmi finds {len(handles)}")
    return handles[index]


def nvmlDeviceGetName(handle: Any) -> str:
    """Return a GPU's product name."""
    return str(_ask("amdsmi_get_gpu_asic_info", handle)["market_name"])


def nvmlDeviceGetUUID(handle: Any) -> str:
    """Return what tells a GPU from all others."""
    return str(_ask("amdsmi_get_gpu_device_uuid", handle))


def nvmlDeviceGetMemoryInfo(handle: Any, version: int | None = None) -> _Memory:
    """Return a GPU's memory in bytes: total, free, used."""
    usage = _ask("amdsmi_get_gpu_vram_usage", handle)
    total, used = (int(usage[name]) << 20 for name in ("vram_total", "vram_used"))
    return _Memory(total, total - used, used)


def nvmlDeviceGetUtilizationRates(handle: Any) -> _Utilization:
    """Return how busy a GPU and its memory are, in per cent."""
    activity = _ask("amdsmi_get_gpu_activity", handle)
    return _Utilization(_number(activity, "gfx_activity"), _number(activity, "umc_activity"))


def nvmlDeviceGetTemperature(handle: Any, sensor: int = NVML_TEMPERATURE_GPU) -> int:
    """Return a GPU's temperature in degrees Celsius: at its hottest place, where it has no other sensor."""
    if _amdsmi is None:
        raise NVMLError("nvmlInit was not called")
    error = None
    for kind in ("EDGE", "HOTSPOT"):
        try:
            found = _ask(
                "amdsmi_get_temp_metric",
                handle,
                getattr(_amdsmi.AmdSmiTemperatureType, kind),
                _amdsmi.AmdSmiTemperatureMetric.CURRENT,
            )
        except NVMLError as failed:
            error = failed
            continue
        if found:
            return int(found)
    raise error or NVMLError("the GPU reports no temperature")


def nvmlDeviceGetPowerUsage(handle: Any) -> int:
    """Return the power that a GPU draws, in milliwatts."""
    power = _ask("amdsmi_get_power_info", handle)
    for name in ("current_socket_power", "average_socket_power", "socket_power"):
        if str(power.get(name, "N/A")) not in ("N/A", "0"):
            return int(power[name]) * 1000
    raise NVMLError("the GPU reports no power")


def _number(answer: dict[str, Any], name: str) -> int:
    if str(answer[name]) == "N/A":
        raise NVMLError(f"the GPU reports no {name}")
    return int(answer[name])


def _ask(name: str, *arguments: Any) -> Any:
    if _amdsmi is None:
        raise NVMLError("nvmlInit was not called")
    try:
        return getattr(_amdsmi, name)(*arguments)
    except _amdsmi.AmdSmiException as error:
        raise NVMLError(f"{name}: {error}") from error


def __getattr__(name: str) -> Any:
    if name.startswith("nvml"):
        raise AttributeError(f"{name} is not supported here: use amdsmi on ROCm.")
    raise AttributeError(name)


nvml = sys.modules[__name__]
