"""The distribution."""

from __future__ import annotations

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.system import parse_os_release
from rocmend.machine.root import Root

PATHS = ("/etc/os-release", "/usr/lib/os-release")
OSTREE = "/run/ostree-booted"


@collector(
    "os",
    facts={
        "os.id": "Distribution's id: ubuntu, debian, fedora, arch …",
        "os.like": "Ids of the distributions it descends from.",
        "os.version": "Its version number; null for a rolling one.",
        "os.codename": "Its version's code name; null where it has none.",
        "os.name": "Its name as it prints it.",
        "os.ostree": "Its system is an image that rpm-ostree changes (Silverblue, Bazzite), not packages on a disk.",
    },
    time_limit_s=2.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Read os-release, and ostree's mark."""
    for path in PATHS:
        text = root.read_or_none(path)
        if text is None:
            continue
        values = parse_os_release(text)
        facts.put("os.ostree", root.exists(OSTREE), source=OSTREE)
        facts.put("os.id", values.get("ID", "linux"), source=path)
        facts.put("os.like", values.get("ID_LIKE", "").split(), source=path)
        facts.put("os.version", values.get("VERSION_ID"), source=path)
        facts.put("os.codename", values.get("VERSION_CODENAME") or values.get("UBUNTU_CODENAME"), source=path)
        facts.put("os.name", values.get("PRETTY_NAME") or values.get("NAME", "Linux"), source=path)
        return
