"""A machine that uses an extracted ROCm tarball."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rocmend.core.errors import UsageError
from rocmend.core.places import expanded
from rocmend.core.records import Fact
from rocmend.machine.facts import Machine


def with_rocm_path(machine: Machine, path: Path, *, check: bool) -> Machine:
    """Return the machine with the extracted tarball at ``path`` as its ROCm.

    Args:
        machine: The facts as they were read.
        path: The folder into which a ROCm tarball was extracted.
        check: Whether the folder is on this machine and so can be looked at.

    Raises:
        UsageError: The folder holds no ROCm.
    """
    absolute = expanded(path, "--rocm-path").absolute()
    if check and not (absolute / "lib").is_dir():
        raise UsageError(
            "--rocm-path",
            f"expected the folder of an extracted ROCm tarball, but {absolute} has no lib folder in it.",
            next_step="Name the folder that holds bin, lib and include.",
        )
    source = "--rocm-path"
    facts = machine.facts | {
        "rocm.path": Fact("rocm.path", str(absolute), source),
        "rocm.kind": Fact("rocm.kind", "therock-tarball", source),
    }
    return msgspec.structs.replace(machine, facts=facts)
