"""A capture, replayed, gives the facts of the machine that was captured, without what identifies it."""

from __future__ import annotations

import json
import os
import pwd
import re
import socket
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rocmend.core.errors import UsageError
from rocmend.core.redact import here
from rocmend.core.supervise import CommandResult, Ending
from rocmend.machine import capture as capture_module
from rocmend.machine.capture import Capture, capture
from rocmend.machine.captured import CapturedRoot
from rocmend.machine.collect import open_machine, snapshot
from rocmend.machine.facts import Machine
from rocmend.machine.layout import command_slug, measurement_key
from rocmend.machine.live import LiveRoot
from rocmend.machine.parse.environment import is_kept
from rocmend.machine.parse.system import parse_cmdline
from rocmend.machine.recording import Recording
from rocmend.machine.root import DEFAULT_MAX_BYTES, AbsentError, DeniedError, ReadError, Stat, User
from rocmend.machine.trim import trim

from .conftest import EXAMPLES, MachineBuilder


class Pretended(LiveRoot):
    """A captured machine that is read, and recorded, as if it were the running one."""

    def __init__(self, inner: CapturedRoot) -> None:
        super().__init__(recording=True)
        self.inner = inner

    @property
    def kept(self) -> Recording:
        assert self.record is not None
        return self.record

    def read_bytes(self, path: str, *, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
        try:
            data = self.inner.read_bytes(path, max_bytes=max_bytes)
        except ReadError as error:
            self._note_failure(path, error)
            raise
        self.kept.add_file(path, data)
        return data

    def list_dir(self, path: str) -> list[str]:
        try:
            names = self.inner.list_dir(path)
        except ReadError as error:
            self._note_failure(path, error)
            raise
        if names or self.inner.exists(path):
            self.kept.lists[path] = names
        return names

    def stat(self, path: str) -> Stat | None:
        found = self.inner.stat(path)
        if found is not None:
            self.kept.stats[path] = found
        return found

    def link(self, path: str) -> str | None:
        target = self.inner.link(path)
        if target is not None:
            self.kept.links[path] = target
        return target

    def environ(self) -> dict[str, str]:
        found = self.inner.environ()
        self.kept.environ = {name: value for name, value in found.items() if is_kept(name)}
        return found

    def user(self) -> User:
        self.kept.user = self.inner.user()
        return self.kept.user

    def run(self, argv: Sequence[str], *, time_limit_s: float = 10.0) -> CommandResult:
        result = self.inner.run(argv, time_limit_s=time_limit_s)
        if result.ending is not Ending.NOT_FOUND:
            self.kept.commands[command_slug(argv)] = result
        return result

    def measure(self, name: str, path: str, function: Callable[[Path], Any]) -> Any:
        value = self.inner.measure(name, path, function)
        self.kept.measurements[measurement_key(name, path)] = value
        return value


def same_facts(taken: Capture, replayed: Machine) -> None:
    """Check that a replay gives the captured machine's facts and gaps, but for what was redacted."""
    redactor = taken.redactor
    expected = {key: redactor.json(fact.value) for key, fact in taken.machine.facts.items()}
    expected["kernel.params"] = parse_cmdline(redactor.text(taken.machine.value("kernel.cmdline", "")))
    expected["user.groups"] = [redactor.group(name) for name in taken.machine.value("user.groups")]
    found = {"kernel.params": {}} | {key: fact.value for key, fact in replayed.facts.items()}
    different = {key for key in expected | found if expected.get(key, "?") != found.get(key, "?")}
    assert not different, {key: (expected.get(key), found.get(key)) for key in sorted(different)}
    gaps = {key: redactor.text(gap.reason) for key, gap in taken.machine.gaps.items()}
    assert gaps == {key: gap.reason for key, gap in replayed.gaps.items()}


def everything(directory: Path) -> str:
    """Return all text of a capture, names of files included."""
    names = "\n".join(str(path.relative_to(directory)) for path in directory.rglob("*"))
    texts = (path.read_text(errors="replace") for path in directory.rglob("*") if path.is_file())
    return names + "\n".join(texts)


@pytest.fixture(autouse=True)
def this_interpreter_is_the_active_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(Path(os.__file__).parents[2]))


def test_this_machine(tmp_path: Path) -> None:
    lines: list[str] = []
    taken = capture(tmp_path / "here", progress=lines.append)
    assert lines
    assert taken.files > 5
    root = open_machine(tmp_path / "here")
    replayed = snapshot(root, name="here")
    same_facts(taken, replayed)
    assert replayed.captured_at == taken.machine.captured_at
    assert {run.name for run in replayed.collectors} == {run.name for run in taken.machine.collectors}
    text = everything(tmp_path / "here")
    assert len(text) > 1000
    manifest = json.loads((tmp_path / "here" / "machine.json").read_text())
    assert manifest["redacted"] is True
    assert manifest["name"] == "here"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("directory", sorted(EXAMPLES.glob("*/machine.json")), ids=lambda path: path.parent.name)
def test_every_shipped_machine_captured_again(directory: Path, tmp_path: Path) -> None:
    root = Pretended(CapturedRoot(directory.parent))
    taken = capture(tmp_path / "again", root=root)
    same_facts(taken, snapshot(open_machine(tmp_path / "again"), name="again"))


def private_machine(machine: MachineBuilder) -> Pretended:
    machine.user(1001, "alice", "render", "dl-research")
    machine.environ.update(
        {
            "HOME": "/home/alice",
            "VIRTUAL_ENV": "/home/alice/secret-project/venv",
            "PATH": "/home/alice/.secret-tools/bin:/usr/bin",
            "OLLAMA_HOST": "10.11.12.13:11434",
        }
    )
    machine.file("/home/alice/secret-project/venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.12.3\n")
    site = "/home/alice/secret-project/venv/lib/python3.12/site-packages"
    machine.file(f"{site}/torch-2.9.1+rocm7.1.dist-info/METADATA", "Name: torch\nVersion: 2.9.1+rocm7.1\n")
    machine.file(f"{site}/torch/version.py", "__version__ = '2.9.1+rocm7.1'\nhip = '7.1.25424'\ncuda = None\n")
    machine.file(f"{site}/unreleased_thing-1.0.dist-info/METADATA", "Name: unreleased-thing\nVersion: 1.0\n")
    machine.file("/home/alice/diary.txt", "dear diary")
    machine.file("/proc/cmdline", "root=UUID=1b4e28ba-2fa1-11d2-883f-0016d3cca427 quiet amdgpu.cwsr_enable=0\n")
    machine.file("/proc/sys/kernel/osrelease", "6.17.0-7-generic\n")
    machine.files(
        "/sys/class/kfd/kfd/topology/nodes/1",
        {"properties": "simd_count 80\nsimd_per_cu 2\ngfx_target_version 110501\nunique_id 11420932837461522459"},
    )
    machine.stat("/dev/kfd", "char", 0o660, uid=0, gid=992, group="render", writable=True)
    machine.stat("/dev/dri/renderD128", "char", 0o660, uid=1001, gid=1200, owner="alice", group="dl-research")
    log = (
        "[    1.0] usb 1-1: SerialNumber: 4C530001\n"
        "[    2.0] wlan0: authenticate with 3c:7c:3f:1a:2b:3c (HomeNet)\n"
        "[    3.0] amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=SUSPEND\n"
    )
    machine.command(["dmesg"], log)
    machine.command(["rocminfo"], exit_code=1, stderr='alice is not member of "render" group\n')
    return Pretended(machine.root())


def test_nothing_private_is_kept(machine: MachineBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_module, "users", lambda: {"alice"})
    monkeypatch.setattr(capture_module, "hosts", lambda: {"thunderbird"})
    taken = capture(tmp_path / "out", root=private_machine(machine))
    text = everything(tmp_path / "out")
    for secret in (
        *("alice", "diary", "unreleased", "secret-tools", "dl-research", "10.11.12.13", "1b4e28ba"),
        *("11420932837461522459", "4C530001", "3c:7c:3f", "1001", "1200", "HomeNet"),
    ):
        assert secret not in text, secret
    replayed = snapshot(open_machine(tmp_path / "out"), name="out")
    for key, value in (
        ("dmesg.mes_hang", 1),
        ("torch.version", "2.9.1+rocm7.1"),
        ("gpu.0.gfx_target", "gfx1151"),
        ("gpu.0.unique_id_present", True),
        ("kernel.params", {"root": "redacted", "quiet": None, "amdgpu.cwsr_enable": "0"}),
        ("user.groups", ["group1", "render", "user1"]),
        ("rocminfo.status", "denied"),
        ("env.VIRTUAL_ENV", "/home/user1/secret-project/venv"),
        ("user.uid", 1000),
        ("dri.group", "group1"),
    ):
        found = replayed.value(key)
        assert (sorted(found) if key == "user.groups" else found) == value, key
    assert taken.redactor.replaced["user"] == 1
    assert (tmp_path / "out").stat().st_mode & 0o055 == 0o055


def test_nothing_that_is_planted_is_kept(
    machine: MachineBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_module, "users", lambda: {"anna", "jdoe", "First Last", "marek.nowak"})
    monkeypatch.setattr(capture_module, "hosts", lambda: {"gpu-box.corp.example", "zephyr7"})
    table = tomllib.loads((Path(__file__).parents[1] / "core/redact/planted.toml").read_text(encoding="utf-8"))
    marked = [row for kind in table["kind"] for row in kind["planted"]]
    texts = [re.sub("[⟦⟧]", "", row) for row in marked]
    machine.environ.update({f"ROCM_NOTE_{number}": text for number, text in enumerate(texts)})
    machine.file("/proc/cmdline", " ".join(texts))
    machine.command(["rocminfo"], exit_code=1, stderr="\n\n".join(texts))
    capture(tmp_path / "out", root=Pretended(machine.root()))
    text = everything(tmp_path / "out").casefold()
    assert text.count("rocm_note_") >= len(texts)
    secrets = {secret for row in marked for secret in re.findall("⟦(.*?)⟧", row, re.DOTALL)}
    assert [secret for secret in secrets if secret.casefold() in text] == []


def test_the_real_names_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "somebody")
    users = here.users()
    assert "somebody" in users
    assert "root" not in users
    people = {entry.pw_name for entry in pwd.getpwall() if 1000 <= entry.pw_uid < 65534}
    assert people <= users
    assert socket.gethostname() in here.hosts()


class TestOverwriting:
    def test_an_empty_folder_is_replaced_and_a_capture_where_it_is_asked_for(
        self, machine: MachineBuilder, tmp_path: Path
    ) -> None:
        target = tmp_path / "out"
        target.mkdir()
        machine.file("/etc/os-release", "ID=debian\n")
        capture(target, root=Pretended(machine.root()))
        (target / "root" / "marker").write_text("old")
        with pytest.raises(UsageError, match="holds a capture, which is not overwritten"):
            capture(target, root=Pretended(machine.root()))
        assert (target / "root" / "marker").exists()
        capture(target, root=Pretended(machine.root()), force=True)
        assert not (target / "root" / "marker").exists()
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

    @pytest.mark.parametrize("other", ["notes.txt", ".git/config", "commands/run.sh", "root/link", "empty/"])
    def test_a_capture_with_anything_else_in_it_is_never_replaced(
        self, machine: MachineBuilder, tmp_path: Path, other: str
    ) -> None:
        target = tmp_path / "out"
        capture(target, root=Pretended(machine.root()))
        (target / other).parent.mkdir(exist_ok=True, parents=True)
        if other == "root/link":
            (target / other).parent.mkdir(exist_ok=True)
            (target / other).symlink_to(tmp_path)
        elif other.endswith("/"):
            (target / other).mkdir()
        else:
            (target / other).write_text("mine")
        for force in (False, True):
            with pytest.raises(UsageError, match="not overwritten"):
                capture(target, root=Pretended(machine.root()), force=force)
        assert os.path.lexists(target / other)

    def test_anything_else_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / "thesis.tex").write_text("x")
        (tmp_path / "file").write_text("x")
        (tmp_path / "link").symlink_to(tmp_path / "nowhere")
        for name in ("work", "file", "link"):
            with pytest.raises(UsageError, match="not overwritten"):
                capture(tmp_path / name)
        assert (tmp_path / "work" / "thesis.tex").read_text() == "x"

    def test_a_failure_leaves_nothing(
        self, machine: MachineBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root = Pretended(machine.root())

        def fail(*_args: object, **_more: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(capture_module, "write", fail)
        with pytest.raises(OSError, match="No space"):
            capture(tmp_path / "out", root=root)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["capture"]

    def test_needs_a_recording(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="recorded"):
            capture(tmp_path / "out", root=LiveRoot())


def test_paths_that_cannot_be_kept_become_errors(tmp_path: Path, machine: MachineBuilder) -> None:
    root = Pretended(machine.root())
    root.kept.files = {"/a": b"1", "/a/b": b"2", "/" + "x" * 300: b"3", "/ok": b"4"}
    taken = capture(tmp_path / "out", root=root)
    assert taken.files >= 2
    replayed = CapturedRoot(tmp_path / "out")
    assert replayed.read_text("/a") == "1"
    assert replayed.read_text("/ok") == "4"
    with pytest.raises(ReadError, match="could not be kept"):
        replayed.read_text("/a/b")


def test_trimming_keeps_what_was_used() -> None:
    record = Recording(
        files={"/opt/rocm-7.1.0/.info/version": b"7.1.0"},
        lists={
            "/opt": ["rocm-7.1.0", "acme-trading", "therock"],
            "/home/alice": ["rocm-nightly", "diary.txt"],
            "/sys/bus/pci/devices": ["0000:00:00.0"],
            "/x/site-packages": ["torch-2.9.0.dist-info", "acme_secret-1.dist-info", "torch"],
        },
        stats={"/home/alice/tools/bin/python3": Stat("file", 0o755)},
        environ={"PATH": "/home/alice/tools/bin:/home/alice/games/bin:/usr/bin:/opt/rocm/bin", "HSA_X": "/home/a/b"},
    )
    trimmed = trim(record)
    assert trimmed.lists == {
        "/opt": ["rocm-7.1.0", "therock"],
        "/home/alice": ["rocm-nightly"],
        "/sys/bus/pci/devices": ["0000:00:00.0"],
        "/x/site-packages": ["torch-2.9.0.dist-info"],
    }
    assert trimmed.environ == {"PATH": "/home/alice/tools/bin:/usr/bin:/opt/rocm/bin", "HSA_X": "/home/a/b"}
    assert trimmed.files == record.files


def test_refusals_survive_a_capture(machine: MachineBuilder, tmp_path: Path) -> None:
    machine.tree.denied["/sys/kernel/debug/dri"] = "permission denied."
    machine.tree.errors["/sys/module/amdgpu/version"] = "cannot be read: Input/output error."
    root = Pretended(machine.root())
    for path in ("/sys/kernel/debug/dri", "/sys/module/amdgpu/version"):
        with pytest.raises(ReadError):
            root.read_text(path)
    capture(tmp_path / "out", root=root)
    replayed = CapturedRoot(tmp_path / "out")
    with pytest.raises(DeniedError):
        replayed.list_dir("/sys/kernel/debug/dri")
    with pytest.raises(ReadError, match="Input/output") as caught:
        replayed.read_text("/sys/module/amdgpu/version")
    assert not isinstance(caught.value, AbsentError)
