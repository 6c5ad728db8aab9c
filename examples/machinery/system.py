"""Distribution, kernel, processor, memory, access and driver module."""

from __future__ import annotations

from examples.machinery.spec import Spec
from examples.machinery.writer import Capture
from rocmend.machine.root import Stat, User

PAGE_BYTES = 4096
RENDER_GID = 992
VIDEO_GID = 44


def add_system(spec: Spec, capture: Capture) -> None:
    """Add everything that does not depend on a GPU being there."""
    _distribution(spec, capture)
    _kernel(spec, capture)
    _processor_and_memory(spec, capture)
    _user(spec, capture)
    _driver(spec, capture)
    if spec.packages:
        capture.stats["/var/lib/dpkg/status"] = Stat("file", 0o644, size_bytes=4_812_344)
        capture.measurements["packages|/var/lib/dpkg/status"] = dict(sorted(spec.packages.items()))
    if spec.wsl:
        _wsl(capture)
    capture.environ |= {"HOME": spec.who.home, **spec.environ}


def _distribution(spec: Spec, capture: Capture) -> None:
    lines = [
        f'PRETTY_NAME="{spec.os.name}"',
        f'NAME="{spec.os.id.capitalize()}"',
        f'VERSION_ID="{spec.os.version}"',
        f"ID={spec.os.id}",
    ]
    if spec.os.codename:
        lines += [f"VERSION_CODENAME={spec.os.codename}", "ID_LIKE=debian"]
    capture.file("/etc/os-release", "\n".join(lines))


def _kernel(spec: Spec, capture: Capture) -> None:
    kernel = spec.kernel
    capture.file("/proc/sys/kernel/osrelease", kernel.release)
    capture.file(
        "/proc/version", f"Linux version {kernel.release} (buildd@host) (gcc 13.3.0, GNU ld 2.42) {kernel.build}"
    )
    capture.file("/proc/cmdline", kernel.cmdline)
    if kernel.numa_balancing is not None:
        capture.file("/proc/sys/kernel/numa_balancing", str(kernel.numa_balancing))
    last = kernel.numa_nodes - 1
    capture.file("/sys/devices/system/node/online", f"0-{last}" if last else "0")
    per_node = spec.host.cpu_count // kernel.numa_nodes
    for node in range(kernel.numa_nodes):
        cpus = f"{node * per_node}-{(node + 1) * per_node - 1}"
        capture.file(f"/sys/devices/system/node/node{node}/cpulist", cpus)
    for name, text in kernel.modprobe.items():
        capture.file(f"/etc/modprobe.d/{name}", text)
    if kernel.ttm_pages_limit is not None:
        pool = kernel.ttm_page_pool_size or kernel.ttm_pages_limit
        module = "amdttm" if spec.driver and spec.driver.version else "ttm"
        sizes = {"pages_limit": kernel.ttm_pages_limit, "page_pool_size": pool}
        capture.folder(f"/sys/module/{module}/parameters", sizes)
    for group in range(kernel.iommu_groups):
        capture.stats[f"/sys/kernel/iommu_groups/{group}"] = Stat("dir", 0o755)
    if kernel.iommu_groups:
        capture.stats["/sys/class/iommu/ivhd0"] = Stat("dir", 0o755)
    if not spec.wsl:
        capture.file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
    if spec.dmesg is None:
        refusal = "dmesg: read kernel buffer failed: Operation not permitted"
        for argv in _DMESG:
            capture.tool(argv, "", exit_code=1, stderr=f"{refusal}\n", time_ms=2)
    else:
        for argv in _DMESG:
            capture.tool(argv, spec.dmesg.strip("\n") + "\n", time_ms=6)


_DMESG = (("dmesg",),)


def _processor_and_memory(spec: Spec, capture: Capture) -> None:
    host = spec.host
    flags = "fpu sse sse2 avx avx2" + (" hypervisor" if spec.wsl else "")
    processors = (
        f"processor\t: {index}\nvendor_id\t: {host.cpu_vendor}\nmodel name\t: {host.cpu}\nflags\t\t: {flags}\n"
        for index in range(host.cpu_count)
    )
    capture.file("/proc/cpuinfo", "\n".join(processors))
    sizes = {
        "MemTotal": host.memory_kib,
        "MemFree": host.available_kib // 2,
        "MemAvailable": host.available_kib,
        "SwapTotal": host.swap_kib,
        "SwapFree": host.swap_kib,
    }
    capture.file("/proc/meminfo", "\n".join(f"{name + ':':<16}{size:>10} kB" for name, size in sizes.items()))
    if not spec.wsl:
        identity = {"sys_vendor": host.vendor, "product_name": host.product, "bios_version": host.bios}
        capture.folder("/sys/class/dmi/id", identity)
    capture.file("/proc/1/cgroup", "0::/init.scope")


def _user(spec: Spec, capture: Capture) -> None:
    who = spec.who
    capture.user = User(who.uid, who.gid, who.groups)
    privileged = who.uid == 0
    allowed = privileged or "render" in who.groups
    if not spec.gpus or spec.wsl:
        return
    capture.stats["/dev/kfd"] = _device(RENDER_GID, "render", allowed=allowed)
    capture.stats["/dev/dri"] = Stat("dir", 0o755)
    index = 0
    for gpu in spec.gpus:
        for offset in range(len(gpu.slots)):
            card, render = gpu.first_card + offset, 128 + index
            video = privileged or "video" in who.groups
            capture.stats[f"/dev/dri/card{card}"] = _device(VIDEO_GID, "video", allowed=video)
            capture.stats[f"/dev/dri/renderD{render}"] = _device(RENDER_GID, "render", allowed=allowed)
            index += 1


def _device(gid: int, group: str, *, allowed: bool) -> Stat:
    return Stat("char", 0o660, uid=0, gid=gid, readable=allowed, writable=allowed, owner="root", group=group)


def _driver(spec: Spec, capture: Capture) -> None:
    driver = spec.driver
    if driver is None:
        return
    module = "/sys/module/amdgpu"
    capture.folder(f"{module}/parameters", dict(driver.parameters))
    capture.file(f"{module}/refcnt", "24")
    capture.file(f"{module}/initstate", "live")
    path = f"/lib/modules/{spec.kernel.release}"
    if driver.version:
        capture.file(f"{module}/version", driver.version)
        built = f"{path}/updates/dkms/amdgpu.ko.zst"
        capture.stats[f"/var/lib/dkms/amdgpu/{driver.dkms}/{spec.kernel.release}"] = Stat("dir", 0o755)
    else:
        built = f"{path}/kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst"
    capture.stats[built] = Stat("file", 0o644, size_bytes=5_912_004)
    modules = (
        "amdgpu 19824640 24 - Live 0x0000000000000000\namdttm" if driver.version else "amdgpu 19824640 24 - Live 0x0"
    )
    capture.file("/proc/modules", modules.split("\n", maxsplit=1)[0])


def _wsl(capture: Capture) -> None:
    """The Windows host's GPU comes in through dxgkrnl: one device, and libraries mounted from Windows."""
    capture.stats["/dev/dxg"] = Stat("char", 0o666, readable=True, writable=True, owner="root", group="root")
    for library in ("libdxcore.so", "libd3d12.so"):
        capture.stats[f"/usr/lib/wsl/lib/{library}"] = Stat("file", 0o555, size_bytes=827_392)
    capture.file("/proc/sys/fs/binfmt_misc/WSLInterop", "enabled\ninterpreter /init\nflags: PF\noffset 0\nmagic 4d5a")
