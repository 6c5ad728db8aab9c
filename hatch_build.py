"""Puts the manual pages into a wheel: they are made from the commands when it is built."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualPages(BuildHookInterface):  # type: ignore[misc]  # hatchling is there only when a wheel is built
    """Adds ``share/man/man1/*.1`` to a wheel that is not an editable one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the pages."""
        self.folder = Path(tempfile.mkdtemp(prefix="rocmend-man-"))
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root) / "src"))
        from rocmend.cli.manual import manual_pages

        for name, text in manual_pages().items():
            (self.folder / name).write_text(text, encoding="utf-8")
            build_data["shared_data"][str(self.folder / name)] = f"share/man/man1/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was only there to be packed."""
        del version, build_data, artifact_path
        shutil.rmtree(self.folder, ignore_errors=True)
