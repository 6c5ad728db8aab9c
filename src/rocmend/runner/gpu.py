"""What GPUs do, as the amdgpu driver says in sysfs.

Sources: https://docs.kernel.org/gpu/amdgpu/thermal.html (gpu_busy_percent, power1_average, freq1_input, temp1_input,
pp_dpm_mclk, gpu_metrics)
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from rocmend.machine.parse.sysfs import parse_levels
from rocmend.runner.gpu_metrics import Throttle, parse_throttle

_METRICS_BYTES = 4096


class GpuSample(msgspec.Struct, frozen=True):
    """One GPU now; None where the driver does not say.

    Attributes:
        busy_percent: Of the last moments.
        power_w: Of the GPU; of the whole package on an APU.
        clock_mhz: Of the engine.
        temperature_c: The highest of its sensors.
        memory_clock_mhz: Of the memory.
        throttle: What holds the clocks down, in words; read on request only.
    """

    busy_percent: float
    power_w: float | None
    clock_mhz: float | None
    temperature_c: float | None = None
    memory_clock_mhz: float | None = None
    throttle: tuple[str, ...] = ()


def _number(path: Path) -> float | None:
    try:
        return float(path.read_text(encoding="ascii", errors="replace"))
    except (OSError, ValueError):
        return None


class _Device:
    """A GPU's folder and that of its sensors."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        monitors = sorted((folder / "hwmon").glob("hwmon*"))
        self.monitor = monitors[0] if monitors else None
        self.temperatures = sorted(self.monitor.glob("temp*_input")) if self.monitor is not None else []
        self._before: Throttle | None = None

    def read(self, busy: float, *, closely: bool) -> GpuSample:
        power = clock = None
        if self.monitor is not None:
            power = _number(self.monitor / "power1_average") or _number(self.monitor / "power1_input")  # µW
            clock = _number(self.monitor / "freq1_input")  # Hz
        sample = GpuSample(
            busy, None if power is None else round(power / 1e6, 1), None if clock is None else round(clock / 1e6)
        )
        return self._closely(sample) if closely else sample

    def _closely(self, sample: GpuSample) -> GpuSample:
        hottest = max((found for path in self.temperatures if (found := _number(path)) is not None), default=None)
        clocks, memory = sample.clock_mhz, None
        with contextlib.suppress(OSError):
            memory = parse_levels((self.folder / "pp_dpm_mclk").read_text(errors="replace")).current_mhz
        if clocks is None:
            with contextlib.suppress(OSError):
                clocks = parse_levels((self.folder / "pp_dpm_sclk").read_text(errors="replace")).current_mhz
        reasons: tuple[str, ...] = ()
        with contextlib.suppress(OSError), (self.folder / "gpu_metrics").open("rb") as file:
            now = parse_throttle(file.read(_METRICS_BYTES))
            reasons = now.since(self._before) if now is not None else ()
            self._before = now
        return msgspec.structs.replace(
            sample,
            clock_mhz=clocks,
            temperature_c=None if hottest is None else round(hottest / 1e3, 1),
            memory_clock_mhz=memory,
            throttle=reasons,
        )


class GpuSampler:
    """Reads the busiest GPU of this machine.

    Args:
        drm: The folder of DRM devices.
    """

    def __init__(self, drm: Path = Path("/sys/class/drm")) -> None:
        self._devices = [_Device(busy.parent) for busy in sorted(drm.glob("card*/device/gpu_busy_percent"))]

    @property
    def present(self) -> bool:
        """Whether a driver says how busy a GPU is."""
        return bool(self._devices)

    def sample(self, *, closely: bool = False) -> GpuSample | None:
        """Return the busiest GPU; None where no driver says how busy it is.

        Args:
            closely: Also read temperature, memory clock and what holds the clocks down.
        """
        best: tuple[float, _Device] | None = None
        for device in self._devices:
            busy = _number(device.folder / "gpu_busy_percent")
            if busy is not None and (best is None or busy > best[0]):
                best = busy, device
        return None if best is None else best[1].read(best[0], closely=closely)
