"""Building small captured machines, and running single collectors on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocmend.core.records import Fact
from rocmend.core.supervise import CommandResult, Ending
from rocmend.machine.captured import CapturedRoot
from rocmend.machine.facts import COLLECTORS, FactSink
from rocmend.machine.layout import Manifest, Tree, command_slug
from rocmend.machine.root import Root, Stat, User

EXAMPLES = Path(__file__).parents[2] / "src" / "rocmend" / "examples" / "machines"


class MachineBuilder:
    """Writes a capture piece by piece."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.tree = Tree(stats={}, links={}, lists={}, denied={}, errors={})
        self.environ: dict[str, str] = {}
        self.measurements: dict[str, Any] = {}
        self.write("machine.json", Manifest("2026-01-02T03:04:05+00:00", "a machine"))

    def write(self, name: str, value: object) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value if isinstance(value, bytes) else msgspec.json.encode(value))

    def file(self, path: str, data: str | bytes) -> None:
        target = self.directory / "root" / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data.encode() if isinstance(data, str) else data)

    def files(self, folder: str, values: dict[str, object]) -> None:
        for name, value in values.items():
            self.file(f"{folder}/{name}", f"{value}\n")

    def stat(self, path: str, kind: str, mode: int, **more: Any) -> None:
        self.tree.stats[path] = Stat(kind, mode, **more)

    def command(self, argv: Sequence[str], stdout: str = "", **more: Any) -> None:
        ended: dict[str, Any] = {"ending": Ending.EXITED, "exit_code": 0} | more
        result = CommandResult(tuple(argv), stdout=stdout, **ended)
        self.write(f"commands/{command_slug(argv)}.json", result)

    def user(self, uid: int, *groups: str) -> None:
        self.write("user.json", User(uid, uid, groups))

    def root(self) -> CapturedRoot:
        self.write("tree.json", self.tree)
        self.write("environ.json", self.environ)
        self.write("measurements.json", self.measurements)
        return CapturedRoot(self.directory)


@pytest.fixture
def machine(tmp_path: Path) -> MachineBuilder:
    return MachineBuilder(tmp_path / "capture")


class Collected:
    """What one collector stated."""

    def __init__(self, sink: FactSink) -> None:
        self.facts = sink.facts
        self.gaps = sink.gaps

    def __getitem__(self, key: str) -> Any:
        return self.facts[key].value

    def fact(self, key: str) -> Fact:
        return self.facts[key]


def run_collector(name: str, root: Root) -> Collected:
    """Run one collector in this process."""
    collector = COLLECTORS.get(name)
    sink = FactSink(name, collector.facts)
    collector.collect(root, sink)
    for fact in sink.facts.values():  # every value must survive JSON unchanged
        assert msgspec.json.decode(msgspec.json.encode(fact.value)) == fact.value, fact
    return Collected(sink)


@pytest.fixture
def collect(machine: MachineBuilder) -> Callable[[str], Collected]:
    """Return a function that runs a collector on the machine being built."""
    return lambda name: run_collector(name, machine.root())
