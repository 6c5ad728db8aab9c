"""Level 7: the port runs on an AMD GPU."""

from __future__ import annotations

import os
from pathlib import Path

from rocmend.port.verify.job import Job
from rocmend.port.verify.records import Level
from rocmend.port.verify.result import not_run

__all__ = ["run"]

_NODE = Path("/dev/kfd")


def run(job: Job) -> Level:
    """Say whether there is an AMD GPU to run on; what runs there is the project's own tests and the golden vectors."""
    if not _NODE.exists():
        return not_run("no AMD GPU: there is no /dev/kfd")
    if not os.access(_NODE, os.R_OK | os.W_OK):
        return not_run("/dev/kfd cannot be opened: join the group that owns it (render or video)")
    return not_run(f"no test of {job.root.name} is recorded on an AMD GPU yet")
