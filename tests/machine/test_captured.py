"""A captured machine serves what was captured, and nothing else, however hostile the folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmend.core.errors import DataError, UsageError
from rocmend.core.records import SCHEMA_VERSION
from rocmend.core.supervise import Ending
from rocmend.machine import captured, layout
from rocmend.machine.captured import CapturedRoot
from rocmend.machine.layout import command_slug
from rocmend.machine.root import AbsentError, DeniedError, ReadError, User

from .conftest import MachineBuilder


class TestServing:
    def test_files(self, machine: MachineBuilder) -> None:
        machine.file("/etc/hostname", "here\n")
        root = machine.root()
        assert root.read_text("/etc/hostname") == "here\n"
        assert root.read_or_none("/etc/../etc//hostname") == "here"
        assert root.read_bytes("/etc/hostname", max_bytes=2) == b"he"
        assert root.read_or_none("/etc/absent") is None
        with pytest.raises(AbsentError):
            root.read_text("/etc/absent")
        with pytest.raises(ReadError, match="not a regular file"):
            root.read_text("/etc")

    def test_listing_and_stat_fall_back_to_the_files(self, machine: MachineBuilder) -> None:
        machine.file("/sys/nodes/10/x", "1")
        machine.file("/sys/nodes/2/x", "1")
        root = machine.root()
        assert root.list_dir("/sys/nodes") == ["10", "2"]
        assert root.glob("/sys/nodes", "*") == ["/sys/nodes/2", "/sys/nodes/10"]
        assert root.list_dir("/absent") == []
        stat = root.stat("/sys/nodes/2/x")
        assert stat is not None
        assert (stat.kind, stat.size_bytes, stat.readable, stat.writable) == ("file", 1, True, False)
        folder = root.stat("/sys/nodes")
        assert folder is not None
        assert folder.kind == "dir"
        assert root.stat("/sys/absent") is None
        with pytest.raises(ReadError, match="not a directory"):
            root.list_dir("/sys/nodes/2/x")

    def test_what_the_tree_says_wins_and_implies_names(self, machine: MachineBuilder) -> None:
        machine.file("/dir/file", "x")
        machine.tree.lists["/dir"] = ["other", "file"]
        machine.stat("/dev/dri/renderD128", "char", 0o660, group="render")
        root = machine.root()
        assert root.list_dir("/dir") == ["file", "other"]
        assert root.list_dir("/dev/dri") == ["renderD128"]
        assert root.exists("/dev")
        with pytest.raises(ReadError, match="not a regular file"):
            root.read_text("/dev/dri/renderD128")

    def test_a_file_that_was_there_but_not_read_is_not_absent(self, machine: MachineBuilder) -> None:
        machine.stat("/bin/tool", "file", 0o755)
        with pytest.raises(ReadError, match="not captured") as caught:
            machine.root().read_text("/bin/tool")
        assert not isinstance(caught.value, AbsentError)

    def test_refusals(self, machine: MachineBuilder) -> None:
        machine.tree.denied["/sys/kernel/debug"] = "permission denied."
        machine.tree.errors["/sys/broken"] = "cannot be read: Input/output error."
        root = machine.root()
        for call in (root.read_text, root.list_dir):
            with pytest.raises(DeniedError, match="permission denied"):
                call("/sys/kernel/debug")
        with pytest.raises(ReadError, match="Input/output"):
            root.read_text("/sys/broken")
        stat = root.stat("/sys/kernel/debug")
        assert stat is not None
        assert not stat.readable

    def test_links_are_followed_inside_the_capture(self, machine: MachineBuilder) -> None:
        machine.file("/opt/rocm-7.1.0/.info/version", "7.1.0")
        machine.tree.links["/opt/rocm"] = "/etc/alternatives/rocm"
        machine.tree.links["/etc/alternatives/rocm"] = "../../opt/rocm-7.1.0"
        root = machine.root()
        assert root.link("/opt/rocm") == "/etc/alternatives/rocm"
        assert root.link("/opt") is None
        assert root.read_text("/opt/rocm/.info/version") == "7.1.0"
        assert root.list_dir("/opt/rocm") == [".info"]
        assert root.exists("/opt/rocm/.info")
        assert not root.exists("/opt/rocm/absent")

    def test_environment_user_measurements(self, machine: MachineBuilder) -> None:
        machine.environ["HSA_X"] = "1"
        machine.measurements["targets|/lib/a.so"] = ["gfx1151"]
        machine.user(1000, "render", "video")
        root = machine.root()
        assert root.environ() == {"HSA_X": "1"}
        assert root.user() == User(1000, 1000, ("render", "video"))
        assert root.measure("targets", "/lib/a.so", lambda _path: pytest.fail("called")) == ["gfx1151"]
        with pytest.raises(AbsentError):
            root.measure("targets", "/lib/b.so", lambda _path: pytest.fail("called"))

    def test_commands(self, machine: MachineBuilder) -> None:
        machine.command(["amd-smi", "static", "--json"], "[]")
        machine.command(["hang"], ending=Ending.TIMEOUT, exit_code=None, time_ms=8000.0)
        root = machine.root()
        assert root.run(["amd-smi", "static", "--json"]).stdout == "[]"
        assert root.run(["hang"]).ending is Ending.TIMEOUT
        assert root.run(["amd-smi", "static"]).ending is Ending.NOT_FOUND

    def test_bare_manifest_is_a_machine_that_has_nothing(self, tmp_path: Path) -> None:
        MachineBuilder(tmp_path)
        root = CapturedRoot(tmp_path)
        assert root.list_dir("/") == []
        assert root.environ() == {}
        assert root.user().groups == ()
        assert root.run(["rocminfo"]).ending is Ending.NOT_FOUND
        with pytest.raises(AbsentError):
            root.measure("x", "/y", lambda _path: None)


class TestHostile:
    def test_no_capture(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="not a captured machine"):
            CapturedRoot(tmp_path)
        with pytest.raises(UsageError):
            CapturedRoot(tmp_path / "absent")

    def test_links_out_of_the_root_lead_nowhere(self, machine: MachineBuilder, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("outside")
        machine.file("/etc/x", "inside")
        real = machine.directory / "root"
        (real / "etc" / "absolute").symlink_to(secret)
        (real / "etc" / "relative").symlink_to("../../../secret")
        (real / "up").symlink_to("../..")
        (real / "etc" / "passwd").symlink_to("/etc/passwd")
        machine.tree.links["/declared"] = f"../../../../../..{secret}"
        root = machine.root()
        for path in ("/etc/absolute", "/etc/relative", "/up/secret", "/etc/passwd", "/declared", f"/..{secret}"):
            with pytest.raises(ReadError):  # absent, or (a link to itself, in here) a circle
                root.read_text(path)
        assert root.list_dir("/up") == root.list_dir("/")

    def test_link_loops_end(self, machine: MachineBuilder) -> None:
        machine.tree.links.update({"/a": "/b", "/b": "/a", "/self": "self/self"})
        root = machine.root()
        for path in ("/a", "/a/x", "/self", "/self/y"):
            with pytest.raises(ReadError):
                root.read_text(path)
            assert root.stat(path) is None

    def test_root_that_is_a_link(self, machine: MachineBuilder, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (machine.directory / "root").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(DataError, match="symbolic link"):
            machine.root()

    def test_documents_that_are_links_fifos_or_folders(self, machine: MachineBuilder, tmp_path: Path) -> None:
        machine.root()
        outside = tmp_path / "outside.json"
        outside.write_text('{"A": "b"}')
        environ = machine.directory / layout.ENVIRON
        root = CapturedRoot(machine.directory)
        environ.unlink()
        environ.symlink_to(outside)
        with pytest.raises(DataError):
            root.environ()
        environ.unlink()
        os.mkfifo(environ)
        with pytest.raises(DataError):
            root.environ()
        environ.unlink()
        environ.mkdir()
        with pytest.raises(DataError):
            root.environ()

    def test_fifo_socket_and_unreadable_files(self, machine: MachineBuilder) -> None:
        folder = machine.directory / "root" / "sys"
        folder.mkdir(parents=True)
        os.mkfifo(folder / "fifo")
        with socket.socket(socket.AF_UNIX) as listener:
            here = Path.cwd()
            os.chdir(folder)  # the path of a socket may have 108 characters only
            try:
                listener.bind("socket")
            finally:
                os.chdir(here)
        root = machine.root()
        for name in ("fifo", "socket"):
            with pytest.raises(ReadError, match="not a regular file"):
                root.read_text(f"/sys/{name}")

    def test_file_replaced_by_a_link_after_the_index(self, machine: MachineBuilder, tmp_path: Path) -> None:
        machine.file("/etc/x", "inside")
        root = machine.root()
        (tmp_path / "secret").write_text("outside")
        path = machine.directory / "root" / "etc" / "x"
        path.unlink()
        path.symlink_to(tmp_path / "secret")
        with pytest.raises(ReadError):
            root.read_text("/etc/x")

    def test_huge_files_are_cut(self, machine: MachineBuilder) -> None:
        machine.file("/var/log/kern.log", "")
        os.truncate(machine.directory / "root/var/log/kern.log", 1 << 40)  # sparse
        assert len(machine.root().read_bytes("/var/log/kern.log", max_bytes=1000)) == 1000

    def test_huge_document_is_refused(self, machine: MachineBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(layout, "MAX_JSON_BYTES", 1000)
        machine.write("machine.json", b" " * 2000)
        with pytest.raises(DataError, match="larger than"):
            CapturedRoot(machine.directory)

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{",
            b"[]",
            b'{"captured_at": 3, "name": "x"}',
            b"\xff\xfe",
            b'{"captured_at": "x", "name": "\xff"}',
            b"[" * 100_000,
            b'{"captured_at": "2026", "name": "x", "schema_version": 999999}',
        ],
    )
    def test_damaged_manifest(self, machine: MachineBuilder, content: bytes) -> None:
        machine.write("machine.json", content)
        with pytest.raises(DataError):
            CapturedRoot(machine.directory)

    @pytest.mark.parametrize("name", ["tree.json", "environ.json", "user.json", "measurements.json", "commands/x.json"])
    @pytest.mark.parametrize("content", [b"{", b"[1]", b'"x"', b'{"stats": {"/x": 3}, "uid": "x", "a": 1, "argv": 7}'])
    def test_damaged_documents(self, machine: MachineBuilder, name: str, content: bytes) -> None:
        machine.root()
        machine.write(name, content)
        if name == "measurements.json" and content.startswith(b'{"stats'):
            return  # any object is a set of measurements
        with pytest.raises(DataError, match="capture"):
            use_everything(CapturedRoot(machine.directory))

    def test_paths_in_the_tree_must_be_paths(self, machine: MachineBuilder) -> None:
        for path in ("relative", "", "/nul\0", "/" + "x" * 5000):
            machine.tree.links.clear()
            machine.tree.links[path] = "x"
            with pytest.raises(DataError, match="bad path"):
                machine.root()

    @pytest.mark.parametrize("path", ["relative", "", "/a\0b", "/" + "a" * 5000])
    def test_asking_for_what_is_no_path(self, machine: MachineBuilder, path: str) -> None:
        root = machine.root()
        with pytest.raises(ReadError):
            root.read_text(path)
        assert root.stat(path) is None

    def test_deep_and_wide_folders(self, machine: MachineBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
        machine.file("/".join(["x"] * 200), "deep")
        with pytest.raises(DataError, match="nests deeper"):
            machine.root()
        shutil.rmtree(machine.directory / "root")
        monkeypatch.setattr(captured, "MAX_ENTRIES", 10)
        for number in range(20):
            machine.file(f"/wide/{number}", "")
        with pytest.raises(DataError, match="more than 10"):
            machine.root()

    def test_names_that_are_not_utf8(self, machine: MachineBuilder) -> None:
        folder = machine.directory / "root" / "etc"
        folder.mkdir(parents=True)
        Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe.conf")).write_text("x")
        names = machine.root().list_dir("/etc")
        assert names == ["\ufffd\ufffd.conf"]
        names[0].encode()

    def test_newer_schema_is_refused(self, machine: MachineBuilder) -> None:
        machine.write("machine.json", layout.Manifest("x", "y", schema_version=SCHEMA_VERSION + 1))
        with pytest.raises(DataError, match="schema version"):
            CapturedRoot(machine.directory)


def use_everything(root: CapturedRoot) -> None:
    root.environ()
    root.user()
    root.run(["x"])
    with pytest.raises(AbsentError):
        root.measure("a", "/b", lambda _path: None)


@settings(max_examples=60, deadline=None)
@given(
    links=st.dictionaries(
        st.from_regex(r"/[ab](/[ab]){0,3}", fullmatch=True),
        st.from_regex(r"(/|\.\./)?[ab.]{1,2}(/([ab]|\.\.)){0,4}", fullmatch=True),
        max_size=8,
    ),
    asked=st.from_regex(r"/([ab]|\.\.)(/([ab]|\.\.)){0,5}", fullmatch=True),
)
def test_no_link_maze_escapes_or_hangs(
    tmp_path_factory: pytest.TempPathFactory, links: dict[str, str], asked: str
) -> None:
    builder = MachineBuilder(tmp_path_factory.mktemp("maze"))
    builder.file("/a/file", "inside")
    builder.tree.links.update(links)
    root = builder.root()
    for path in (asked, f"{asked}/file"):
        root.stat(path)
        with contextlib.suppress(ReadError):
            root.list_dir(path)
        with contextlib.suppress(ReadError):
            assert root.read_text(path) == "inside"


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_command_slugs_are_file_names(argv: list[str]) -> None:
    slug = command_slug(argv)
    assert slug
    assert "/" not in slug
    assert "\0" not in slug
    assert len(slug) <= 80
    assert slug not in {".", ".."}
