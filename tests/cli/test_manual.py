"""Manual pages: one for each command, that man prints without a complaint, in the wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from rocmend.cli.main import command_modules
from rocmend.cli.manual import manual_pages

ROOT = Path(__file__).parents[2]


def test_every_command_has_a_page() -> None:
    assert set(manual_pages()) == {"rocmend.1", *(f"rocmend-{path.replace(' ', '-')}.1" for path in command_modules())}


@pytest.mark.slow
def test_a_page_is_printed_as_it_was_written(tmp_path: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for name, text in manual_pages().items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        made = subprocess.run(
            ["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-rLL=100n", "-P-c", path],
            capture_output=True,
            text=True,
            check=True,
        )
        assert made.stderr == "", name
        shown = subprocess.run(["col", "-b"], input=made.stdout, capture_output=True, text=True, check=True).stdout
        assert shown.count(name.removesuffix(".1").upper()) >= 1
        if name == "rocmend-doctor.1":
            assert "--model-size SIZE" in shown
            assert "rocmend doctor --for llama.cpp --model-size 60GiB" in shown


def test_making_them_needs_only_what_the_build_installs() -> None:
    hook = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]
    allowed = {name.partition(">")[0] for name in hook["custom"]["dependencies"]}
    program = (
        "import sys\nbefore = set(sys.modules)\nfrom rocmend.cli.manual import manual_pages\nmanual_pages()\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) - {"rocmend", "typing_extensions"} <= allowed


@pytest.mark.network
def test_the_pages_are_in_the_wheel(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "-w", tmp_path, ROOT], check=True, timeout=500)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        pages = {
            Path(name).name: opened.read(name).decode() for name in opened.namelist() if "/share/man/man1/" in name
        }
    assert pages == manual_pages()
