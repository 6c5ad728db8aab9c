"""Graphics and compute devices on the PCI bus, whether or not a driver has taken them.

Sources: https://docs.kernel.org/PCI/sysfs-pci.html; PCI class codes 0x03 (display) and 0x12 (processing accelerator).
"""

from __future__ import annotations

import posixpath
from typing import Any

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.hardware.gpus import PCI_DEVICES
from rocmend.machine.parse.system import parse_int
from rocmend.machine.root import ReadError, Root

_VENDORS = {0x1002: "amd", 0x10DE: "nvidia", 0x8086: "intel"}
_DISPLAY = 0x03
_ACCELERATOR = 0x12


@collector(
    "pci",
    facts={
        "pci.amd_gpus": "AMD GPUs: slot, vendor, device, revision, driver, gfx, name (null for what is not known).",
        "pci.nvidia_gpus": "NVIDIA GPUs, likewise.",
        "pci.intel_gpus": "Intel GPUs, likewise.",
    },
    time_limit_s=4.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Walk the PCI devices."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in _VENDORS.values()}
    try:
        slots = root.list_dir(PCI_DEVICES)
    except ReadError as error:
        for known in found:
            facts.gap(f"pci.{known}_gpus", error.message, source=PCI_DEVICES)
        return
    for slot in slots:
        folder = f"{PCI_DEVICES}/{slot}"
        kind, vendor = _number(root, f"{folder}/class") >> 16, _number(root, f"{folder}/vendor")
        name = _VENDORS.get(vendor)
        if name is None or kind not in {_DISPLAY, _ACCELERATOR} or (kind == _ACCELERATOR and name == "intel"):
            continue
        found[name].append(_device(root, folder, slot, vendor))
    for known, devices in found.items():
        facts.put(f"pci.{known}_gpus", devices, source=PCI_DEVICES)


def _number(root: Root, path: str) -> int:
    try:
        return parse_int(root.read_or_none(path, max_bytes=64)) or 0
    except ReadError:
        return 0


def _device(root: Root, folder: str, slot: str, vendor: int) -> dict[str, Any]:
    device, revision = _number(root, f"{folder}/device"), _number(root, f"{folder}/revision")
    driver = root.link(f"{folder}/driver")
    gfx, name = _products(device, revision) if vendor == 0x1002 else (None, None)
    return {
        "slot": slot,
        "vendor": f"0x{vendor:04x}",
        "device": f"0x{device:04x}",
        "revision": f"0x{revision:02x}",
        "driver": posixpath.basename(driver) if driver else None,
        "gfx": gfx,
        "name": name,
    }


def _products(device: int, revision: int) -> tuple[str | None, str | None]:
    """Return the gfx target and the product name that the product table has for a device, each where it is unique."""
    from rocmend.core import gfx

    wanted = f"0x{device:04x}"
    products = [product for product in gfx.products() if wanted in product.device_ids]
    exact = [product for product in products if f"{wanted}:{revision:02x}" in product.pci]
    targets = {product.gfx for product in products}
    names = {product.name for product in exact or products}
    return (targets.pop() if len(targets) == 1 else None), (names.pop() if len(names) == 1 else None)
