"""The file system that a path lies on, as the table of mounts says."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["file_system", "shared_by_hosts"]

_SHARED_BY_HOSTS = re.compile(
    r"nfs4?|cifs|smb.*|9p|fuse\..+|afs|ceph|lustre|gpfs|beegfs|pvfs2|glusterfs|virtiofs|drvfs"
)
"""File systems on which the locks and shared memory of one host may not be seen by the others.

Sources: nfs(5), ``local_lock``; https://www.sqlite.org/wal.html, "does not work over a network filesystem"
"""


def shared_by_hosts(path: Path, mounts: str | None = None) -> bool:
    """Return whether a path lies on a file system that other hosts may write too.

    Args:
        path: An absolute path without links.
        mounts: Text of ``/proc/self/mountinfo``; None reads it.
    """
    return _SHARED_BY_HOSTS.fullmatch(file_system(path, mounts)) is not None


def file_system(path: Path, mounts: str | None = None) -> str:
    """Return the type of the file system that a path lies on: ``ext4``, ``tmpfs`` …; empty where it is not known.

    Args:
        path: An absolute path without links.
        mounts: Text of ``/proc/self/mountinfo``; None reads it.

    Source: proc_pid_mountinfo(5): field 5 is the mount point, the first after the lone dash is the type.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(errors="replace")
        except OSError:
            return ""
    best, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, after = left.split(" "), right.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
        inside = point == "/" or path == Path(point) or Path(point) in path.parents
        if inside and len(point) >= best:  # a later mount on the same point hides the earlier one
            best, kind = len(point), after[0]
    return kind
