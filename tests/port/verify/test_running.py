"""Programs that are run: on an NVIDIA GPU (level 5) and on an AMD one (level 7), with compilers that are scripts."""

from __future__ import annotations

import json
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rocmend.port.verify import amd, nvidia, programs
from rocmend.port.verify.execution import Execution
from rocmend.port.verify.job import Job
from rocmend.port.verify.ladder import verify
from rocmend.port.verify.nvidia import Nvcc
from rocmend.port.verify.records import Evidence, Level, Outcome, Status
from rocmend.port.verify.running import arguments
from rocmend.port.verify.units import Unit

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
    return verify(root, levels=["nvidia"], execution=Execution()).levels[0]


def test_both_sides_print_the_same(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = on_nvidia(program, compiler(tmp_path / "nvcc"), monkeypatch)
    assert made.evidence[-1].detail == "the output of the original and the ROCm side is the same: 1 line, times ignored"
    (kept,) = (program / ".rocmend/port/outputs").iterdir()
    assert json.loads(kept.read_text())["stdout"].startswith("sum 10.0 for 8 2\n")


def test_the_rocm_side_prints_something_else(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = on_nvidia(program, compiler(tmp_path / "nvcc", rocm="20.0"), monkeypatch)
    assert made.status is Status.FAILED
    assert "'sum 10.0 for 8 2' became 'sum 20.0 for 8 2'" in made.broken[-1].detail


def test_an_original_that_fails_decides_nothing(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = on_nvidia(program, compiler(tmp_path / "nvcc", program="exit 3\\n"), monkeypatch)
    assert made.status is Status.INCOMPLETE
    assert not (program / ".rocmend/port/outputs").exists()


@pytest.mark.parametrize(
    ("rocm", "outcome", "words"),
    [
        ("kill -SEGV $$", Outcome.BROKEN, "killed by signal 11"),
        ("echo out of memory >&2; exit 7", Outcome.BROKEN, "the ROCm side fails: out of memory"),
        ("exec sleep 60", Outcome.BROKEN, "timed out after"),
        ("echo sum 10.0; exit 0", Outcome.BROKEN, "the ROCm side's output differs: 2 lines in the original, 1 on"),
        ("echo sum 10.001; echo rest", Outcome.HOLDS, "2 lines, times ignored"),
    ],
)
def test_how_the_rocm_side_ends(  # noqa: PLR0917  fixtures and cases
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rocm: str, outcome: Outcome, words: str
) -> None:
    monkeypatch.setattr(programs, "RUN_LIMIT_S", 3.0)
    (evidence,) = ran(program, tmp_path, monkeypatch, "echo sum 10.0; echo rest", rocm)
    assert evidence.outcome is outcome
    assert words in evidence.detail


@pytest.mark.parametrize(
    ("original", "words"),
    [
        ("date +%N; echo 1", "output changes from run to run: line 1"),
        ("exec sleep 60", "the original fails here: timed out after"),
        ("echo no device >&2; exit 1", "the original fails here: no device"),
        ("echo elapsed: 3 ms; echo", "prints nothing that can be compared"),
        ("echo 'size 32, verify = FAIL'; echo 0 failed", "reports a failure here: 'size 32, verify = FAIL'"),
        (
            "echo sum 10.0; echo 'CUDA error: invalid argument' >&2",
            "reports a failure here: 'CUDA error: invalid argument'",
        ),
        ("touch here; test -e beside.txt && ls main.cu", "the original fails here"),
    ],
)
def test_an_original_that_says_nothing_decides_nothing(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, original: str, words: str
) -> None:
    monkeypatch.setattr(programs, "RUN_LIMIT_S", 2.0)
    (program / "beside.txt").write_text("data")
    (evidence,) = ran(program, tmp_path, monkeypatch, original, original)
    assert evidence.outcome is Outcome.UNKNOWN
    assert words in evidence.detail
    assert not (program / ".rocmend/port/outputs").exists()
    assert not (program / "here").exists(), "programs do not write into the project"


def ran(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, original: str, rocm: str) -> list[Evidence]:
    """Return what comes of programs that are these shell scripts."""
    (tmp_path / "original").write_text(f"#!/bin/sh\n{original}\n")
    (tmp_path / "rocm").write_text(f"#!/bin/sh\n{rocm}\n")
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(
        f"#!/bin/sh\nfrom={tmp_path}/original\nwhile [ $# -gt 0 ]; do\n"
        f"case $1 in -o) out=$2;; -DUSE_ROCM*) from={tmp_path}/rocm;; esac; shift; done\n"
        'cp "$from" "$out"; chmod +x "$out"\n'
    )
    nvcc.chmod(0o755)
    made = on_nvidia(root, nvcc, monkeypatch)
    return [one for one in made.evidence if "cubin" not in one.detail and one.outcome is not Outcome.NOTE]


# A linker that wants the kernels with a program that calls them.
LINKER = """#!/bin/sh
all="$*"; sum=10.0
while [ $# -gt 0 ]; do
  case "$1" in -o) out=$2; shift ;; -DUSE_ROCM*) sum={rocm} ;; esac
  shift
done
case "$all" in *main.cpp*total.cu*|*-cubin*|*other.cpp*) ;; *main.cpp*)
  echo "main.cpp: undefined reference to \\`total(int)'" >&2; exit 1 ;;
esac
printf '#!/bin/sh\necho sum %s\n' $sum > "$out"; chmod +x "$out"
"""


@pytest.mark.parametrize(("rocm", "outcome"), [("10.0", Outcome.HOLDS), ("11.0", Outcome.BROKEN)])
def test_a_program_that_only_links_what_was_ported_is_run(  # noqa: PLR0917  fixtures and cases
    ported: Ported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Path, rocm: str, outcome: Outcome
) -> None:
    calls = b"void total(int);\nint main() { total(1); }\n"
    host = b"void total(int x) { ::total<<<1, 32>>>(nullptr, nullptr); }\n"
    files = {"src/gpu/total.cu": ORIGINAL + host, "src/main.cpp": calls, "src/other.cpp": MAIN, "far.cpp": calls}
    root = ported(files, {"src/gpu/total.cu": PORT + host})
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(LINKER.format(rocm=rocm))
    nvcc.chmod(0o755)
    made = on_nvidia(root, nvcc, monkeypatch)
    judged = [one for one in made.evidence if "cubin" not in one.detail and one.outcome is not Outcome.NOTE]
    assert [(one.subject, one.outcome) for one in judged] == [("src/main.cpp", outcome)], "the others call no kernel"
    monkeypatch.setenv("PATH", f"{machine.parent}:/usr/bin:/bin")
    shutil.copy(nvcc, machine)
    machine.write_text(LINKER.format(rocm=rocm).replace("-DUSE_ROCM*", "-DUSE_ROCM=1"))
    assert [(one.subject, one.outcome) for one in on_amd(root).evidence] == [("src/main.cpp", outcome)]


def test_a_program_is_linked_with_what_it_calls(ported: Ported, tmp_path: Path) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    sources = {
        "app/main.cu": b"namespace a { float total(int n); } template <typename T> T twice(T x);\n"
        b"int main() { return a::total(2) == 6.0f && twice<int>(2) == 4 ? 0 : 1; }\n",
        "app/total.cu": b"int more();\nnamespace a { float total(int n) { return n + more(); } }\n",
        "far/away/total.cu": b"namespace a { float total(int n) { return 0; } }\n",
        "lib/more.cpp": b'#include "four.h"\nint more() { return FOUR; }\n',
        "lib/include/four.h": b"#define FOUR 4\n",
        "lib/twice.cpp": b"template <typename T> T twice(T x) { return 2 * x; }\ntemplate int twice<int>(int);\n",
        "other.cu": b"int more() { return 9; }\nint main() { return more(); }\n",
    }
    root = ported(sources, {})
    with Job(root, execution=Execution()) as job:

        def command(found: Sequence[Path], folders: Sequence[Path], libraries: Sequence[str], out: Path) -> list[str]:
            named = [f"-I{one}" for one in folders], ["-x", "c++", *map(str, found)], [f"-l{one}" for one in libraries]
            return [compiler, *named[0], *named[1], *named[2], "-o", str(out)]

        built = programs.build(job, Unit("app/main.cu", torch=False, folders=(".",)), root, tmp_path / "out", command)
        assert built.program is not None, built.said.stderr
        assert set(built.sources) == {"app/main.cu", "app/total.cu", "lib/more.cpp", "lib/twice.cpp"}
        assert programs.execute(job, built.program, (), "app").ok


@pytest.mark.parametrize(
    "head", [b"int main()", b"int32_t main(int32_t n, char* v[])", b"auto main() -> int", b"int\nmain ("]
)
def test_a_main_by_any_type(head: bytes) -> None:
    assert programs.MAIN.search(b"}\n" + head)
    assert not programs.MAIN.search(head.replace(b"main", b"domain"))


def test_what_is_defined_nowhere_is_named(ported: Ported, tmp_path: Path) -> None:
    linker = tmp_path / "cc"
    linker.write_text(
        '#!/bin/sh\necho "$@" >> $0.log\necho "ld: undefined reference to \'cublasCreate_v2\'" >&2\n'
        "echo 'ld.lld: error: undefined symbol: void ours::run<float>(float*)' >&2\nexit 1\n"
    )
    linker.chmod(0o755)
    with Job(ported({"main.cu": MAIN}, {})) as job:

        def command(*parts: Any) -> list[str]:
            return [str(linker), *(f"-l{one}" for one in parts[2])]

        built = programs.build(job, Unit("main.cu", torch=False), job.root, tmp_path / "out", command)
    assert built.program is None
    assert (tmp_path / "cc.log").read_text() == "\n-lcublas\n"
    assert programs.why(built.said) == "cublasCreate_v2 is not defined in the project or in a known library"


@pytest.mark.parametrize("written", ["echo x > $to/x.launch", "echo x > $to/0.launch", "mkfifo $to/0.launch"])
def test_a_program_that_writes_its_own_record(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    write = written.replace("$to", "$ROCMEND_RECORD")
    nvcc = compiler(tmp_path / "nvcc", program=f'test -z "$ROCMEND_RECORD" || {write}\\n')
    made = on_nvidia(program, nvcc, monkeypatch)
    assert made.evidence[-1].detail.startswith("the output of the original and the ROCm side is the same")
    assert [one for one in made.evidence if "not recorded: the recording cannot be read" in one.detail]


def test_programs_for_nvidia_are_not_run_unasked(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvcc = compiler(tmp_path / "nvcc", program=f"touch {tmp_path}/ran\\n")
    monkeypatch.setattr(nvidia, "find_nvcc", lambda: Nvcc(str(nvcc), "0.0", "sm_90", "a GPU"))
    (made,) = verify(program, levels=["nvidia"], targets=["gfx942"]).levels
    assert made.status is Status.INCOMPLETE, "the cubins are compared, and nothing is run"
    assert "1 of 1 cubins" in made.summary
    assert made.command == f"rocmend port verify {program} --level nvidia --target gfx942 --run"
    assert [(step.kind, step.names, step.command) for step in made.steps] == [("program", ("main.cu",), "./main 8 2")]
    assert not (tmp_path / "ran").exists()
    assert not (program / ".rocmend/port/outputs").exists()
    on_nvidia(program, nvcc, monkeypatch)
    assert (tmp_path / "ran").exists()


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
    return verify(root, levels=["amd"], execution=Execution()).levels[0]


def test_without_a_gpu_it_did_not_run(program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(amd, "NODE", tmp_path / "none")
    made = on_amd(program)
    assert (made.status, made.why) == (Status.NOT_RUN, "no AMD GPU: there is no /dev/kfd")


def test_without_a_known_gpu_or_a_compiler_it_did_not_run(
    program: Path, machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not machine.exists()
    assert "hipcc not found" in on_amd(program).why
    (tmp_path / "nodes/1/properties").write_text("gfx_target_version 999999\n")
    assert "lists no known GPU" in on_amd(program).why


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
    assert "differs from the original's on a GPU" in made.broken[0].detail
    record = json.loads((program / ".rocmend/port/proofs/amd-gfx942.json").read_text())
    assert (record["target"], record["generation"]) == ("gfx942", "0001")
    assert record["level"]["status"] == "failed"
    assert made.evidence[0].outcome is Outcome.BROKEN


def test_programs_for_amd_are_not_run_unasked(
    program: Path, machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{machine.parent}:/usr/bin:/bin")
    compiler(machine, program=f"touch {tmp_path}/ran\\n")
    (made,) = verify(program, levels=["amd"]).levels
    assert (made.status, made.command) == (Status.NOT_RUN, f"rocmend port verify {program} --level amd --run")
    assert not (tmp_path / "ran").exists()
    on_amd(program)
    assert (tmp_path / "ran").exists()


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
