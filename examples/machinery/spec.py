"""What a file in ``examples/specs`` says about a machine."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a description: a misspelled key is an error."""


class Os(Strict, frozen=True, kw_only=True):
    """``/etc/os-release``."""

    id: str
    version: str
    name: str
    codename: str = ""


class Kernel(Strict, frozen=True, kw_only=True):
    """The running kernel; ``numa_balancing`` is left out where the kernel has no such switch."""

    release: str
    build: str
    cmdline: str
    numa_balancing: int | None = None
    numa_nodes: int = 1
    modprobe: dict[str, str] = {}
    ttm_pages_limit: int | None = None
    ttm_page_pool_size: int | None = None
    iommu_groups: int = 0


class Host(Strict, frozen=True, kw_only=True):
    """Board, processor and memory."""

    vendor: str
    product: str
    bios: str
    cpu: str
    cpu_vendor: str = "AuthenticAMD"
    cpu_count: int
    memory_kib: int
    available_kib: int
    swap_kib: int = 0


class Who(Strict, frozen=True, kw_only=True):
    """The user who captured the machine."""

    uid: int = 1000
    gid: int = 1000
    groups: tuple[str, ...] = ()
    home: str = "/home/user"


class Driver(Strict, frozen=True, kw_only=True):
    """The amdgpu module; ``version`` is there for AMD's own (DKMS) build only."""

    parameters: dict[str, str] = {}
    version: str = ""
    dkms: str = ""


class Kfd(Strict, frozen=True, kw_only=True):
    """Properties of the GPU's node in ``/sys/class/kfd``; sizes that an older kernel does not tell are left out."""

    simd_count: int
    simd_per_cu: int = 2
    array_count: int
    arrays_per_engine: int = 1
    cu_per_array: int
    wave_size: int = 32
    max_waves_per_simd: int = 16
    lds_kib: int = 64
    max_clock_mhz: int
    cpu_clock_mhz: int
    fw_version: int
    sdma_fw_version: int
    sdma_engines: int = 1
    xgmi_engines: int = 0
    num_xcc: int = 1
    capability: int = 671588992
    hive_id: int = 0
    gws: int = 64
    memory_width: int = 256
    memory_clock_mhz: int = 1000
    cwsr_size: int | None = None
    ctl_stack_size: int | None = None


class Drm(Strict, frozen=True, kw_only=True):
    """Files of the GPU's device folder; clocks are the levels of ``pp_dpm_*`` with the active one starred."""

    vram_total: int
    vram_used: int
    vram_visible: int
    gtt_total: int
    gtt_used: int
    sclk: tuple[str, ...]
    mclk: tuple[str, ...]
    busy_percent: int = 0
    power_uw: int = 0
    temperature_mc: int = 40000
    vbios: str
    performance_level: str = "auto"
    link_speed: str
    max_link_speed: str
    link_width: int
    max_link_width: int


class Gpu(Strict, frozen=True, kw_only=True):
    """GPUs of one kind, one for every slot; ``partitions`` are the compute and the memory partition mode."""

    gfx: str
    name: str
    slots: tuple[str, ...]
    bridge: str
    device: str
    revision: str
    subsystem: str
    pci_class: str = "0x030000"
    numa_nodes: tuple[int, ...] = ()
    boot_vga: int | None = None
    partitions: tuple[str, str] | None = None
    first_card: int = 1
    apu: bool = False
    kfd: Kfd
    drm: Drm
    firmware: dict[str, int]


class Display(Strict, frozen=True, kw_only=True):
    """A display device as the PCI bus shows it; ``bridge`` is what it sits behind, empty for none."""

    slot: str
    bridge: str = ""
    vendor: str
    device: str
    revision: str = "0x00"
    pci_class: str = "0x030000"
    subsystem: str
    driver: str = ""


class Rocm(Strict, frozen=True, kw_only=True):
    """A system-wide ROCm under ``/opt``."""

    version: str
    build: str
    hip: str
    hip_commit: str
    targets: tuple[str, ...]


class Torch(Strict, frozen=True, kw_only=True):
    """An installed PyTorch: ``torch/version.py``, metadata, and what its libraries hold code for."""

    version: str
    commit: str
    hip: str = ""
    cuda: str = ""
    requires: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    components: dict[str, tuple[str, ...]] = {}


class Python(Strict, frozen=True, kw_only=True):
    """The active environment."""

    version: str
    prefix: str
    packages: dict[str, str] = {}
    torch: Torch | None = None


class Icd(Strict, frozen=True, kw_only=True):
    """A Vulkan driver manifest."""

    file: str
    library: str
    api_version: str


class Tools(Strict, frozen=True, kw_only=True):
    """What ROCm's tools print. A tool that is not named is not installed."""

    rocminfo: bool = False
    rocminfo_error: str = ""
    runtime: str = "1.15"
    runtime_ext: str = "1.7"
    module: str = ""
    generic_isas: bool = False
    smi: bool = False
    vulkaninfo: str = ""


class Spec(Strict, frozen=True, kw_only=True):
    """A machine."""

    name: str
    story: str
    captured_at: str
    os: Os
    kernel: Kernel
    host: Host
    who: Who = Who()
    driver: Driver | None = None
    gpus: tuple[Gpu, ...] = ()
    displays: tuple[Display, ...] = ()
    packages: dict[str, str] = {}
    rocm: Rocm | None = None
    python: Python | None = None
    vulkan: tuple[Icd, ...] = ()
    environ: dict[str, str] = {}
    tools: Tools = Tools()
    dmesg: str | None = None
    wsl: bool = False

    def kfd_peers(self, node: int) -> list[int]:
        """Return the KFD nodes of the GPUs that share an XGMI hive with the one at ``node``."""
        first = self.kernel.numa_nodes
        hives = [gpu.kfd.hive_id for gpu in self.gpus for _ in gpu.slots]
        own = hives[node - first]
        return [first + index for index, hive in enumerate(hives) if own and hive == own and first + index != node]

    def node_of(self, gpu: Gpu, offset: int) -> int:
        """Return the NUMA node that a GPU's slot belongs to."""
        return gpu.numa_nodes[offset] if gpu.numa_nodes else 0


def load(path: Path) -> Spec:
    """Read a description.

    Raises:
        msgspec.ValidationError: A key is missing, misspelled or of another type.
    """
    document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return msgspec.convert(document, Spec)
