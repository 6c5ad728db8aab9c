"""Support units for Python: what a ported package is given, under which names.

A unit is a module in ``rocmend.port.support`` that needs nothing of rocmend: its source is what the project gets, as
``_rocm.py`` (``is_rocm``) or ``_rocm_NAME.py`` beside it.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

from rocmend.port.python.flags import FLAG_MODULE

__all__ = ["ATTENTION_FUNCTIONS", "NVML_FUNCTIONS", "NVML_NAMES", "UNITS", "Unit", "module_of", "source_of"]


class Unit(NamedTuple):
    """A support unit.

    Attributes:
        name: As ``Issue.needs`` names it.
        exports: What rewritten code may import from it.
    """

    name: str
    exports: tuple[str, ...]

    @property
    def file(self) -> str:
        """Return the name of the file that a project gets."""
        return f"{module_of('', self.name)}.py"


ATTENTION_FUNCTIONS = (
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
)
"""What the stand-in for flash-attn answers (``support/attention.py``)."""

UNITS = {
    unit.name: unit
    for unit in (
        Unit("is_rocm", ("is_rocm",)),
        Unit("attention", ("flash_attn", *ATTENTION_FUNCTIONS)),
        Unit("fp8", ("float8_e4m3",)),
        Unit("inductor", ("settle_inductor",)),
        Unit("nvml", ("nvml",)),
    )
}
"""All units, by name."""

NVML_FUNCTIONS = frozenset(
    {
        "nvmlInit",
        "nvmlInitWithFlags",
        "nvmlShutdown",
        "nvmlSystemGetDriverVersion",
        "nvmlDeviceGetCount",
        "nvmlDeviceGetHandleByIndex",
        "nvmlDeviceGetName",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetPowerUsage",
    }
)
"""What the stand-in for pynvml answers (``support/nvml.py``)."""

NVML_NAMES = frozenset({"NVMLError", "NVML_ERROR_UNKNOWN", "NVML_SUCCESS", "NVML_TEMPERATURE_GPU"})
"""Its other names."""


def module_of(flag_module: str, name: str) -> str:
    """Return the dotted name of a unit's module, given that of the one that defines ``is_rocm``."""
    own = FLAG_MODULE if name == "is_rocm" else f"{FLAG_MODULE}_{name}"
    head, dot, _ = flag_module.rpartition(".")
    return f"{head}{dot}{own}"


def source_of(name: str) -> bytes:
    """Return the source that a project gets as this unit."""
    return files("rocmend.port.support").joinpath(f"{name}.py").read_bytes()
