"""An in-memory machine for collectors to read."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rocmend.core.supervise import CommandResult, Ending
from rocmend.machine.facts import COLLECTORS, FactSink
from rocmend.machine.root import AbsentError, DeniedError, ReadError, Root, Stat, User


class FakeRoot(Root):
    """Files, links and variables given as dictionaries; a file's folders exist with it."""

    live = False

    def __init__(
        self,
        files: Mapping[str, str | bytes] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        links: Mapping[str, str] | None = None,
        commands: Mapping[tuple[str, ...], CommandResult] | None = None,
        measurements: Mapping[tuple[str, str], Any] | None = None,
        denied: Sequence[str] = (),
    ) -> None:
        self.files = {path: data.encode() if isinstance(data, str) else data for path, data in (files or {}).items()}
        self.env, self.links = dict(env or {}), dict(links or {})
        self.commands, self.measurements = dict(commands or {}), dict(measurements or {})
        self.denied = set(denied)
        self.reads: list[str] = []

    def resolve(self, path: str) -> str:
        """Follow links in every part of a path."""
        for _ in range(50):
            parts = path.strip("/").split("/")
            for end in range(1, len(parts) + 1):
                head = "/" + "/".join(parts[:end])
                if head in self.links:
                    target = posixpath.join(posixpath.dirname(head), self.links[head])
                    path = posixpath.normpath(posixpath.join(target, *parts[end:]))
                    break
            else:
                return posixpath.normpath(path)
        raise ReadError(path, "too many links.")

    def _children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        known = [*self.files, *self.links]
        return sorted({item[len(prefix) :].split("/", 1)[0] for item in known if item.startswith(prefix)})

    def read_bytes(self, path: str, *, max_bytes: int = 1 << 20) -> bytes:
        self.reads.append(path)
        found = self.resolve(path)
        if found in self.denied:
            raise DeniedError(path, "may not be read.")
        if found not in self.files:
            raise AbsentError(path, "is not there.")
        return self.files[found][:max_bytes]

    def list_dir(self, path: str) -> list[str]:
        found = self.resolve(path)
        if found in self.denied:
            raise DeniedError(path, "may not be listed.")
        if found in self.files:
            raise ReadError(path, "is not a directory.")
        return self._children(found)

    def stat(self, path: str) -> Stat | None:
        found = self.resolve(path)
        if found in self.files:
            return Stat("file", 0o644, size_bytes=len(self.files[found]))
        return Stat("dir", 0o755) if self._children(found) else None

    def link(self, path: str) -> str | None:
        return self.links.get(posixpath.normpath(path))

    def environ(self) -> dict[str, str]:
        return dict(self.env)

    def user(self) -> User:
        return User(1000, 1000, ())

    def run(self, argv: Sequence[str], *, time_limit_s: float = 10.0) -> CommandResult:  # noqa: ARG002  nothing runs
        return self.commands.get(tuple(argv)) or CommandResult(tuple(argv), Ending.NOT_FOUND)

    def measure(self, name: str, path: str, function: Callable[[Path], Any]) -> Any:  # noqa: ARG002  nothing is read
        if (name, path) not in self.measurements:
            raise AbsentError(path, "was not measured.")
        return self.measurements[name, path]


Collect = Callable[[str, Root], FactSink]


@pytest.fixture
def fake_root() -> type[FakeRoot]:
    return FakeRoot


@pytest.fixture
def collect() -> Collect:
    """Run one collector by name and return its sink."""

    def run(name: str, root: Root) -> FactSink:
        collector = COLLECTORS.get(name)
        sink = FactSink(name, collector.facts)
        collector.collect(root, sink)
        missing = [key for key in collector.facts if "*" not in key and key not in sink.facts and key not in sink.gaps]
        groups = [key[:-1] for key in sink.gaps if key.endswith(".*")]
        assert [key for key in missing if not any(key.startswith(group) for group in groups)] == []
        return sink

    return run
