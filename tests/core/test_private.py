"""Code is loaded only from where nobody else can put it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmend.core import places, private
from rocmend.core.private import UntrustedError, cache_folder, is_own_file, private_folder, untrusted

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="only root can give files away")
OTHER = 54321


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, not made yet."""
    monkeypatch.setenv("ROCMEND_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


class TestPlaces:
    def test_data_and_cache_are_apart(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("ROCMEND_CACHE_HOME")
        monkeypatch.setenv("ROCMEND_HOME", str(tmp_path / "store"))
        monkeypatch.setenv("HOME", "/home/me")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        assert places.data_home() == tmp_path / "store"
        assert places.cache_home() == Path("/home/me/.cache/rocmend")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert places.cache_home() == Path("/home/me/.cache/rocmend")
        monkeypatch.setenv("XDG_CACHE_HOME", "/scratch")
        assert places.cache_home() == Path("/scratch/rocmend")
        monkeypatch.setenv("ROCMEND_CACHE_HOME", "~/mine")
        assert places.cache_home() == Path("/home/me/mine")

    def test_every_room_asks_the_one_module(self) -> None:
        sources = Path(places.__file__).parents[1]
        asking = {
            str(path.relative_to(sources))
            for path in sources.rglob("*.py")
            if any(f'"{name}"' in path.read_text() for name in ("ROCMEND_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"))
        }
        assert asking - {"machine/parse/environment.py", "machine/software/vulkan.py"} == {
            "bench/fleet/places.py",  # sets it for a pod, which has no home
            "core/places.py",
            "kernels/compiled/pool.py",  # sets it for its workers
            "port/verify/execution.py",  # sets it for a project's code, which gets a cache of its own
        }


class TestFolders:
    def test_new_ones_are_ours_alone(self, cache: Path) -> None:
        mask = os.umask(0)
        try:
            made = private_folder("code", "mlx")
        finally:
            os.umask(mask)
        assert made == cache / "code" / "mlx"
        assert {stat.S_IMODE(at.stat().st_mode) for at in (made, made.parent, cache)} == {0o700}
        assert untrusted(made) == ""

    @pytest.mark.parametrize("part", ["", "code", "code/mlx"])
    @pytest.mark.parametrize("mode", [0o777, 0o757])
    def test_one_that_others_can_write_is_refused(self, cache: Path, part: str, mode: int) -> None:
        private_folder("code", "mlx")
        (cache / part).chmod(mode)
        with pytest.raises(UntrustedError, match=r"other users can write to .*Another user could.*chmod go-w"):
            private_folder("code", "mlx")

    @as_root
    @pytest.mark.parametrize("part", ["", "code", "code/mlx"])
    def test_one_of_another_user_is_refused(self, cache: Path, part: str) -> None:
        private_folder("code", "mlx")
        os.chown(cache / part, OTHER, OTHER)
        with pytest.raises(UntrustedError, match=rf"belongs to uid {OTHER}"):
            private_folder("code", "mlx")

    def test_a_link_in_the_cache_is_not_followed(self, cache: Path, tmp_path: Path) -> None:
        private_folder("code")
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        (cache / "code" / "mlx").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(UntrustedError, match="is a link"):
            private_folder("code", "mlx")

    def test_a_cache_on_another_disk_may_be_reached_by_a_link_of_ours(self, cache: Path, tmp_path: Path) -> None:
        (tmp_path / "disk").mkdir(mode=0o755)
        cache.symlink_to(tmp_path / "disk")
        assert private_folder("code").is_dir()
        (tmp_path / "disk").chmod(0o777)
        with pytest.raises(UntrustedError):
            private_folder("code")

    @as_root
    def test_but_not_by_a_link_of_another(self, cache: Path, tmp_path: Path) -> None:
        (tmp_path / "disk").mkdir(mode=0o755)
        cache.symlink_to(tmp_path / "disk")
        os.chown(cache, OTHER, OTHER, follow_symlinks=False)
        with pytest.raises(UntrustedError, match=rf"belongs to uid {OTHER}"):
            private_folder("code")

    def test_links_without_end_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to(tmp_path / "b")
        (tmp_path / "b").symlink_to(tmp_path / "a")
        assert "too many links" in untrusted(tmp_path / "a" / "code")

    def test_a_folder_of_ours_in_a_sticky_one_will_do(self, cache: Path) -> None:
        cache.mkdir()
        cache.chmod(0o1777)
        assert untrusted(private_folder("code")) == ""
        (cache / "code").chmod(0o1777)
        assert "other users can write" in untrusted(cache / "code")

    @as_root
    def test_a_root_that_is_not_mapped_may_own_what_lies_on_the_way(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        way, link = tmp_path / "way", tmp_path / "link"
        (way / "cache").mkdir(parents=True)
        link.symlink_to(way)
        for path in (way, link):
            os.chown(path, OTHER, OTHER, follow_symlinks=False)
        assert f"belongs to uid {OTHER}" in untrusted(way / "cache")
        monkeypatch.setattr(private, "_unmapped_root", lambda: OTHER)
        assert untrusted(way / "cache") == untrusted(link / "cache") == untrusted(way / "not" / "yet") == ""
        assert f"{way} belongs to uid {OTHER}" in untrusted(way), "what is used must be ours"
        way.chmod(0o775)
        assert "other users can write" in untrusted(way / "cache")
        way.chmod(0o1777)
        assert untrusted(way / "cache") == ""
        way.chmod(0o755)
        tmp_path.chmod(0o1777)  # there anybody could have made it
        assert f"{way} belongs to uid {OTHER}" in untrusted(way / "cache")
        assert f"{link} belongs to uid {OTHER}" in untrusted(link / "cache")

    @pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare")
    def test_in_a_user_namespace_without_root_a_cache_of_ones_own_is_used(self) -> None:
        sources = Path(places.__file__).parents[2]
        user = 1000 if ROOT else os.geteuid()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for part in ("__init__", "errors", "files", "mounts", "places", "private", "scratch"):
                to = folder / "rocmend" / "core" / f"{part}.py"
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(sources / "rocmend" / "core" / to.name, to)
            (folder / "rocmend" / "__init__.py").touch()
            program = "from rocmend.core.private import private_folder; print(private_folder('code'))"
            argv = ["unshare", "-U", f"--map-user={user}", "--", _system_python(), "-c", program]
            environment = {"PATH": os.environ["PATH"], "PYTHONPATH": name, "ROCMEND_CACHE_HOME": f"{name}/cache"}
            if ROOT:
                for path in (folder, *folder.rglob("*")):
                    os.chown(path, user, user)
            becoming: dict[str, Any] = {"user": user, "group": user, "extra_groups": []} if ROOT else {}
            done = subprocess.run(
                argv, env=environment, capture_output=True, text=True, check=False, cwd="/", **becoming
            )
            if "unshare" in done.stderr:
                pytest.skip(f"no user namespaces here: {done.stderr.strip()}")
            assert done.stdout == f"{name}/cache/code\n", done.stderr

    def test_without_one_another_is_used_that_ends_with_the_process(
        self, cache: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        private_folder("code")
        cache.chmod(0o777)
        private._tell.cache_clear()
        other = cache_folder("code", "mlx")
        assert cache not in other.parents
        assert untrusted(other) == ""
        assert cache_folder("code", "mlx") == other
        assert [record.getMessage().count("is not used") for record in caplog.records] == [1]


def _system_python() -> str:
    """Return a Python that every user may execute."""
    for path in ("/usr/bin/python3", os.path.realpath(sys.executable)):
        asked = subprocess.run(
            [path, "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True, text=True, check=False
        )
        if asked.stdout == "True\n":
            return path
    pytest.skip("no Python that other users may execute")


def test_only_whole_files_of_ours_are_loaded(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.touch(mode=0o600)
    assert not is_own_file(file)
    file.write_bytes(b"1")
    assert is_own_file(file)
    link.symlink_to(file)
    file.chmod(0o666)
    assert not any(map(is_own_file, (file, link, tmp_path, tmp_path / "none")))
    file.chmod(0o600)
    assert not is_own_file(link)
    if ROOT:
        os.chown(file, OTHER, OTHER)
        assert not is_own_file(file)


HARMS: dict[str, Callable[[Path], object]] = {"open": lambda at: at.chmod(0o777)}
if ROOT:
    HARMS["another's"] = lambda at: os.chown(at, OTHER, OTHER)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("part", ["code/mlx", "library"])
def test_a_planted_library_is_not_loaded(cache: Path, tmp_path: Path, harm: str, part: str) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "probe.c").write_text(
        "#include <Python.h>\n"
        'static PyModuleDef module = {PyModuleDef_HEAD_INIT, "probe"};\n'
        'PyMODINIT_FUNC __attribute__((visibility("default"))) PyInit_probe(void)\n'
        "{ return PyModule_Create(&module); }\n"
    )
    program = (
        "import sys; from pathlib import Path; from rocmend.core.extension import built, loaded\n"
        "print(loaded('probe', built('probe', Path(sys.argv[1]), 'probe.c', 'mlx')).__name__)"
    )

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", program, sources], capture_output=True, text=True, check=False)

    first = run()
    assert first.stdout == "probe\n", first.stderr
    (library,) = (cache / "code" / "mlx").iterdir()
    source = tmp_path / "planted.c"
    source.write_text(
        f'#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ fopen("{tmp_path}/ran", "w"); }}\n'
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    HARMS[harm](library if part == "library" else cache / part)
    done = run()
    assert done.stdout == "probe\n", done.stderr
    assert not (tmp_path / "ran").exists()
    assert ("is not used" in done.stderr) == (part != "library")
