"""The GPUs of a machine, in the order that the KFD numbers its nodes.

Every collector that states ``gpu.N.…`` takes N from here. On a card that is split (CPX and the like) each partition is
a node of its own, with its own render node, on one PCI slot.

Sources: https://docs.kernel.org/gpu/amdgpu/; drivers/gpu/drm/amd/amdkfd/kfd_topology.c (node_show and location_id).
"""

from __future__ import annotations

import re

import msgspec

from rocmend.machine.parse.system import parse_int, parse_properties
from rocmend.machine.root import ReadError, Root, natural_key

TOPOLOGY = "/sys/class/kfd/kfd/topology"
NODES = f"{TOPOLOGY}/nodes"
PCI_DEVICES = "/sys/bus/pci/devices"
DRM = "/sys/class/drm"


class GpuNode(msgspec.Struct, frozen=True):
    """A KFD node that is a GPU.

    Attributes:
        index: Position among the GPUs: the N of ``gpu.N``, as the runtime numbers them.
        node: KFD node number.
        path: Its topology folder.
        properties: Its properties file.
        slot: PCI slot, e.g. ``0000:c5:00.0``.
        partition: Position among the nodes of the same card.
        partitions: Number of nodes of the same card.
    """

    index: int
    node: int
    path: str
    properties: dict[str, int]
    slot: str
    partition: int
    partitions: int

    @property
    def render_minor(self) -> int | None:
        """Number of the render node, or None where there is none."""
        return self.properties.get("drm_render_minor") or None


class Topology(msgspec.Struct, frozen=True):
    """What the KFD shows.

    Attributes:
        present: There is a KFD topology at all.
        gpus: The GPUs, in node order.
        hidden: Nodes whose properties may not be read (a container's device rules), with the reason.
    """

    present: bool
    gpus: tuple[GpuNode, ...]
    hidden: dict[int, str]


def pci_slot(location_id: int, domain: int) -> str:
    """Return the PCI slot of a KFD node: bits 15 to 8 bus, 7 to 3 device, 2 to 0 function (31 to 28: the partition)."""
    return f"{domain:04x}:{location_id >> 8 & 0xFF:02x}:{location_id >> 3 & 0x1F:02x}.{location_id & 7}"


def read_topology(root: Root) -> Topology:
    """Read the KFD topology.

    Raises:
        ReadError: The folder of nodes may not be read.
    """
    names = [name for name in root.list_dir(NODES) if re.fullmatch(r"\d{1,6}", name)]
    found: list[tuple[int, str, dict[str, int]]] = []
    hidden: dict[int, str] = {}
    for name in sorted(names, key=natural_key):
        path = f"{NODES}/{name}"
        try:
            properties = parse_properties(root.read_text(f"{path}/properties"))
        except ReadError as error:
            hidden[int(name)] = error.message
            continue
        if properties.get("simd_count", 0) > 0:
            found.append((int(name), path, properties))
    slots = [pci_slot(properties.get("location_id", 0), properties.get("domain", 0)) for _, _, properties in found]
    gpus = tuple(
        GpuNode(
            index=index,
            node=node,
            path=path,
            properties=properties,
            slot=slots[index],
            partition=slots[:index].count(slots[index]),
            partitions=slots.count(slots[index]),
        )
        for index, (node, path, properties) in enumerate(found)
    )
    return Topology(bool(names), gpus, hidden)


def device_folder(root: Root, gpu: GpuNode) -> str:
    """Return the sysfs folder of a GPU's PCI device, by its slot or else through its render node."""
    by_slot = f"{PCI_DEVICES}/{gpu.slot}"
    if root.exists(by_slot) or gpu.render_minor is None:
        return by_slot
    by_node = f"{DRM}/renderD{gpu.render_minor}/device"
    return by_node if root.exists(by_node) else by_slot


def read_or_gap(root: Root, path: str, problems: dict[str, str]) -> str | None:
    """Return a small file's text, None where it is absent; a refusal is noted in ``problems`` under the path."""
    try:
        return root.read_or_none(path, max_bytes=1 << 16)
    except ReadError as error:
        problems[path] = error.message
        return None


def read_number(root: Root, path: str, problems: dict[str, str]) -> int | None:
    """Return a small file's number, None where it is absent or none."""
    return parse_int(read_or_gap(root, path, problems))
