"""What is known about the machine of a run, and what is to be said before one begins.

Sources: https://docs.kernel.org/power/power_supply_class.html (type, online),
https://docs.kernel.org/userspace-api/sysfs-platform_profile.html,
https://docs.kernel.org/gpu/amdgpu/thermal.html (power_dpm_force_performance_level),
drivers/gpu/drm/amd/amdkfd/kfd_process.c (a folder in /sys/class/kfd/kfd/proc for each process that has it open)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rocmend.core.units import count_text, share_text, size_text

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine

_FACTS = {
    "system": "os.name",
    "kernel": "kernel.release",
    "product": "host.product",
    "firmware": "host.bios_version",
    "processor": "cpu.model",
    "memory": "memory.total_bytes",
    "ROCm": "rocm.version",
    "driver": "amdgpu.version",
}
"""What a figure may depend on, by the name that it is shown with."""
_BUSY_GPU = 20.0
"""Percent from which on a GPU is called busy."""
_BUSY_CPU = 0.25
"""Share of the processor's time from which on a machine is called busy."""
_MOST_NAMED = 4
_VARIABLE = re.compile(
    r"(HSA|HIP|ROCR|ROCM|ROCBLAS|HIPBLASLT|TENSILE|MIOPEN|GPU|AMD|AMDGPU|RADV|VK|MESA|GGML|LLAMA|PYTORCH|TORCH|"
    r"TORCHINDUCTOR|TRITON|FLASH_ATTENTION|OMP|KMP|MKL|OPENBLAS|CUDA|CUBLAS|NVIDIA|NCCL|ROCMEND_MLX|DISABLE_ADDMM)_\w+"
)
"""Variables that drivers, libraries, compilers and frameworks for GPUs read."""
_OF_PLACES = re.compile(r"_(HOME|PATH|DIR|ROOT|CACHE|CACHE_PATH|DB_PATH|FILENAME)$")
"""Endings of those that name a place, on which no figure depends."""
_MOST_VARIABLES, _MOST_CHARS = 50, 200


def variables(environment: Mapping[str, str], given: Mapping[str, str | None]) -> dict[str, str]:
    """Return the variables of the environment that a figure may depend on.

    Args:
        environment: What processes inherit.
        given: What a setting states itself.
    """
    names = [name for name in sorted(environment) if _VARIABLE.fullmatch(name) and not _OF_PLACES.search(name)]
    return {name: environment[name][:_MOST_CHARS] for name in names[:_MOST_VARIABLES] if name not in given}


def machine_facts(machine: Machine) -> dict[str, str]:
    """Return what a figure may depend on, by the name that it is shown with."""
    found = {}
    for name, key in _FACTS.items():
        value = machine.value(key)
        if value not in {None, ""}:
            found[name] = size_text(value) if key.endswith("_bytes") else str(value)
    return found


def conditions(*, gpu: bool, root: Path = Path("/"), watch_s: float = 0.3) -> tuple[str, ...]:
    """Return what may falsify figures here, as it is before a run: notes, no refusals.

    Args:
        gpu: A GPU is measured.
        root: Where /proc and /sys are.
        watch_s: Seconds for which the processor's load is watched.
    """
    notes = [_battery(root), _profile(root), _load(root, watch_s)]
    if gpu:
        notes += [*_gpu_levels(root), _gpu_users(root)]
    return tuple(note for note in notes if note)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _battery(root: Path) -> str:
    supplies = sorted(root.glob("sys/class/power_supply/*"))
    mains = [_text(supply / "online") for supply in supplies if _text(supply / "type") == "Mains"]
    discharging = any(
        _text(supply / "status") == "Discharging" for supply in supplies if _text(supply / "scope") != "Device"
    )
    if (mains and "1" not in mains) or (not mains and discharging):
        return "this machine runs on its battery, which limits its power"
    return ""


def _profile(root: Path) -> str:
    profile = _text(root / "sys/firmware/acpi/platform_profile")
    if profile in {"low-power", "quiet", "cool"}:
        return f"the power profile of this machine is {profile}, not performance or balanced"
    return ""


def _gpu_levels(root: Path) -> list[str]:
    notes = []
    for device in sorted(root.glob("sys/class/drm/card*/device")):
        level = _text(device / "power_dpm_force_performance_level")
        name = device.parent.name
        if level and level not in {"auto", "high"}:
            notes.append(f"the performance level of {name} is set to {level}, not auto")
        busy = _text(device / "gpu_busy_percent")
        if busy.isdecimal() and float(busy) >= _BUSY_GPU:
            notes.append(f"{name} was {busy} % busy before the run")
    return notes


def _gpu_users(root: Path) -> str:
    """Name the processes that compute on a GPU."""
    own = str(os.getpid())
    pids = [folder.name for folder in root.glob("sys/class/kfd/kfd/proc/*") if folder.name.isdecimal()]
    names = [_text(root / "proc" / pid / "comm") or f"process {pid}" for pid in pids if pid != own]
    if not names and root == Path("/"):
        names = _smi_users()
    if not names:
        return ""
    named = ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")
    return f"{count_text(len(names), 'other process', 'other processes')} had a GPU open before the run: {named}"


def _smi_users() -> list[str]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-compute-apps=process_name", "--format=csv,noheader"]
    try:
        done = subprocess.run(  # noqa: S603  the program is the one on PATH, its words are ours
            query, capture_output=True, text=True, check=False, timeout=5.0, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    return [Path(line.strip()).name for line in lines if line.strip() and not line.startswith("[")]


def _load(root: Path, watch_s: float) -> str:
    """Say how busy the processor is while nothing of ours runs."""
    before = _cpu_times(root)
    time.sleep(watch_s)
    after = _cpu_times(root)
    if before is None or after is None or after[1] <= before[1]:
        return ""
    share = (after[0] - before[0]) / (after[1] - before[1])
    return f"the processor was {share_text(share)} busy before the run" if share >= _BUSY_CPU else ""


def _cpu_times(root: Path) -> tuple[int, int] | None:
    """Return the time that all cores worked, and that they have had, in clock ticks."""
    fields = _text(root / "proc/stat").partition("\n")[0].split()[1:9]
    if len(fields) < 8 or not all(field.isdecimal() for field in fields):
        return None
    times = [int(field) for field in fields]
    return sum(times) - times[3] - times[4], sum(times)  # without idle and waiting for disks
