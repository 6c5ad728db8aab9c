"""What kind of host this is: hardware, a virtual machine, a container, WSL.

Sources: systemd-detect-virt(1); https://systemd.io/CONTAINER_INTERFACE/; podman-run(1) for /run/.containerenv;
https://learn.microsoft.com/windows/wsl/compare-versions
"""

from __future__ import annotations

import re

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.system import parse_cpuinfo
from rocmend.machine.root import ReadError, Root

OSRELEASE = "/proc/sys/kernel/osrelease"
CPUINFO = "/proc/cpuinfo"
CGROUP = "/proc/1/cgroup"
DMI = "/sys/class/dmi/id"
MAX_CPUINFO_BYTES = 4 << 20

_MARKERS = (
    ("/run/.toolboxenv", "toolbox"),
    ("/run/.containerenv", "podman"),
    ("/.dockerenv", "docker"),
    ("/.singularity.d", "apptainer"),
    ("/var/run/secrets/kubernetes.io", "kubernetes"),
    ("/dev/incus", "incus"),
    ("/dev/lxd", "lxd"),
)
_CGROUPS = (
    (re.compile(r"kubepods"), "kubernetes"),
    (re.compile(r"/docker[-/]|/docker/"), "docker"),
    (re.compile(r"libpod"), "podman"),
    (re.compile(r"/lxc[./]|lxc\.payload"), "lxc"),
    (re.compile(r"containerd|cri-o"), "containerd"),
)
_HYPERVISORS = (
    (re.compile(r"QEMU|KVM|Red Hat|oVirt|OpenStack|Proxmox", re.IGNORECASE), "kvm"),
    (re.compile(r"VMware", re.IGNORECASE), "vmware"),
    (re.compile(r"innotek|VirtualBox|Oracle", re.IGNORECASE), "virtualbox"),
    (re.compile(r"Xen", re.IGNORECASE), "xen"),
    (re.compile(r"Microsoft", re.IGNORECASE), "hyper-v"),
    (re.compile(r"Google", re.IGNORECASE), "gce"),
    (re.compile(r"Amazon", re.IGNORECASE), "ec2"),
)


@collector(
    "host",
    facts={
        "host.kind": "bare, vm, container, wsl2 or wsl1 (a container on a virtual machine is a container).",
        "host.container": "docker, podman, lxc, kubernetes, apptainer, toolbox …; null outside a container.",
        "host.hypervisor": "kvm, vmware, hyper-v, xen …, unknown; null on hardware.",
        "host.os_family": "linux.",
        "host.vendor": "Maker of the computer, from its firmware; null where there is none.",
        "host.product": "Model of the computer, from its firmware; null where there is none.",
        "host.bios_version": "Version of its firmware (BIOS); null where there is none.",
        "host.bios_date": "Date of its firmware as it prints it; null where there is none.",
    },
    time_limit_s=2.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Look for the marks that each kind of host leaves."""
    dmi = {name: _dmi(root, name) for name in ("sys_vendor", "product_name", "bios_version", "bios_date")}
    wsl, wsl_source = _wsl(root)
    container, container_source = _container(root)
    hypervisor, hypervisor_source = _hypervisor(root, dmi)
    if wsl:
        kind, source = wsl, wsl_source
    elif container:
        kind, source = "container", container_source
    else:
        kind, source = ("vm" if hypervisor else "bare"), hypervisor_source
    facts.put("host.kind", kind, source=source)
    facts.put("host.container", container, source=container_source)
    facts.put("host.hypervisor", hypervisor, source=hypervisor_source)
    facts.put("host.os_family", "linux", source=OSRELEASE)
    facts.put("host.vendor", dmi["sys_vendor"], source=f"{DMI}/sys_vendor")
    facts.put("host.product", dmi["product_name"], source=f"{DMI}/product_name")
    facts.put("host.bios_version", dmi["bios_version"], source=f"{DMI}/bios_version")
    facts.put("host.bios_date", dmi["bios_date"], source=f"{DMI}/bios_date")


def _text(root: Root, path: str, max_bytes: int = 1 << 16) -> str:
    try:
        return root.read_or_none(path, max_bytes=max_bytes) or ""
    except ReadError:
        return ""


def _dmi(root: Root, name: str) -> str | None:
    return _text(root, f"{DMI}/{name}") or None


def _wsl(root: Root) -> tuple[str | None, str]:
    """Tell WSL by the kernel's name, or by the paravirtual GPU that only WSL 2 has under a kernel of one's own."""
    release = _text(root, OSRELEASE)
    if "microsoft" in release.lower():
        return ("wsl2" if "WSL2" in release or "microsoft-standard" in release else "wsl1"), OSRELEASE
    if root.exists("/dev/dxg"):
        return "wsl2", "/dev/dxg"
    return None, OSRELEASE


def _container(root: Root) -> tuple[str | None, str]:
    manager = _text(root, "/run/systemd/container")
    if manager and manager != "wsl":
        return manager[:40], "/run/systemd/container"
    for path, name in _MARKERS:
        if root.exists(path):
            return name, path
    cgroup = _text(root, CGROUP)
    for pattern, name in _CGROUPS:
        if pattern.search(cgroup):
            return name, CGROUP
    return None, f"{', '.join(path for path, _ in _MARKERS)}, {CGROUP}"


def _hypervisor(root: Root, dmi: dict[str, str | None]) -> tuple[str | None, str]:
    virtual = parse_cpuinfo(_text(root, CPUINFO, MAX_CPUINFO_BYTES)).hypervisor
    vendor = f"{dmi['sys_vendor'] or ''} {dmi['product_name'] or ''}"
    known = next((name for pattern, name in _HYPERVISORS if pattern.search(vendor)), None)
    if virtual:
        return known or "unknown", f"{CPUINFO} (flag hypervisor)"
    if known in {"kvm", "vmware", "virtualbox"}:  # processors other than x86 have no such flag
        return known, f"{DMI}/sys_vendor"
    return None, CPUINFO
