"""Level 5: cubins with a real nvcc where there is one, and with programs that stand in for it where there is none."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from rocmend.port.verify import nvidia, running
from rocmend.port.verify.execution import Execution
from rocmend.port.verify.job import Job
from rocmend.port.verify.ladder import verify
from rocmend.port.verify.nvidia import Nvcc, find_nvcc
from rocmend.port.verify.records import Level, Outcome, Status
from rocmend.port.verify.reverse import write_headers
from rocmend.port.verify.trees import Tree

from .conftest import ORIGINAL, PORT, Ported

# An "nvcc" whose cubin is what the preprocessor leaves of the source, without USE_ROCM.
SCRIPT = """#!/bin/sh
for last; do :; done
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
sed -e '/^#ifdef USE_ROCM/,/^#else/d' -e '/^#endif/d' "$last" > "$out"
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "nvcc"
    program.write_text(SCRIPT)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(
        nvidia, "find_nvcc", lambda: Nvcc(str(program), "0.0", "sm_90", "", "there is no NVIDIA GPU here")
    )
    return program


def level(root: Path) -> Level:
    return verify(root, levels=["nvidia"], execution=Execution()).levels[0]


def unit(made: Level, path: str = "src/total.cu") -> Outcome:
    return next(one.outcome for one in made.evidence if one.subject == path)


@pytest.mark.usefixtures("fake")
def test_equal_cubins_prove_half_of_it(total: Path) -> None:
    made = level(total)
    assert unit(made) is Outcome.HOLDS
    assert made.status is Status.INCOMPLETE, "nothing was run"
    assert "no NVIDIA GPU" in made.summary


@pytest.mark.parametrize(
    ("smi", "arch", "gpu", "no_gpu"),
    [
        ("echo 'NVIDIA H200, 9.0'", "sm_90", "NVIDIA H200", ""),
        ("echo 'Tesla V100, 7.0'", "sm_90", "", "nvcc 13.0 does not compile for the Tesla V100 (sm_70)"),
        ("echo 'no devices were found'; exit 6", "sm_90", "", "there is no NVIDIA GPU here"),
    ],
)
def test_what_is_compiled_for(  # noqa: PLR0917  a machine has as many parts
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smi: str, arch: str, gpu: str, no_gpu: str
) -> None:
    version = "case $1 in --version) echo Cuda compilation tools, release 13.0, V13.0.88;; *) echo sm_80 sm_90;; esac"
    for name, text in (("nvcc", version), ("nvidia-smi", smi)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert find_nvcc() == Nvcc(str(tmp_path / "nvcc"), "13.0", arch, gpu, no_gpu)


@pytest.mark.usefixtures("fake")
def test_a_cubin_that_differs_fails(ported: Ported) -> None:
    wrong = PORT.replace(b"threadIdx.x == 0", b"threadIdx.x == 1")
    made = level(ported({"src/total.cu": ORIGINAL}, {"src/total.cu": wrong}))
    assert unit(made) is Outcome.BROKEN
    assert made.status is Status.FAILED


@pytest.mark.usefixtures("fake")
def test_only_what_the_port_reaches_is_compiled(ported: Ported) -> None:
    files = {
        "a.cu": b'#include "h.cuh"\n__global__ void a() {}\n',
        "b.cu": b"__global__ void b() {}\n",
        "h.cuh": ORIGINAL,
    }
    made = level(ported(files, {"h.cuh": PORT}))
    assert {one.subject for one in made.evidence} == {"a.cu", "programs"}


def test_a_compiler_that_knows_neither_side_decides_nothing(fake: Path, total: Path) -> None:
    fake.write_text("#!/bin/sh\necho \"x.cu(3): error: identifier 'foo' is undefined\" >&2\nexit 1\n")
    made = level(total)
    assert unit(made) is Outcome.UNKNOWN
    assert "'foo' is undefined" in made.evidence[0].detail


def test_a_port_that_no_longer_compiles_fails(fake: Path, total: Path) -> None:
    fake.write_text(SCRIPT + 'grep -q "ifdef USE_ROCM" "$last" && { echo "error: broken" >&2; exit 1; }\nexit 0\n')
    made = level(total)
    assert unit(made) is Outcome.BROKEN


def test_without_nvcc_it_did_not_run(total: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "find_nvcc", lambda: None)
    made = level(total)
    assert made.status is Status.NOT_RUN
    assert "nvcc not found" in made.why


@pytest.mark.slow
@pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")
def test_real_cubins_are_equal_and_a_changed_line_is_not(ported: Ported) -> None:
    files = {"good.cu": ORIGINAL, "bad.cu": ORIGINAL, "lines.cu": b"#include <cassert>\n" + ORIGINAL}
    checked = b"{\n  assert(in != out);\n  float value"
    files["lines.cu"] = files["lines.cu"].replace(b"{\n  float value", checked)
    after = {
        "good.cu": PORT,
        "bad.cu": PORT.replace(
            b"offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync",
            b"offset = 8; offset > 0; offset /= 2) value += __shfl_down_sync",
        ),
        "lines.cu": b"#include <cassert>\n" + PORT.replace(b"{\n  float value", checked),
    }
    made = level(ported(files, dict(after)))
    assert [unit(made, path) for path in sorted(files)] == [Outcome.BROKEN, Outcome.HOLDS, Outcome.HOLDS]
    lines = next(one for one in made.evidence if one.subject == "lines.cu")
    assert "line numbers in assertions" in lines.detail


@pytest.mark.skipif(find_nvcc() is None, reason="there is no nvcc")
def test_the_rocm_side_compiles_with_hips_names_turned_back(total: Path, tmp_path: Path) -> None:
    from rocmend.core.supervise import run_command

    source = total / "src/total.cu"
    source.write_bytes(
        PORT
        + b"#ifdef USE_ROCM\nint main() { float* x; return hipMalloc(&x, 4) == hipSuccess ? hipFree(x) : 1; }\n#endif\n"
    )
    write_headers(tmp_path / "headers", [source.read_bytes()])
    found = find_nvcc()
    assert found is not None
    argv = [found.program, "-cubin", f"-arch={found.arch}", "-DUSE_ROCM", f"-I{tmp_path / 'headers'}", str(source)]
    said = run_command([*argv, "-o", str(tmp_path / "out")], time_limit_s=300)
    assert said.ok, said.stderr


def test_names_of_the_ports_header_do_not_lead_in_a_circle(ported: Ported) -> None:
    header = b"#define cudaError_t hipError_t\n#define ours hipError_t\nnamespace cub = hipcub;\n"
    with Job(ported({"a.cu": ORIGINAL}, {"a.cu": PORT, "cuda_to_hip.h": header})) as job:
        tree = Tree(job)
        tree.ported()
        running._without_aliases(job, tree)
        assert (tree.folder / "cuda_to_hip.h").read_bytes() == b"\n#define ours hipError_t\n\n"


def test_a_tree_is_the_original_and_then_the_port(total: Path) -> None:
    (total / "other.h").write_bytes(b"// as it is\n")
    with Job(total) as job:
        tree = Tree(job)
        tree.originals()
        assert (tree.folder / "src/total.cu").read_bytes() == ORIGINAL
        tree.ported()
        assert (tree.folder / "src/total.cu").read_bytes() == PORT
        assert (tree.folder / "other.h").read_bytes() == b"// as it is\n"
        assert (total / "src/total.cu").read_bytes() == PORT, "the project itself is never written"
