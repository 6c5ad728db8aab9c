"""The amdgpu driver: loaded or not, the kernel's own or DKMS, its parameters, and the memory limits of TTM.

Sources: https://docs.kernel.org/gpu/amdgpu/module-parameters.html; dkms(8); modprobe.d(5). Only the DKMS package gives
the module a version, which is also how rocm-smi tells the two.
"""

from __future__ import annotations

import posixpath

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.system import parse_int, parse_modprobe
from rocmend.machine.root import ReadError, Root, natural_key

MODULE = "/sys/module/amdgpu"
OSRELEASE = "/proc/sys/kernel/osrelease"
DKMS = "/var/lib/dkms/amdgpu"
MODPROBE_DIRS = (
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
)
DKMS_FOLDERS = ("updates/dkms", "updates", "extra", "extra/amdgpu", "weak-updates")
IN_TREE_FOLDER = "kernel/drivers/gpu/drm/amd/amdgpu"
PAGE_BYTES = 4096
"""Page size of x86-64, in bytes; other architectures are asked."""

_MODULES = ("amdgpu", "amdttm", "ttm", "amdkcl", "amdkfd", "amd_sched", "amd_iommu", "amdxdna", "radeon")


@collector(
    "amdgpu",
    facts={
        "amdgpu.loaded": "The amdgpu module is in the running kernel.",
        "amdgpu.origin": "Where the driver comes from: in-tree, dkms, absent, unknown.",
        "amdgpu.version": "Version of the loaded module (only DKMS builds have one); null otherwise.",
        "amdgpu.dkms_version": "Version of the DKMS package built for the running kernel, else of the newest; or null.",
        "amdgpu.dkms_built": "A DKMS build for the running kernel is on disk.",
        "amdgpu.params": "Parameters of the loaded module that the user may read: name to value.",
        "amdgpu.blacklisted": "modprobe.d or the command line keeps amdgpu from loading by itself.",
        "amdxdna.loaded": "The NPU driver amdxdna is in the running kernel.",
        "ttm.module": "Module that limits GTT memory: ttm, or amdttm of the DKMS driver; null where neither is loaded.",
        "ttm.pages_limit": "Most pages that all GPU buffers in system memory may take.",
        "ttm.page_pool_size": "Pages kept for reuse.",
        "ttm.limit_bytes": "pages_limit in bytes.",
        "modprobe.options": "Options of AMD's modules in modprobe.d: module.parameter to value.",
    },
    time_limit_s=3.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Read /sys/module, /lib/modules, /var/lib/dkms and modprobe.d."""
    release = _text(root, OSRELEASE)
    loaded = root.exists(MODULE)
    version = _text(root, f"{MODULE}/version") or None
    facts.put("amdgpu.loaded", loaded, source=MODULE)
    facts.put("amdgpu.version", version, source=f"{MODULE}/version")
    facts.put("amdxdna.loaded", root.exists("/sys/module/amdxdna"), source="/sys/module/amdxdna")
    on_disk = _dkms_module(root, release)
    facts.put("amdgpu.dkms_built", on_disk is not None, source=on_disk or f"/lib/modules/{release}")
    facts.put("amdgpu.dkms_version", _dkms_version(root, release), source=DKMS)
    origin, source = _origin(root, release, loaded=loaded, version=version, on_disk=on_disk)
    facts.put("amdgpu.origin", origin, source=source)
    facts.put("amdgpu.params", _params(root), source=f"{MODULE}/parameters")
    _ttm(root, facts, dkms=origin == "dkms")
    _modprobe(root, facts)


def _text(root: Root, path: str) -> str:
    try:
        return root.read_or_none(path, max_bytes=1 << 16) or ""
    except ReadError:
        return ""


def _names(root: Root, path: str) -> list[str]:
    try:
        return root.list_dir(path)
    except ReadError:
        return []


def _module_in(root: Root, folder: str) -> str | None:
    """Return the path of an amdgpu module in a folder, compressed or not."""
    for name in _names(root, folder):
        if name in {"amdgpu.ko", "amdgpu.ko.xz", "amdgpu.ko.zst", "amdgpu.ko.gz"}:
            return posixpath.join(folder, name)
    return None


def _dkms_module(root: Root, release: str) -> str | None:
    if not release:
        return None
    folders = (f"/lib/modules/{release}/{folder}" for folder in DKMS_FOLDERS)
    return next((found for folder in folders if (found := _module_in(root, folder))), None)


def _dkms_version(root: Root, release: str) -> str | None:
    """Return the package version that DKMS built for this kernel, else the newest it holds."""
    versions = [name for name in _names(root, DKMS) if name[:1].isdigit()]
    built = [version for version in versions if release and release in _names(root, f"{DKMS}/{version}")]
    return max(built or versions, key=natural_key, default=None)


def _origin(root: Root, release: str, *, loaded: bool, version: str | None, on_disk: str | None) -> tuple[str, str]:
    if loaded:
        return ("dkms" if version else "in-tree"), f"{MODULE}/version"
    if on_disk:
        return "dkms", on_disk
    folder = f"/lib/modules/{release}"
    in_tree = _module_in(root, f"{folder}/{IN_TREE_FOLDER}") if release else None
    if in_tree:
        return "in-tree", in_tree
    return ("absent", folder) if release and _names(root, folder) else ("unknown", folder)


def _params(root: Root) -> dict[str, str]:
    folder = f"{MODULE}/parameters"
    found = {}
    for name in _names(root, folder):
        try:
            found[name] = root.read_text(f"{folder}/{name}", max_bytes=4096).strip()
        except ReadError:
            continue  # some are for root only
    return found


def _ttm(root: Root, facts: FactSink, *, dkms: bool) -> None:
    for module in ("amdttm", "ttm") if dkms else ("ttm", "amdttm"):
        folder = f"/sys/module/{module}/parameters"
        pages = parse_int(_text(root, f"{folder}/pages_limit"))
        if pages is None:
            continue
        facts.put("ttm.module", module, source=folder)
        facts.put("ttm.pages_limit", pages, source=f"{folder}/pages_limit")
        facts.put("ttm.limit_bytes", pages * _page_bytes(root), source=f"{folder}/pages_limit", raw=f"{pages} pages")
        pool = parse_int(_text(root, f"{folder}/page_pool_size"))
        if pool is not None:
            facts.put("ttm.page_pool_size", pool, source=f"{folder}/page_pool_size")
        return
    facts.put("ttm.module", None, source="/sys/module/ttm")


def _page_bytes(root: Root) -> int:
    architecture = _text(root, "/proc/sys/kernel/arch")  # since Linux 6.1
    if architecture in {"", "x86_64"}:
        return PAGE_BYTES
    result = root.run(["getconf", "PAGE_SIZE"], time_limit_s=1.0)
    return (parse_int(result.stdout) if result.ok else None) or PAGE_BYTES


def _modprobe(root: Root, facts: FactSink) -> None:
    """Read modprobe.d: of two files with one name that in the earlier folder counts."""
    files: dict[str, str] = {}
    for folder in MODPROBE_DIRS:
        for name in _names(root, folder):
            if name.endswith(".conf"):
                files.setdefault(name, f"{folder}/{name}")
    options: dict[str, str] = {}
    blacklisting = []
    for name in sorted(files):
        found, blacklisted = parse_modprobe(_text(root, files[name]))
        chosen = {key: value for key, value in found.items() if key.partition(".")[0] in _MODULES}
        if chosen:
            options |= chosen
        if "amdgpu" in blacklisted:
            blacklisting.append(files[name])
    cmdline = _text(root, "/proc/cmdline")
    if any(
        word.partition("=")[0] in {"modprobe.blacklist", "module_blacklist"}
        and "amdgpu" in word.partition("=")[2].split(",")
        for word in cmdline.split()
    ):
        blacklisting.append("/proc/cmdline")
    facts.put("modprobe.options", options, source="/etc/modprobe.d, /usr/lib/modprobe.d")
    facts.put("amdgpu.blacklisted", bool(blacklisting), source=", ".join(blacklisting) or "/etc/modprobe.d")
