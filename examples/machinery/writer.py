"""Collects a capture's parts and writes the folder."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.supervise import CommandResult, Ending
from rocmend.machine import layout
from rocmend.machine.root import Stat, User


class Capture:
    """The parts of a capture folder."""

    def __init__(self, name: str, captured_at: str) -> None:
        self.manifest = layout.Manifest(captured_at=captured_at, name=name, rocmend_version="", redacted=True)
        self.files: dict[str, str] = {}
        self.stats: dict[str, Stat] = {}
        self.links: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self.denied: dict[str, str] = {}
        self.commands: list[CommandResult] = []
        self.environ: dict[str, str] = {}
        self.user = User(1000, 1000, ())
        self.measurements: dict[str, Any] = {}

    def file(self, path: str, text: str) -> None:
        """Add a file; sysfs and procfs end every file with a line break, so it is added where it is missing."""
        self.files[path] = text if text.endswith("\n") or not text else f"{text}\n"

    def folder(self, path: str, values: Mapping[str, object]) -> None:
        """Add small files of one folder: name to value."""
        for name, value in values.items():
            self.file(f"{path}/{name}", str(value))

    def tool(
        self, argv: Sequence[str], stdout: str, *, exit_code: int = 0, stderr: str = "", time_ms: float = 80
    ) -> None:
        """Add what a tool printed."""
        result = CommandResult(
            tuple(argv), Ending.EXITED, exit_code=exit_code, stdout=stdout, stderr=stderr, time_ms=time_ms
        )
        self.commands.append(result)

    def write(self, directory: Path) -> None:
        """Write the folder anew."""
        if directory.exists():
            shutil.rmtree(directory)
        for path, text in self.files.items():
            target = directory / layout.ROOT / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        tree = layout.Tree(
            dict(sorted(self.stats.items())),
            dict(sorted(self.links.items())),
            dict(sorted(self.lists.items())),
            dict(sorted(self.denied.items())),
        )
        documents = {
            layout.MANIFEST: self.manifest,
            layout.TREE: tree,
            layout.ENVIRON: dict(sorted(self.environ.items())),
            layout.USER: self.user,
            layout.MEASUREMENTS: dict(sorted(self.measurements.items())),
        }
        for result in self.commands:
            documents[f"{layout.COMMANDS}/{layout.command_slug(result.argv)}.json"] = result
        for name, value in documents.items():
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
