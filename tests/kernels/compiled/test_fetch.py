"""Fetched Tritons are programs: only known ones, only whole ones, only from where nobody else can write."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rocmend.core.sealed import LOCK
from rocmend.kernels.compiled.fetch import known_hashes

RAN = "import os, pathlib; pathlib.Path(os.environ['PLANTED']).touch()"
"""What says that it ran."""
ROOT = os.geteuid() == 0


class Home:
    """A user's folders and the command run with them."""

    def __init__(self, folder: Path) -> None:
        self.data, self.cache, self.index = folder / "data", folder / "cache", folder / "index"
        self.place = self.cache / "code" / "triton"
        self.index.mkdir(parents=True)
        self.env = {
            **os.environ, "ROCMEND_HOME": str(self.data), "ROCMEND_CACHE_HOME": str(self.cache), "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.index), "PIP_CONFIG_FILE": os.devnull, "COLUMNS": "120",
            "PLANTED": str(folder / "ran"),
        }  # fmt: skip
        for name in ("TRITON_INTERPRET", "ROCMEND_TRITON_ALT"):
            self.env.pop(name, None)

    @property
    def ran(self) -> bool:
        return Path(self.env["PLANTED"]).exists()

    def folder(self, version: str) -> Path:
        return self.place / f"{version}-{sys.implementation.cache_tag}"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rocmend", "kernels", "compile", *arguments],
            env=self.env, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def compile(self) -> subprocess.CompletedProcess[str]:
        """Compile for a target that the installed Triton does not serve: with the fetched one, where it is used."""
        return self.run("rms_norm", "--subset", "fast", "--targets", "gfx1010", "--time-limit", "20s")

    def wheel(self, version: str, files: int = 1) -> str:
        """Put a wheel that says it is triton where pip finds it, and return its hash."""
        path, info = self.index / f"triton-{version}-py3-none-any.whl", f"triton-{version}.dist-info"
        content = {f"triton/part_{number}.py": "x = 1\n" for number in range(files)}
        content |= {
            "triton/__init__.py": f"{RAN}\n__version__ = {version!r}\n",
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: triton\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in content.items():
                archive.writestr(name, text)
            archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in content))
        return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def plant(folder: Path) -> None:
    """Put a package triton there that says when it runs."""
    (folder / "triton").mkdir(parents=True, mode=0o755)
    (folder / "triton" / "__init__.py").write_text(f"{RAN}\n")


def test_nothing_runs_from_the_stores_folder(home: Home) -> None:
    plant(home.data / "triton" / "3.7.0")
    done = home.compile()
    assert not home.ran
    assert done.returncode == 2
    assert "no installed Triton compiles for gfx1010" in done.stderr
    assert "holds Tritons that an earlier rocmend fetched" in done.stderr.replace("\n", " ")


def by_another(home: Home) -> None:
    for at in (home.folder("3.7.0"), *home.folder("3.7.0").rglob("*")):
        os.chown(at, 54321, 54321)


def by_anyone(home: Home) -> None:
    home.folder("3.7.0").chmod(0o777)


def parent_of_another(home: Home) -> None:
    os.chown(home.cache, 54321, 54321)


def open_parent(home: Home) -> None:
    (home.cache / "code").chmod(0o777)


def linked(home: Home) -> None:
    elsewhere = home.cache.with_name("elsewhere")
    home.place.rename(elsewhere)
    home.place.symlink_to(elsewhere)


HARMS: tuple[Callable[[Home], None], ...] = (
    *((by_another, parent_of_another) if ROOT else ()),
    by_anyone,
    open_parent,
    linked,
)


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS)
def test_a_fetched_triton_that_others_could_change_does_not_run(home: Home, harm: Callable[[Home], None]) -> None:
    known = home.wheel("3.7.0")
    assert home.run("--fetch-triton", "3.7.0", "--triton-sha256", known).returncode == 0
    harm(home)
    done = home.compile()
    assert not home.ran
    assert "no installed Triton compiles for gfx1010" in done.stderr
    assert "is not used" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("how", ["empty", "planted", "cut", "more"])
def test_what_is_not_complete_does_not_count_and_is_fetched_again(home: Home, how: str) -> None:
    known = home.wheel("3.99.0")
    folder = home.folder("3.99.0")
    if how == "empty":
        folder.mkdir(parents=True, mode=0o700)
    elif how == "planted":
        plant(folder)
    else:
        assert home.run("--fetch-triton", "3.99.0", "--triton-sha256", known).returncode == 0
        if how == "cut":
            (folder / "triton" / "part_0.py").unlink()
        else:
            (folder / "sitecustomize.py").write_text(RAN)
    done = home.run("rms_norm", "--only-triton", "3.99.0", "--targets", "gfx1010", "--subset", "fast")
    assert not home.ran
    assert "--fetch-triton 3.99.0 fetches it again" in done.stderr
    done = home.run("--fetch-triton", "3.99.0", "--triton-sha256", known, "--json")
    assert done.returncode == 0, done.stderr
    assert msgspec.json.decode(done.stdout)["data"]["path"] == str(folder)
    assert (folder / "triton" / "part_0.py").is_file()
    assert not (folder / "sitecustomize.py").exists()
    assert {one.name for one in home.place.iterdir()} - {LOCK} == {folder.name}
    for at in (home.cache, home.cache / "code", home.place, folder)[3 if how in {"empty", "planted"} else 0 :]:
        assert at.stat().st_mode & 0o777 == 0o700, at


@pytest.mark.slow
def test_only_what_is_known_by_its_hash_is_installed(home: Home) -> None:
    assert all(len(one) == 64 for hashes in known_hashes().values() for one in hashes)
    home.wheel("3.7.0")
    wrong = home.run("--fetch-triton", "3.7.0")
    assert (wrong.returncode, "is not what is known" in wrong.stderr) == (2, True), wrong.stderr
    known = home.wheel("3.99.0")
    unknown = home.run("--fetch-triton", "3.99.0")
    assert (unknown.returncode, "no hash of triton 3.99.0 is known" in unknown.stderr) == (2, True), unknown.stderr
    other = home.run("--fetch-triton", "3.99.0", "--triton-sha256", "0" * 64)
    assert other.returncode == 2
    assert not list(home.place.iterdir())
    for flags in (("--triton-sha256", known), ("--unpinned",)):
        assert home.run("--fetch-triton", "3.99.0", *flags).returncode == 0
    assert home.run("--fetch-triton", "../3.7.0", "--unpinned").returncode == 2


@pytest.mark.slow
def test_a_killed_fetch_leaves_nothing_that_counts(home: Home) -> None:
    known = home.wheel("3.99.0", files=800)
    command = [
        sys.executable,
        "-m",
        "rocmend",
        "kernels",
        "compile",
        "--fetch-triton",
        "3.99.0",
        "--triton-sha256",
        known,
    ]
    child = subprocess.Popen(command, env=home.env, start_new_session=True, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not list(home.place.glob(".rocmend-building-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    child.kill()
    child.wait()
    assert list(home.place.glob(".rocmend-building-*"))
    assert not home.folder("3.99.0").exists()
    assert home.run("--fetch-triton", "3.99.0", "--triton-sha256", known).returncode == 0
    assert (home.folder("3.99.0") / "triton" / "part_799.py").is_file()
    assert not list(home.place.glob(".rocmend-building-*"))


@pytest.mark.slow
def test_a_fetched_triton_compiles(home: Home) -> None:
    assert home.run("--fetch-triton", "3.7.0", "--triton-sha256", home.wheel("3.7.0")).returncode == 0
    home.compile()
    assert home.ran


def test_a_pip_in_the_working_folder_is_not_run(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = home.wheel("3.99.0")
    (tmp_path / "pip.py").write_text(RAN)
    home.env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(one).absolute()) for one in sys.path if one]))
    monkeypatch.chdir(tmp_path)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rocmend", "kernels", "compile", "--fetch-triton", "3.99.0",
         "--triton-sha256", known],
        env=home.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not home.ran
