"""Projects of strangers: what they bring along never makes a port write, delete or run anything outside of them."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmend.cli.main import main
from rocmend.core.errors import RocmendError
from rocmend.port import state, transaction
from rocmend.port.undo import undo

from .conftest import CUDA, PYTHON

Files = dict[str, tuple[int, str]]
ORIGINAL, PORTED = b"original\n", b"ported\n"
BEFORE, AFTER = (hashlib.sha256(data).hexdigest() for data in (ORIGINAL, PORTED))


class Done(NamedTuple):
    """What a command said."""

    code: int
    error: str


def rocmend(*arguments: str | Path) -> Done:
    """Run the command with ``--json`` in this process, and check what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main([*map(str, arguments), "--json"])
    document = json.loads(out.getvalue())
    assert document["exit_code"] == stop.value.code
    assert "Traceback" not in out.getvalue() + err.getvalue()
    errors = document["errors"]
    assert len(errors) == (stop.value.code == 2), "one error, in a sentence"
    return Done(document["exit_code"], json.dumps(errors, ensure_ascii=False))


def tree(root: Path) -> Files:
    """Everything below a folder: permissions, and the content or what a link names."""
    found = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        what = str(path.readlink()) if path.is_symlink() else path.read_bytes().hex() if path.is_file() else ""
        found[str(path.relative_to(root))] = (mode, what)
    return found


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e")
    subprocess.run(["git", *who, "-C", str(root), *arguments], check=True, capture_output=True)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that is the user's."""
    root = tmp_path / "outside"
    root.mkdir()
    (root / "mine.txt").write_text("mine\n")
    (root / "a.py").write_bytes(PORTED)
    return root


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    root = tmp_path / "upstream"
    root.mkdir()
    (root / "a.py").write_bytes(PORTED)
    return root


def recorded(root: Path, name: str = "transaction", flags: tuple[str, ...] = (), **changed: Any) -> Path:
    """Write the record of a port into a project: of one file, whose original is kept."""
    folder = root / ".rocmend" / "port" / name
    (folder / "originals").mkdir(parents=True)
    (folder / "originals" / f"{BEFORE}.zst").write_bytes(zstandard.ZstdCompressor().compress(ORIGINAL))
    (folder / "inverse.patch").write_bytes(b"")
    entry = {"path": "a.py", "before": BEFORE, "after": AFTER, "mode": 0o644, **changed.pop("entry", {})}
    manifest = {"entries": [entry], "schema_version": 1, "program": "0", **changed}
    manifest |= {key: manifest.get(key, []) for key in ("made_folders", "drops", "keeps", "targets")}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    for flag in flags:
        (folder / flag).write_text("")
    return folder


def linked(path: str) -> Callable[[Path, Path], None]:
    """Return what makes a part of the record a link to the outside, where it is well formed."""

    def make(root: Path, outside: Path) -> None:
        folder = recorded(root, "0001" if "0001" in path else "transaction")
        if "0001" not in path:  # without a manifest, all that is left to do is to empty the folder
            (folder / "manifest.json").unlink()
        (root / path).rename(outside / "theirs")
        (root / path).symlink_to(outside / "theirs")

    return make


def told(name: str = "transaction", flags: tuple[str, ...] = (), **changed: Any) -> Callable[[Path, Path], None]:
    """Return what writes a record; ``OUTSIDE`` in it is the folder outside."""

    def make(root: Path, outside: Path) -> None:
        text = json.dumps(changed).replace("OUTSIDE", str(outside))
        recorded(root, name, flags, **json.loads(text))

    return make


MOVED = ("commit", "rollback")
VECTORS: dict[str, Callable[[Path, Path], None]] = {
    "link .rocmend": linked(".rocmend"),
    "link port": linked(".rocmend/port"),
    "link transaction": linked(".rocmend/port/transaction"),
    "link generation": linked(".rocmend/port/0001"),
    "link originals": linked(".rocmend/port/0001/originals"),
    "link manifest": linked(".rocmend/port/0001/manifest.json"),
    "absolute, taken back": told(flags=MOVED, entry={"path": "OUTSIDE/a.py", "mode": 0o4755}),
    "absolute, finished": told(flags=("commit",), entry={"path": "OUTSIDE/a.py", "before": AFTER, "after": ""}),
    "absolute, undone": told("0001", entry={"path": "OUTSIDE/a.py", "mode": 0o4755}),
    "upwards, taken back": told(flags=MOVED, entry={"path": "../outside/a.py"}),
    "upwards, undone": told("0001", entry={"path": "x/../../outside/a.py"}),
    "upwards, made": told(flags=MOVED, made_folders=["../outside/empty"]),
    "upwards, dropped": told(flags=("finished",), drops=["../../../outside"]),
    "upwards, kept": told("0001", keeps=["../outside/a.py"]),
    "git": told("0001", entry={"path": ".git/hooks/post-checkout"}),
    "git, as folded": told("0001", entry={"path": ".GIT/config"}),
    "state": told("0001", entry={"path": ".rocmend/port/0002/manifest.json"}),
    "twice": told("0001", entries=[{"path": "a.py"}, {"path": "a.py"}]),
    "no text": told("0001", entry={"path": "a\0b"}),
    "number of another script": told(flags=("finished",), drops=["\u0660\u0660\u0660\u0661"]),
}


@pytest.mark.parametrize("as_clone", [True, False])
@pytest.mark.parametrize("vector", VECTORS)
def test_a_record_that_leads_out_is_refused(
    tmp_path: Path, outside: Path, upstream: Path, vector: str, *, as_clone: bool
) -> None:
    (outside / "empty").mkdir()
    VECTORS[vector](upstream, outside)
    project = tmp_path / "project"
    if as_clone:
        git(upstream, "init", "-q")
        git(upstream, "add", "-f", ".")
        git(upstream, "commit", "-qm", "all")
        git(tmp_path, "clone", "-q", str(upstream), str(project))
    else:
        shutil.copytree(upstream, project, symlinks=True)
    before, theirs = tree(outside), tree(project)
    done = rocmend("port", "undo", project)
    assert done.code == 2, "the record was believed"
    assert tree(outside) == before
    assert tree(project) == theirs
    assert any(
        words in done.error for words in ("symbolic link", "kept by git", "not a record written by a port", "cannot be")
    )


@pytest.mark.parametrize("vector", ["link .rocmend", "link transaction", "absolute, taken back"])
def test_a_port_refuses_such_a_record_too(outside: Path, upstream: Path, vector: str) -> None:
    (upstream / "b.py").write_text(PYTHON)
    VECTORS[vector](upstream, outside)
    before, theirs = tree(outside), tree(upstream)
    assert rocmend("port", upstream, "--apply").code == 2
    assert (tree(outside), tree(upstream)) == (before, theirs)


def test_a_record_that_git_keeps_is_refused_though_it_is_well_formed(upstream: Path) -> None:
    recorded(upstream, "0001")
    git(upstream, "init", "-q")
    git(upstream, "add", "-f", ".")
    before = tree(upstream)
    done = rocmend("port", "undo", upstream)
    assert done.code == 2
    assert "kept by git" in done.error
    assert "git rm -r --cached .rocmend/port" in done.error
    assert tree(upstream) == before
    git(upstream, "rm", "-rq", "--cached", ".rocmend/port")
    assert rocmend("port", "undo", upstream).code == 0
    assert (upstream / "a.py").read_bytes() == ORIGINAL


def test_a_record_is_not_used_where_git_cannot_say_whether_it_keeps_it(upstream: Path) -> None:
    recorded(upstream, "0001")
    git(upstream, "init", "-q")
    git(upstream, "add", "-f", ".")
    (upstream / ".git" / "config").write_text("[filter \n")
    done = rocmend("port", "undo", upstream)
    assert done.code == 2
    assert "git cannot report" in done.error
    assert (upstream / "a.py").read_bytes() == PORTED


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_another_users_repository_is_asked_what_it_keeps(upstream: Path) -> None:
    recorded(upstream, "0001")
    git(upstream, "init", "-q")
    git(upstream, "add", "-f", ".")
    for path in (upstream, *upstream.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    done = rocmend("port", "undo", upstream)
    assert done.code == 2
    assert "kept by git" in done.error
    assert (upstream / "a.py").read_bytes() == PORTED


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_record_of_another_user_is_refused_and_root_uses_that_of_the_project_s_owner(upstream: Path) -> None:
    folder = recorded(upstream, "0001")
    os.chown(folder / "manifest.json", 12345, 12345)
    done = rocmend("port", "undo", upstream)
    assert done.code == 2
    assert "another user (uid 12345)" in done.error
    assert (upstream / "a.py").read_bytes() == PORTED
    os.chown(upstream, 12345, 12345)
    assert rocmend("port", "undo", upstream).code == 0
    assert (upstream / "a.py").read_bytes() == ORIGINAL


@pytest.mark.parametrize("current", [0o755, 0o644, 0o600])
@pytest.mark.parametrize("flags", [None, MOVED])
def test_a_record_never_gives_a_permission_that_the_file_does_not_have(
    upstream: Path, flags: tuple[str, ...] | None, current: int
) -> None:
    recorded(upstream, "0001" if flags is None else "transaction", flags or (), entry={"mode": 0o6777})
    (upstream / "a.py").chmod(current)
    assert rocmend("port", "undo", upstream).code == 0
    assert (upstream / "a.py").read_bytes() == ORIGINAL
    assert stat.S_IMODE((upstream / "a.py").stat().st_mode) == current


def test_a_waiting_file_with_set_id_bits_is_not_moved_into_place(upstream: Path) -> None:
    recorded(upstream, flags=("commit",), entry={"path": "new.sh", "before": "", "after": BEFORE})
    (upstream / ".rocmend-port-0.new").write_bytes(ORIGINAL)
    (upstream / ".rocmend-port-0.new").chmod(0o4755)
    assert rocmend("port", upstream, "--apply").code == 0
    assert {path.name for path in upstream.iterdir()} == {"a.py"}


def test_originals_unpack_to_no_more_than_a_port_keeps(upstream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_FILE_BYTES", 1 << 20)
    folder = recorded(upstream, "0001")
    stream = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(stream, size=-1, closefd=False) as writer:  # declares no size
        writer.write(bytes(3 << 20))
    (folder / "originals" / f"{BEFORE}.zst").write_bytes(stream.getvalue())
    done = rocmend("port", "undo", upstream)
    assert done.code == 2
    assert "unpacks to more than" in done.error


@pytest.mark.parametrize("kind", ["large", "deep"])
def test_a_manifest_has_limits(upstream: Path, kind: str) -> None:
    folder = recorded(upstream, "0001")
    if kind == "large":
        os.truncate(folder / "manifest.json", 100 << 20)
    else:
        deep = '{"x": ' + "[" * 200_000 + "]" * 200_000 + ', "entries": []}'
        (folder / "manifest.json").write_text(deep)
    done = rocmend("port", "undo", upstream)
    assert done.code == 2
    assert "manifest.json" in done.error
    assert ("more than" in done.error) == (kind == "large")


FILTERS = {
    "clean": '[filter "x"]\n\tclean = touch {ran}; cat\n',
    "process": '[filter "x"]\n\tprocess = touch {ran}\n\trequired = true\n',
    "equals sign": '[filter "x=y"]\n\tclean = touch {ran}; cat\n',
    "included": "[include]\n\tpath = more\n",
    "fsmonitor": "[core]\n\tfsmonitor = touch {ran}\n",
    "hooks": "[core]\n\thooksPath = hooks\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILTERS)
def test_no_program_runs_that_the_project_s_configuration_names(tmp_path: Path, upstream: Path, kind: str) -> None:
    ran = tmp_path / "ran"
    (upstream / "b.py").write_text(PYTHON)
    (upstream / ".gitattributes").write_text(f"* filter={'x=y' if kind == 'equals sign' else 'x'}\n")
    (upstream / "hooks").mkdir()
    (upstream / "hooks" / "post-index-change").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (upstream / "hooks" / "post-index-change").chmod(0o755)
    git(upstream, "init", "-q")
    git(upstream, "add", ".")
    git(upstream, "commit", "-qm", "all")
    with (upstream / ".git" / "config").open("a") as file:
        file.write(FILTERS[kind].format(ran=ran))
    (upstream / ".git" / "more").write_text(FILTERS["clean"].format(ran=ran))
    os.utime(upstream / "b.py", (1, 1))  # so that git has to look at its content
    git_ran = subprocess.run(["git", "-C", str(upstream), "status"], check=False, capture_output=True)
    assert ran.exists(), f"the trap does not work: {git_ran.stderr!r}"
    ran.unlink()
    os.utime(upstream / "b.py", (2, 2))
    assert rocmend("port", upstream, "--apply").code in {0, 1}
    assert not ran.exists()
    assert (upstream / ".rocmend" / "port" / "0001").is_dir()


def test_a_configuration_that_git_cannot_read_is_no_clean_work_tree(upstream: Path) -> None:
    (upstream / "b.py").write_text(PYTHON)
    git(upstream, "init", "-q")
    (upstream / ".git" / "config").write_text("[filter\n")
    before = tree(upstream)
    done = rocmend("port", upstream, "--apply")
    assert done.code == 2
    assert "git cannot report" in done.error
    assert tree(upstream) == before
    assert rocmend("port", upstream, "--apply", "--allow-dirty").code in {0, 1}


def test_a_proof_runs_no_program_that_a_patched_copy_names(tmp_path: Path, upstream: Path) -> None:
    """Files of a port that make its copy look like a repository of git."""
    ran = tmp_path / "ran"
    files = {
        "HEAD": b"ref: refs/heads/main\n",
        "config": f'[core]\n\tbare = true\n[filter "x"]\n\tclean = touch {ran}; cat\n'.encode(),
        "info/attributes": b"* filter=x\n",
        "objects/x": b"x",
        "refs/x": b"x",
    }
    for path, data in files.items():
        (upstream / path).parent.mkdir(exist_ok=True)
        (upstream / path).write_bytes(data)
    digests = [{"path": path, "after": hashlib.sha256(data).hexdigest()} for path, data in files.items()]
    entries = [*digests, {"path": "a.py", "before": BEFORE, "after": AFTER, "mode": 0o644}]
    folder = recorded(upstream, "0001", entries=entries)
    (folder / "inverse.patch").write_bytes(
        b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-ported\n+original\n"
    )
    rocmend("port", "verify", upstream, "--level", "identity")
    assert not ran.exists()


def kernel_and_package(root: Path) -> None:
    (root / "pkg").mkdir()
    (root / "pkg" / "__init__.py").write_text("")
    (root / "pkg" / "train.py").write_text(PYTHON)
    (root / "total.cu").write_text(CUDA)


@pytest.mark.parametrize(("name", "target"), [("pkg/_rocm.py", "mine.txt"), ("cuda_to_hip.h", "nothing")])
def test_a_support_file_is_not_written_through_a_link(upstream: Path, outside: Path, name: str, target: str) -> None:
    kernel_and_package(upstream)
    (upstream / name).symlink_to(outside / target)
    before = tree(outside)
    assert rocmend("port", upstream, "--apply").code == 1, "what needs the file is left alone"
    assert tree(outside) == before
    assert (upstream / name).is_symlink()
    assert rocmend("port", "undo", upstream).code == 0
    assert tree(outside) == before


def test_sources_are_not_written_to_a_folder_that_is_a_link(upstream: Path, outside: Path) -> None:
    kernel_and_package(upstream)
    (upstream / "rocm").symlink_to(outside / "empty")
    before = tree(outside)
    done = rocmend("port", upstream, "--apply", "--style", "tree")
    assert done.code == 2
    assert "already exists where" in done.error
    assert tree(outside) == before


def test_a_name_that_new_content_would_wait_under_is_not_taken(upstream: Path, outside: Path) -> None:
    kernel_and_package(upstream)
    (upstream / "pkg" / ".rocmend-port-0.new").symlink_to(outside / "mine.txt")
    (upstream / ".rocmend-port-0.new").symlink_to(outside / "mine.txt")
    before, theirs = tree(outside), tree(upstream)
    done = rocmend("port", upstream, "--apply")
    assert done.code == 2
    assert "already exists where" in done.error
    assert (tree(outside), tree(upstream)) == (before, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("at", ["_record", "_stage", "_move"])
def test_a_folder_that_is_exchanged_for_a_link_meanwhile_leads_nowhere(
    upstream: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    kernel_and_package(upstream)
    (outside / "train.py").write_text(PYTHON)
    before, theirs = tree(outside), tree(upstream)
    honest = getattr(transaction, at)

    def exchanging(*arguments: object) -> None:
        monkeypatch.setattr(transaction, at, honest)
        (upstream / "pkg").rename(upstream / "away")
        (upstream / "pkg").symlink_to(outside)
        honest(*arguments)

    monkeypatch.setattr(transaction, at, exchanging)
    done = rocmend("port", upstream, "--apply")
    assert done.code == 2
    assert "symbolic link" in done.error
    assert tree(outside) == before
    assert rocmend("port", "undo", upstream).code == 2, "it is still in the way"
    (upstream / "pkg").unlink()
    (upstream / "away").rename(upstream / "pkg")
    rocmend("port", "undo", upstream)
    assert tree(upstream) == theirs
    assert tree(outside) == before


def test_a_baseline_is_not_written_through_a_link_of_the_project(upstream: Path, outside: Path) -> None:
    (upstream / "b.py").write_text(PYTHON)
    (upstream / "known.json").symlink_to(outside / "mine.txt")
    (upstream / "folder").symlink_to(outside)
    before = tree(outside)
    for name in ("known.json", "folder/known.json"):
        assert rocmend("port", upstream, "--write-baseline", upstream / name).code == 2
    assert tree(outside) == before


PARTS = st.sampled_from(["", ".", "..", "a", "a.py", "link", ".git", ".rocmend", "config", "\0", "outside", "x" * 300])
PATHS = st.one_of(
    st.lists(PARTS, min_size=1, max_size=4).map("/".join),
    st.sampled_from(["/OUTSIDE/a.py", "OUTSIDE/a.py", "../outside/a.py", "link/a.py", "link", "folder/new/c.h"]),
    st.text(max_size=8),
)
DIGESTS = st.sampled_from(["", BEFORE, AFTER, "../../../../../outside/a", "0" * 64])
MODES = st.sampled_from([0, 0o644, 0o4755, 0o2777, -1, 1 << 40])
ENTRIES = st.fixed_dictionaries({"path": PATHS, "before": DIGESTS, "after": DIGESTS, "mode": MODES})
MANIFESTS = st.fixed_dictionaries({
    "entries": st.lists(ENTRIES, max_size=3),
    "made_folders": st.lists(PATHS, max_size=2),
    "drops": st.lists(st.one_of(st.sampled_from(["0001", "0009", "../../../outside"]), PATHS), max_size=2),
    "keeps": st.lists(PATHS, max_size=1),
})  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    MANIFESTS, st.sets(st.sampled_from(["commit", "rollback", "finished"])), st.sampled_from(["0001", "transaction"])
)
def test_no_manifest_leads_outside(
    monkeypatch: pytest.MonkeyPatch, manifest: dict[str, Any], flags: set[str], name: str
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(state, "tracked", lambda *_: [])  # there is no git, and asking costs time
    with tempfile.TemporaryDirectory() as scratch:
        outside, root = Path(scratch) / "outside", Path(scratch) / "project"
        for folder in (outside / "empty", root / ".git", root / "folder"):
            folder.mkdir(parents=True)
        for path in (outside / "a.py", root / "a.py", root / ".git" / "config"):
            path.write_bytes(PORTED)
        (root / "link").symlink_to(outside)
        (root / ".rocmend-port-0.new").write_bytes(ORIGINAL)
        recorded(root, name, tuple(flags))
        record = root / ".rocmend" / "port" / name / "manifest.json"
        known = json.dumps({"schema_version": 1, **manifest}).replace("OUTSIDE", str(outside)[1:])
        record.write_text(known)
        before = tree(outside), tree(root / ".git"), (root / "link").is_symlink()
        with contextlib.suppress(RocmendError):
            undo(root)
        assert (tree(outside), tree(root / ".git"), (root / "link").is_symlink()) == before
        assert not any(path.lstat().st_mode & 0o6000 for path in root.rglob("*"))


def test_a_project_that_there_is_no_time_for_is_not_clean(tmp_path: Path) -> None:
    (tmp_path / "build.sh").write_text("make\n")
    assert rocmend("port", tmp_path).code == 0
    (tmp_path / "pyproject.toml").write_text("[tool.rocmend.port]\nproject-time-limit-s = 0.000001\n")
    assert rocmend("port", tmp_path, "--no-cache").code == 1
