"""Back ends that can be compared on a machine: ROCm, Vulkan by driver, the processor; on one GPU of several, or all."""

from __future__ import annotations

import os
import re
from collections import Counter
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
_VISIBLE = {"rocm": "HIP_VISIBLE_DEVICES", "cuda": "CUDA_VISIBLE_DEVICES", "vulkan": "GGML_VK_VISIBLE_DEVICES"}
"""Variables that show a build without -dev some devices alone, which it then counts from 0."""
FIRST, EACH, ALL = "first", "each", "all"
"""Which devices of a back end: the first one, each by itself, all together."""
_SOFTWARE_DEVICE = re.compile(r"llvmpipe|lavapipe|swiftshader", re.IGNORECASE)


class Backend(msgspec.Struct, frozen=True):
    """A back end of a build on this machine.

    Attributes:
        name: ``rocm``, ``vulkan-radv``, ``cpu``; ``rocm:1``, ``rocm:0+1`` where devices are chosen.
        device: What -dev takes: ``ROCm0``, ``ROCm0/ROCm1``; ``none`` for the processor.
        device_name: What the device calls itself; of several, all of them.
        env: Variables that choose the driver, or the devices of a build without -dev.
        seen: What the output calls the devices, where that is not what -dev takes.
        names: What each calls itself.
    """

    name: str
    device: str
    device_name: str = ""
    env: dict[str, str | None] = {}
    seen: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices, as the output calls them."""
        return self.seen or tuple(self.device.split("/"))

    @property
    def kind(self) -> str:
        """The back end, whatever its devices: ``rocm``."""
        return self.name.partition(":")[0]

    @property
    def on_cpu(self) -> bool:
        """The processor is asked for."""
        return self.name == CPU

    @property
    def software(self) -> bool:
        """A Vulkan driver that computes on the processor is asked for."""
        return self.kind.removeprefix("vulkan-") in SOFTWARE


def software_device(name: str) -> bool:
    """Whether a Vulkan device of this name is the processor."""
    return _SOFTWARE_DEVICE.search(name) is not None


def find_backends(
    build: Build, icds: Sequence[Mapping[str, object]], wanted: Sequence[str] = (), devices: Sequence[str] = ()
) -> tuple[list[Backend], list[str]]:
    """Return the back ends of a build, ROCm first and the processor last, and what was looked for and is not there.

    Args:
        build: The build; it is started to list its devices, once for each driver.
        icds: Vulkan drivers that are installed, as the fact ``vulkan.icds`` has them.
        wanted: Names of back ends; none for all but software drivers.
        devices: Which of their devices: ``first``, ``each``, ``all``, or as the build names them, ``ROCm0/ROCm1``. None
            for the first one.

    Raises:
        UsageError: One that is wanted is not there.
    """
    found: dict[str, tuple[list[Device], dict[str, str | None]]] = {}
    notes: list[str] = []
    plain = build.devices({})
    for device in plain:
        if device.kind != "vulkan":
            found.setdefault(device.kind, ([], {}))[0].append(device)
    drivers = _drivers(icds)
    for driver, file in drivers.items():
        name = f"vulkan-{driver}"
        if driver in SOFTWARE and name not in wanted:
            continue
        env = _vulkan_env(driver, file)
        mine = [device for device in build.devices(env) if device.kind == "vulkan"]
        if mine:
            found[name] = (mine, env)
        elif driver in AMD_DRIVERS:
            notes.append(f"{name}: the build finds no device with the driver {file}")
    others = [device for device in plain if device.kind == "vulkan" and not _is_software(device)]
    if others and not any(name.startswith("vulkan") for name in found):
        found["vulkan"] = (others, {})
    env = {} if build.help.has("-dev", "--device") else dict(_HIDDEN)
    cpu = Backend(CPU, "none", "", env)
    names = list(dict.fromkeys(wanted)) or [*found, CPU]
    for name in names:
        if name not in found and name != CPU:
            raise _without(name, [*found, CPU], notes)
    _check(devices, {name: [device.id for device in found[name][0]] for name in names if name != CPU})
    made: list[Backend] = []
    for name in names:
        made += [cpu] if name == CPU else _backends(build, name, *found[name], devices or (FIRST,))
    return made, notes


def _check(devices: Sequence[str], known: Mapping[str, Sequence[str]]) -> None:
    """Refuse devices that are not all of one back end, or are named twice.

    Args:
        devices: What is asked for.
        known: The devices of each back end that is measured.
    """
    every = list(dict.fromkeys(name for names in known.values() for name in names))
    for asked in devices:
        parts = asked.split("/")
        if asked in {FIRST, EACH, ALL} or (
            len({*parts}) == len(parts) and any({*parts} <= {*names} for names in known.values())
        ):
            continue
        if not {*parts} <= {*every}:
            said = f"the build finds no {asked[:80]!r}." if known else f"{asked[:80]!r} is no device of the CPU."
            why = f"It has: {', '.join(every)}. {did_you_mean(asked, every)}".strip() if every else ""
        elif len({*parts}) < len(parts):
            said, why = f"{asked[:80]!r} names a GPU twice.", "A model is spread over different GPUs."
        else:
            said, why = f"the GPUs of {asked[:80]!r} belong to different back ends.", "A build runs on one at a time."
        raise UsageError(
            "--device",
            said,
            why=why or "No back end with a GPU is measured.",
            next_step="Give first, each, all, or some of these: ROCm0/ROCm1 are two together."
            if known
            else "Leave --device out, or name a back end with a GPU: --backend rocm.",
        )


def _without(name: str, known: list[str], notes: Sequence[str]) -> UsageError:
    said = did_you_mean(name, known)
    return UsageError(
        "--backend",
        f"the build finds no device for {name!r}.",
        why=f"It has: {', '.join(known)}. {said}".strip() + (f" {notes[0]}." if notes else ""),
        next_step="`rocmend doctor` says which drivers are installed and what is wrong with them.",
    )


def _backends(
    build: Build, name: str, devices: Sequence[Device], env: dict[str, str | None], asked: Sequence[str]
) -> list[Backend]:
    """Return a back end with each group of its devices that is asked for."""
    by = {device.id: device for device in devices}
    groups: dict[str, list[Device]] = {}
    for one in asked:
        if one in {FIRST, ALL}:
            chosen = [[*devices] if one == ALL else [*devices[:1]]]
        elif one == EACH:
            chosen = [[device] for device in devices]
        else:
            chosen = [[by[part] for part in one.split("/")]] if set(one.split("/")) <= by.keys() else []
        groups |= {"/".join(device.id for device in group): group for group in chosen}
    named = len(devices) > 1 and tuple(asked) != (FIRST,)
    return [
        Backend(
            f"{name}:{'+'.join(_number(device) for device in group)}" if named else name,
            device,
            _together(group),
            {**env, **_shown(build, group, devices)},
            _seen(build, group, devices),
            tuple(device.name for device in group),
        )
        for device, group in groups.items()
    ]


def _number(device: Device) -> str:
    return re.sub(r"\D+", "", device.id)


def _together(group: Sequence[Device]) -> str:
    """Return what devices call themselves: ``2x Radeon AI PRO R9700``."""
    counts = Counter(device.name for device in group)
    return " + ".join(f"{count}x {name}" if count > 1 else name for name, count in counts.items())


def _shown(build: Build, group: Sequence[Device], devices: Sequence[Device]) -> dict[str, str | None]:
    """Return what shows a build without -dev these devices alone."""
    variable = _VISIBLE.get(group[0].kind)
    if build.help.has("-dev", "--device") or len(group) == len(devices) or variable is None:
        return {}
    before = [part.strip() for part in os.environ.get(variable, "").split(",") if part.strip()]
    numbers = [int(_number(device)) for device in group]
    return {variable: ",".join(before[number] if number < len(before) else str(number) for number in numbers)}


def _seen(build: Build, group: Sequence[Device], devices: Sequence[Device]) -> tuple[str, ...]:
    if not _shown(build, group, devices):
        return ()
    return tuple(f"{re.sub(r'[0-9]+$', '', device.id)}{number}" for number, device in enumerate(group))


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
