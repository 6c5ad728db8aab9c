"""A machine at a glance: the verdict on its GPU, driver, firmware, ROCm, PyTorch and memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from rocmend.core.records import Finding, Severity
from rocmend.core.units import listed, size_text
from rocmend.doctor.records import Diagnosis, GpuSummary
from rocmend.kb.action import action_name
from rocmend.machine.facts import Machine


class AreaState(StrEnum):
    """How an area is."""

    OK = "ok"
    ATTENTION = "attention"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


class Area(msgspec.Struct, frozen=True, omit_defaults=True):
    """The verdict on one part of a machine, and what it is made of.

    Attributes:
        name: ``GPU``, ``Driver``, ``Firmware``, ``ROCm``, ``PyTorch``, ``Memory``.
        state: The worst of its findings and of what its facts say; unknown where there are none.
        text: What there is, in a few words.
        findings: Ids of the entries found about it, most severe first; notes (``info``) are left out.
    """

    name: str
    state: AreaState
    text: str
    findings: tuple[str, ...] = ()


_Told = tuple[AreaState, str]

_SUBJECTS = {
    "Firmware": ("gpu.mes_version", "gpu.firmware", "gpu.vbios", "firmware."),
    "Memory": (
        *("gpu.vram", "gpu.gtt", "gpu.carve_out", "gpu.memory_ceiling", "gpu.hip_memory", "ttm.", "memory.", "model."),
        *("dmesg.oom_kill", "dmesg.gpu_oom", 'kernel.params["amdgpu.gttsize"]', 'kernel.params["amdgpu.vramlimit"]'),
    ),
    "Driver": (
        *("amdgpu.", "kernel.", "kfd.", "dri.", "dxg.", "dmesg.", "modprobe.", "user.", "gpu.cwsr", "gpu.atomics"),
        *("iommu.", "numa.", "vulkan"),
    ),
    "ROCm": ("rocm.", "rocminfo.", "rocm_smi.", "amd_smi.", "smi."),
    "GPU": ("gpu.", "gpus.", "pci."),
}
"""Which area a finding is about: the first that one of the facts it was seen in belongs to. What is about no part of
the machine is about the software that runs on it."""
_ACTS_ON = {"update-rocm": "ROCm", "use-rocm": "ROCm", "install-native-torch": "PyTorch", "use-triton": "PyTorch"}
"""What an action, by the beginning of its name, replaces: a finding that it settles counts there, too."""
_OF_ROCM = re.compile(r"(?<![a-z])rocm(?![a-z])")  # rocm-sdk-core, pytorch-triton-rocm, 2.9.1+rocm6.4
_BACKENDS = {"rocm": "ROCm", "cuda": "CUDA", "cpu": "the CPU"}
_PYTORCH = ("gpu.torch", "gpu.override")
_SCOPE = frozenset({"gpu.gfx_target", "gpus.targets", "host.kind"})
"""Facts that only say which machines an entry is for."""

_ORDER = ("GPU", "Driver", "Firmware", "ROCm", "PyTorch", "Memory")
_WORST = {Severity.ERROR: AreaState.PROBLEM, Severity.WARNING: AreaState.ATTENTION}
_RANK = (AreaState.PROBLEM, AreaState.ATTENTION, AreaState.UNKNOWN, AreaState.OK)


def areas(machine: Machine, diagnosis: Diagnosis) -> tuple[Area, ...]:
    """Return the verdict on each area, in a fixed order; nothing of a GPU that is not here.

    Args:
        machine: The facts.
        diagnosis: What was found in them.
    """
    if diagnosis.hypothetical_target:
        return ()
    found: dict[str, list[Finding]] = {name: [] for name in _ORDER}
    acted: dict[str, list[Finding]] = {name: [] for name in _ORDER}
    for finding in diagnosis.findings:
        if finding.severity is not Severity.INFO:
            found[_area_of(finding)].append(finding)
            if acting := _acted_on(finding, diagnosis):
                acted[acting].append(finding)
    told: dict[str, _Told] = {
        "GPU": _gpu(machine, diagnosis.gpus),
        "Driver": _driver(machine),
        "Firmware": _firmware(machine),
        "ROCm": _rocm(machine),
        "PyTorch": _pytorch(machine, diagnosis.gpus),
        "Memory": _memory(machine, diagnosis.gpus),
    }
    return tuple(_area(name, *told[name], found[name], acted[name]) for name in _ORDER)


def _acted_on(finding: Finding, diagnosis: Diagnosis) -> str:
    """Return the area that a step changes for the sake of a finding about another."""
    steps = (*diagnosis.plan.steps, *diagnosis.plan.optional)
    own = {remedy.action for remedy in finding.remedies}  # not what brings one of them along
    names = (action_name(one.action) for one in steps if finding.entry_id in one.settles and one.action in own)
    area = next((area for name in names for start, area in _ACTS_ON.items() if name.startswith(start)), "")
    return "" if area == _area_of(finding) else area


def _area(name: str, state: AreaState, text: str, findings: Sequence[Finding], acted: Sequence[Finding] = ()) -> Area:
    about = (*findings, *acted)
    states = [state, *(_WORST[finding.severity] for finding in about if finding.severity in _WORST)]
    ids = dict.fromkeys(finding.entry_id for finding in about)
    return Area(name, min(states, key=_RANK.index), text, tuple(ids))


def _area_of(finding: Finding) -> str:
    for fact in finding.evidence:
        key = re.sub(r"^gpu\.\d+\.", "gpu.", fact.key)
        if key in _SCOPE or key.startswith("ask."):
            continue
        if key.startswith(_PYTORCH):
            return "PyTorch"
        return next((name for name, starts in _SUBJECTS.items() if key.startswith(starts)), "PyTorch")
    return "GPU"


def _gpu(machine: Machine, gpus: Sequence[GpuSummary]) -> _Told:
    if not gpus:
        unseen = [str(gpu.get("name") or "AMD GPU") for gpu in machine.value("pci.amd_gpus") or ()]
        if unseen:
            return AreaState.PROBLEM, f"{_listed(unseen)}: the driver does not show it"
        known = machine.value("gpus.amd_present") is False
        return AreaState.UNKNOWN, "None" if known else "No AMD GPU that the driver shows"
    named = [", ".join(filter(None, (gpu.name, gpu.gfx_target))) or "AMD GPU" for gpu in gpus]
    return AreaState.OK, _listed(named)


def _listed(names: Sequence[str]) -> str:
    """Return names in a line, equal ones counted: ``8 x MI300X``."""
    return "; ".join(
        f"{names.count(name)} x {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)
    )


def _driver(machine: Machine) -> _Told:
    release = machine.value("kernel.release")
    linux = f"Linux {release}" if release else ""
    if machine.value("amdgpu.loaded"):
        origin = {"in-tree": "amdgpu in-tree", "dkms": "amdgpu from DKMS"}.get(
            str(machine.value("amdgpu.origin")), "amdgpu"
        )
        return AreaState.OK, ", ".join(filter(None, (_joined(origin, machine.value("amdgpu.version")), linux)))
    if machine.value("dxg.present"):
        return AreaState.OK, _joined("WSL 2,", linux)
    if machine.value("pci.amd_gpus"):
        return AreaState.PROBLEM, _joined("amdgpu is not loaded,", linux)
    return AreaState.UNKNOWN, _joined("amdgpu is not loaded,", linux) if release else "Not known"


def _firmware(machine: Machine) -> _Told:
    versions = {machine.value(f"gpu.{index}.mes_version") for index in machine.indices("gpu")}
    mes = ", ".join(f"MES {version:#x}" for version in sorted(version for version in versions if version))
    package = str(machine.value("firmware.package_version") or "")
    dated = re.match(r"\d{8}", package)  # the rest names a commit
    held = f"{machine.value('firmware.package') or 'package'} {dated[0] if dated else package}" if package else ""
    if not machine.indices("gpu") or not (mes or held):
        return AreaState.UNKNOWN, held or "Not known"
    return AreaState.OK, ", ".join(filter(None, (mes, held)))


def _rocm(machine: Machine) -> _Told:
    if machine.value("rocm.version"):
        more = int(machine.value("rocm.count") or 1) - 1
        return AreaState.OK, f"ROCm {machine.value('rocm.version')}" + (f" and {more} more" if more else "")
    if machine.value("torch.rocm_version"):
        return AreaState.OK, f"ROCm {machine.value('torch.rocm_version')}, inside PyTorch"
    if machine.value("rocm.count") != 0:
        return AreaState.UNKNOWN, "Not known"
    wheels = [
        name for name, version in (machine.value("packages") or {}).items() if _OF_ROCM.search(f"{name} {version}")
    ]
    if not wheels:
        return AreaState.UNKNOWN, "No installation was found"
    return AreaState.UNKNOWN, f"No system installation; ROCm wheels in the Python environment: {listed(wheels)}"


def _pytorch(machine: Machine, gpus: Sequence[GpuSummary]) -> _Told:
    if not machine.value("torch.installed"):
        known = machine.value("torch.installed") is False
        return AreaState.UNKNOWN, "Not installed" if known else "Not known"
    name = _joined("PyTorch", machine.value("torch.version"))
    backend = str(machine.value("torch.backend") or "")
    spare = {gpu.index for gpu in gpus if machine.value(f"gpu.{gpu.index}.torch_cards")}
    services = {gpu.torch_service for gpu in gpus if gpu.index not in spare}
    if "none" in services:
        return AreaState.PROBLEM, f"{name} has no code for this GPU"
    if "override" in services:
        return AreaState.ATTENTION, f"{name} needs an override on this GPU"
    if services & {"native", "generic"}:
        return AreaState.OK, f"{name} has code for {'the card' if spare else 'this GPU'}"
    return AreaState.UNKNOWN, f"{name}, built for {_BACKENDS.get(backend, backend) or 'an unknown backend'}"


def _memory(machine: Machine, gpus: Sequence[GpuSummary]) -> _Told:
    known = [gpu for gpu in gpus if gpu.memory_ceiling_bytes]
    total = machine.value("memory.total_bytes")
    wanted = machine.value("ask.model_bytes")
    if not known:
        return AreaState.UNKNOWN, _system_memory(machine, total, wanted) if total else "Not known"
    alike = len({gpu.name for gpu in known}) == 1
    usable = "usable by the GPU" if len(known) == 1 else "usable each" if alike else "usable"
    texts = [
        (f"{gpu.name or gpu.gfx_target or 'GPU'}: " if len(known) > 1 else "")
        + f"{size_text(gpu.memory_ceiling_bytes or 0)} {usable}"
        + (f", of {size_text(total)}" if gpu.is_apu and total else "")
        for gpu in known
    ]
    largest = machine.value("ttm.suggested_limit_bytes")
    more = largest and len(known) == 1 and known[0].is_apu and (known[0].memory_ceiling_bytes or 0) * 1.1 < largest
    raised = f"; up to {size_text(largest)} with a higher limit" if more else ""
    fits = {True: ": fits", False: ": does not fit"}.get(machine.value("model.fits"), "")
    asked = f"; the model has {size_text(wanted)}{fits}" if wanted else ""
    return AreaState.OK, _listed(texts) + raised + asked


def _system_memory(machine: Machine, total: int, wanted: int | None) -> str:
    told = f"{size_text(total)} of system memory"
    if machine.value("gpus.amd_present") is not False:
        return f"{told}; the GPU's is not known"
    if wanted is None:
        return f"{told}, no GPU"
    holds = "which would hold" if wanted <= total else "too little for"
    return f"{told}, {holds} the model ({size_text(wanted)}); no GPU"


def _joined(name: str, rest: object) -> str:
    return f"{name} {rest}" if rest else name.rstrip(",")
