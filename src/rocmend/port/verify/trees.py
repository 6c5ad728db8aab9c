"""A copy of a project's sources that is the original at one time and the port at another, under the same paths."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from rocmend.core.beneath import Beneath
from rocmend.port.cuda.includes import closure
from rocmend.port.verify.job import Job
from rocmend.port.verify.units import Unit, standard

__all__ = ["Tree"]


class Tree:
    """The sources in a folder of their own: copies, which a program that knows its source's path may write to.

    Args:
        job: The run.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self.folder = job.scratch()
        self._copy = Beneath(self.folder)
        self.standard = standard(job.tree)
        self._out = job.scratch()
        self.paths = job.paths
        for path in self.paths:
            place = self.folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(job.root / path, place)

    def originals(self) -> None:
        """Make it the project as it was before the port."""
        for part in self._job.parts:
            self._put(part.path, part.before)

    def ported(self) -> None:
        """Make it the project as it is."""
        for part in self._job.parts:
            self._put(part.path, part.after)

    def out(self, unit: Unit) -> Path:
        """Return where a unit's result goes."""
        return self._out / (re.sub(r"[^\w.]", "_", unit.path) + ".out")

    def holds(self, unit: Unit, pattern: re.Pattern[bytes]) -> bool:
        """Tell whether a unit, or a header of the project that it includes, holds something."""
        sources = self._job.sources
        return any(pattern.search(sources[path]) for path in closure(unit.path, sources))

    def _put(self, path: str, data: bytes | None) -> None:
        self._copy.unlink(path, missing_ok=True)
        if data is not None:
            self._copy.put(path, data)
