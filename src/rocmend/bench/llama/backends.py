"""Back ends that can be compared on a machine: ROCm, Vulkan by driver, the processor."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from rocmend.bench.llama.build import Build, Device
from rocmend.core.errors import UsageError
from rocmend.core.suggest import did_you_mean

CPU = "cpu"
SOFTWARE = ("lavapipe",)
"""Vulkan drivers that compute on the processor: measured only where they are named."""
AMD_DRIVERS = ("radv", "amdvlk", "amdgpu-pro")
_HIDDEN = {"HIP_VISIBLE_DEVICES": "-1", "CUDA_VISIBLE_DEVICES": "-1", "GGML_VK_VISIBLE_DEVICES": ""}
_SOFTWARE_DEVICE = re.compile(r"llvmpipe|lavapipe|swiftshader", re.IGNORECASE)


class Backend(msgspec.Struct, frozen=True):
    """A back end of a build on this machine.

    Attributes:
        name: ``rocm``, ``vulkan-radv``, ``cpu``.
        device: What -dev takes: ``ROCm0``; ``none`` for the processor.
        device_name: What the device calls itself.
        env: Variables that choose the driver.
    """

    name: str
    device: str
    device_name: str = ""
    env: dict[str, str | None] = {}

    @property
    def on_cpu(self) -> bool:
        """The processor is asked for."""
        return self.name == CPU

    @property
    def software(self) -> bool:
        """A Vulkan driver that computes on the processor is asked for."""
        return self.name.removeprefix("vulkan-") in SOFTWARE


def software_device(name: str) -> bool:
    """Whether a Vulkan device of this name is the processor."""
    return _SOFTWARE_DEVICE.search(name) is not None


def find_backends(
    build: Build, icds: Sequence[Mapping[str, object]], wanted: Sequence[str] = ()
) -> tuple[list[Backend], list[str]]:
    """Return the back ends of a build, ROCm first and the processor last, and what was looked for and is not there.

    Args:
        build: The build; it is started to list its devices, once for each driver.
        icds: Vulkan drivers that are installed, as the fact ``vulkan.icds`` has them.
        wanted: Names of back ends; none for all but software drivers.

    Raises:
        UsageError: One that is wanted is not there.
    """
    found: dict[str, Backend] = {}
    notes: list[str] = []
    plain = build.devices({})
    for device in plain:
        if device.kind != "vulkan" and device.kind not in found:
            found[device.kind] = Backend(device.kind, device.id, device.name)
    drivers = _drivers(icds)
    for driver, file in drivers.items():
        name = f"vulkan-{driver}"
        if driver in SOFTWARE and name not in wanted:
            continue
        env = _vulkan_env(driver, file)
        devices = [device for device in build.devices(env) if device.kind == "vulkan"]
        if devices:
            found[name] = Backend(name, devices[0].id, devices[0].name, env)
        elif driver in AMD_DRIVERS:
            notes.append(f"{name}: the build finds no device with the driver {file}")
    first = next((device for device in plain if device.kind == "vulkan"), None)
    if first is not None and not any(name.startswith("vulkan") for name in found) and not _is_software(first):
        found["vulkan"] = Backend("vulkan", first.id, first.name)
    env = {} if build.help.has("-dev", "--device") else dict(_HIDDEN)
    found[CPU] = Backend(CPU, "none", "", env)
    if not wanted:
        return list(found.values()), notes
    for name in wanted:
        if name not in found:
            known = list(found)
            said = did_you_mean(name, known)
            raise UsageError(
                "--backend",
                f"the build finds no device for {name!r}.",
                why=f"It has: {', '.join(known)}. {said}".strip() + (f" {notes[0]}." if notes else ""),
                next_step="`rocmend doctor` says which drivers are installed and what is wrong with them.",
            )
    return [found[name] for name in dict.fromkeys(wanted)], notes


def _drivers(icds: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """Return the manifest of each driver for AMD GPUs and of software drivers."""
    found: dict[str, str] = {}
    for icd in icds:
        driver, file = str(icd.get("driver", "")), str(icd.get("file", ""))
        if driver in {*AMD_DRIVERS, *SOFTWARE} and file:
            found.setdefault(driver, file)
    return found


def _vulkan_env(driver: str, file: str) -> dict[str, str | None]:
    env: dict[str, str | None] = {"VK_DRIVER_FILES": file, "VK_ICD_FILENAMES": file}
    if driver in {"radv", "amdvlk"}:
        env["AMD_VULKAN_ICD"] = driver.upper()
    if driver in SOFTWARE:
        env["GGML_VK_VISIBLE_DEVICES"] = "0"  # otherwise ggml passes over devices that are the processor
    return env


def _is_software(device: Device) -> bool:
    return software_device(device.name)
