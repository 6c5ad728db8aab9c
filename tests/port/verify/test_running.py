"""Programs that are run: on an NVIDIA GPU (level 5) and on an AMD one (level 7), with compilers that are scripts."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from rocmend.port.verify import amd, nvidia
from rocmend.port.verify.ladder import verify
from rocmend.port.verify.nvidia import Nvcc
from rocmend.port.verify.records import Level, Outcome, Status
from rocmend.port.verify.running import arguments

from .conftest import ORIGINAL, PORT, Ported

MAIN = b"int main() { return 0; }\n"
# A compiler whose programs print $SUM, or $ROCM_SUM for the ROCm side, and their arguments.
COMPILER = """#!/bin/sh
sum="{nvidia}"
while [ $# -gt 0 ]; do
  case "$1" in
    -o) out=$2; shift ;;
    -DUSE_ROCM*) sum="{rocm}" ;;
  esac
  shift
done
printf '#!/bin/sh\\n{program}echo "sum %s for" "$@"\\necho "time: $$ ms"\\n' "$sum" > "$out"
chmod +x "$out"
"""


def compiler(path: Path, *, nvidia: str = "10.0", rocm: str = "10.0", program: str = "") -> Path:
    path.write_text(COMPILER.format(nvidia=nvidia, rocm=rocm, program=program))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def program(ported: Ported) -> Path:
    makefile = b"run: program\n\t./program 8 2\n"
    return ported({"main.cu": ORIGINAL + MAIN, "Makefile": makefile}, {"main.cu": PORT + MAIN})


def on_nvidia(root: Path, nvcc: Path, monkeypatch: pytest.MonkeyPatch) -> Level:
    monkeypatch.setattr(nvidia, "find_nvcc", lambda: Nvcc(str(nvcc), "0.0", "sm_90", "a GPU"))
    return verify(root, levels=["nvidia"]).levels[0]


def test_both_sides_print_the_same(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = on_nvidia(program, compiler(tmp_path / "nvcc"), monkeypatch)
    assert made.evidence[-1].detail == "the original and the ROCm side print the same"
    (kept,) = (program / ".rocmend/port/outputs").iterdir()
    assert json.loads(kept.read_text())["stdout"].startswith("sum 10.0 for 8 2\n")


def test_the_rocm_side_prints_something_else(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = on_nvidia(program, compiler(tmp_path / "nvcc", rocm="20.0"), monkeypatch)
    assert made.status is Status.FAILED
    assert "'sum 10.0 for 8 2' is 'sum 20.0 for 8 2'" in made.broken[-1].detail


def test_an_original_that_fails_decides_nothing(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = on_nvidia(program, compiler(tmp_path / "nvcc", program="exit 3\\n"), monkeypatch)
    assert made.status is Status.INCOMPLETE
    assert not (program / ".rocmend/port/outputs").exists()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a gfx942 and no hipcc yet; returns where it is looked for."""
    node = tmp_path / "kfd"
    node.touch()
    for number, version in enumerate(("0", "90402")):
        (tmp_path / f"nodes/{number}").mkdir(parents=True)
        (tmp_path / f"nodes/{number}/properties").write_text(f"cpu_cores_count 8\ngfx_target_version {version}\n")
    monkeypatch.setattr(amd, "NODE", node)
    monkeypatch.setattr(amd, "TOPOLOGY", tmp_path / "nodes")
    (tmp_path / "rocm/bin").mkdir(parents=True)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    return tmp_path / "rocm/bin/hipcc"


def on_amd(root: Path) -> Level:
    return verify(root, levels=["amd"]).levels[0]


def test_without_a_gpu_it_did_not_run(program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(amd, "NODE", tmp_path / "none")
    made = on_amd(program)
    assert (made.status, made.why) == (Status.NOT_RUN, "no AMD GPU: there is no /dev/kfd")


def test_without_a_known_gpu_or_a_compiler_it_did_not_run(
    program: Path, machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not machine.exists()
    assert "no hipcc" in on_amd(program).why
    (tmp_path / "nodes/1/properties").write_text("gfx_target_version 999999\n")
    assert "lists none that is known" in on_amd(program).why


def test_an_amd_gpu_is_compared_with_what_nvidia_printed(
    program: Path, machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{machine.parent}:/usr/bin:/bin")
    compiler(machine)
    first = on_amd(program)
    assert first.status is Status.INCOMPLETE
    assert "run level nvidia" in first.evidence[0].detail
    on_nvidia(program, compiler(tmp_path / "nvcc"), monkeypatch)
    assert on_amd(program).status is Status.PASSED
    compiler(machine, rocm="11.0")
    made = on_amd(program)
    assert made.status is Status.FAILED
    assert "than the original on a GPU" in made.broken[0].detail
    record = json.loads((program / ".rocmend/port/proofs/amd-gfx942.json").read_text())
    assert (record["target"], record["generation"]) == ("gfx942", "0001")
    assert record["level"]["status"] == "failed"
    assert made.evidence[0].outcome is Outcome.BROKEN


@pytest.mark.parametrize(
    ("makefile", "given"),
    [
        ("run: program\n\t./program 8 2\n", ["8", "2"]),
        ("run:\n\t@echo hello\n\t$(LAUNCHER) ./$(program) -n 4\n", ["-n", "4"]),
        ("run: a\n\t./a $(N)\n", []),
        ("run: a\n\t./a 1 > out\n", []),
        ("all:\n\t./a 1\n", []),
    ],
)
def test_the_arguments_that_a_makefile_runs_a_program_with(makefile: str, given: list[str], tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(makefile)
    assert arguments(tmp_path) == given
    assert arguments(tmp_path / "none") == []
