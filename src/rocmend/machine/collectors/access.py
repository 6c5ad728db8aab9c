"""Who may use the GPUs: device files, their groups and ours."""

from __future__ import annotations

import os
from pathlib import Path

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.root import ReadError, Root, Stat

KFD = "/dev/kfd"
DRI = "/dev/dri"
DXG = "/dev/dxg"
GROUPS = "/etc/group"
GPU_GROUPS = frozenset({"render", "video"})
MAX_GROUP_CHARS = 1 << 22


@collector(
    "access",
    facts={
        "user.uid": "User id of whoever runs this.",
        "user.groups": "Names of their groups (ids where a group has no name here).",
        "user.configured_groups": "Of render and video, those /etc/group puts them in; effective after a new login.",
        "kfd.present": "/dev/kfd is there.",
        "kfd.readable": "The user can read /dev/kfd.",
        "kfd.writable": "The user can write /dev/kfd.",
        "kfd.group": "Group that owns /dev/kfd; null where it is absent.",
        "dri.render_nodes": "Paths of /dev/dri/renderD*.",
        "dri.accessible": "The user can read and write every render node; null where there is none.",
        "dri.inaccessible": "Render nodes that the user cannot read and write.",
        "dri.group": "Group that owns the first render node; null where there is none.",
        "dxg.present": "/dev/dxg, the GPU as WSL 2 shows it, is there.",
    },
    time_limit_s=3.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Look at the device files as the current user."""
    user = root.user()
    facts.put("user.uid", user.uid, source="the current user")
    facts.put("user.groups", list(user.groups), source="the current user")
    try:
        configured = root.measure("configured-groups", GROUPS, _configured_groups)
        facts.put("user.configured_groups", configured, source=GROUPS)
    except ReadError as error:
        facts.gap("user.configured_groups", error.message, source=GROUPS)
    kfd = root.stat(KFD)
    facts.put("kfd.present", kfd is not None, source=KFD)
    facts.put("kfd.readable", kfd is not None and kfd.readable, source=KFD, raw=_mode(kfd))
    facts.put("kfd.writable", kfd is not None and kfd.writable, source=KFD, raw=_mode(kfd))
    facts.put("kfd.group", _group(kfd), source=KFD, raw=_mode(kfd))
    facts.put("dxg.present", root.exists(DXG), source=DXG)
    try:
        nodes = root.glob(DRI, "renderD*")
    except ReadError as error:
        for key in ("dri.render_nodes", "dri.accessible", "dri.inaccessible", "dri.group"):
            facts.gap(key, error.message, source=DRI)
        return
    stats = {path: root.stat(path) for path in nodes}
    closed = [path for path, stat in stats.items() if stat is None or not (stat.readable and stat.writable)]
    facts.put("dri.render_nodes", nodes, source=DRI)
    facts.put("dri.accessible", not closed if nodes else None, source=DRI)
    facts.put("dri.inaccessible", closed, source=DRI, raw=", ".join(f"{path} {_mode(stats[path])}" for path in closed))
    first = stats[nodes[0]] if nodes else None
    facts.put("dri.group", _group(first), source=nodes[0] if nodes else DRI, raw=_mode(first))


def _configured_groups(path: Path) -> list[str]:
    """Return which of the GPU groups list the current account; the file itself names other people and is not kept."""
    import pwd

    try:
        account = pwd.getpwuid(os.geteuid())
    except KeyError:
        return []
    with path.open(encoding="utf-8", errors="replace") as file:
        return gpu_groups(file.read(MAX_GROUP_CHARS), account.pw_name, account.pw_gid)


def gpu_groups(text: str, user: str, gid: int) -> list[str]:
    """Return those of render and video that a group file (group(5)) puts a user in.

    Args:
        text: The file.
        user: Name of the account.
        gid: Its primary group.
    """
    found = []
    for line in text.splitlines():
        fields = line.split(":")
        if len(fields) == 4 and fields[0] in GPU_GROUPS and (user in fields[3].split(",") or fields[2] == str(gid)):
            found.append(fields[0])
    return sorted(found)


def _group(stat: Stat | None) -> str | None:
    return None if stat is None else stat.group or str(stat.gid)


def _mode(stat: Stat | None) -> str:
    return "" if stat is None else f"{stat.mode:04o} {stat.owner or stat.uid}:{stat.group or stat.gid}"
