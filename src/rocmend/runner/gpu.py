"""What GPUs do, as the amdgpu driver says in sysfs.

Sources: https://docs.kernel.org/gpu/amdgpu/thermal.html (gpu_busy_percent, power1_average, freq1_input)
"""

from __future__ import annotations

from pathlib import Path

import msgspec


class GpuSample(msgspec.Struct, frozen=True):
    """One GPU now; None where the driver does not say."""

    busy_percent: float
    power_w: float | None
    clock_mhz: float | None


def _number(path: Path) -> float | None:
    try:
        return float(path.read_text(encoding="ascii", errors="replace"))
    except (OSError, ValueError):
        return None


class GpuSampler:
    """Reads the busiest GPU of this machine.

    Args:
        drm: The folder of DRM devices.
    """

    def __init__(self, drm: Path = Path("/sys/class/drm")) -> None:
        self._devices: list[tuple[Path, Path | None]] = []
        for busy in sorted(drm.glob("card*/device/gpu_busy_percent")):
            monitors = sorted((busy.parent / "hwmon").glob("hwmon*"))
            self._devices.append((busy, monitors[0] if monitors else None))

    def sample(self) -> GpuSample | None:
        """Return the busiest GPU; None where no driver says how busy it is."""
        best: GpuSample | None = None
        for busy_file, monitor in self._devices:
            busy = _number(busy_file)
            if busy is None or (best is not None and busy <= best.busy_percent):
                continue
            power = clock = None
            if monitor is not None:
                power = _number(monitor / "power1_average") or _number(monitor / "power1_input")  # µW
                clock = _number(monitor / "freq1_input")  # Hz
            best = GpuSample(
                busy, None if power is None else round(power / 1e6, 1), None if clock is None else round(clock / 1e6)
            )
        return best
