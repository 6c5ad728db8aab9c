from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Done

Rocmend = Callable[..., Done]
TRAINING = 'import torch\n\n\ndef faster(model):\n    return torch.compile(model, mode="reduce-overhead")\n'
KERNEL = """#include <cuda_runtime.h>

__global__ void above(const float* x, unsigned* out) {
  unsigned kept = __ballot_sync(0xffffffff, x[threadIdx.x] > 0);
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = kept;
}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROCMEND_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "project"
    (root / "fast").mkdir(parents=True)
    (root / "fast" / "__init__.py").write_text("")
    (root / "fast" / "train.py").write_text(TRAINING)
    (root / "kernel.cu").write_text(KERNEL)
    return root


def bytes_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def data_of(done: Done) -> Any:
    envelope = json.loads(done.out)
    assert envelope["exit_code"] == done.code
    return envelope["data"]


def test_without_apply_nothing_is_written(rocmend: Rocmend, project: Path) -> None:
    before = bytes_of(project)
    done = rocmend("port", project)
    assert done.code == 1
    assert bytes_of(project) == before
    assert "PY01" in done.out
    assert "CU04" in done.out
    assert "Nothing was written" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_written_proven_and_taken_back(rocmend: Rocmend, project: Path) -> None:
    before = bytes_of(project)
    done = rocmend("port", project, "--apply", "--target", "gfx1151", "--json")
    found = data_of(done)
    assert found["written"]
    assert set(found["changed"]) == {"fast/train.py", "kernel.cu"}
    assert '"default" if is_rocm else "reduce-overhead"' in (project / "fast" / "train.py").read_text()
    proof = data_of(rocmend("port", "verify", project, "--level", "static", "--json"))
    assert [(level["name"], level["status"]) for level in proof["levels"]] == [
        ("identity", "passed"),
        ("static", "passed"),
    ]
    again = data_of(rocmend("port", project, "--apply", "--json"))
    assert again["changed"] == []
    assert rocmend("port", "undo", project).code == 0
    assert bytes_of(project) == before


def test_a_changed_nvidia_path_fails_the_proof(rocmend: Rocmend, project: Path) -> None:
    rocmend("port", project, "--apply")
    path = project / "kernel.cu"
    path.write_text(path.read_text().replace("out[threadIdx.x / 32] = kept", "out[threadIdx.x / 64] = kept"))
    done = rocmend("port", "verify", project, "--level", "identity", "--json")
    assert done.code == 1
    assert data_of(done)["levels"][0]["status"] == "failed"


def test_a_level_that_was_asked_for_and_did_not_run_is_no_success(rocmend: Rocmend, project: Path) -> None:
    rocmend("port", project, "--apply")
    done = rocmend("port", "verify", project, "--level", "emulated", "--json")
    assert (done.code, data_of(done)["levels"][-1]["status"]) == (1, "not run")


def test_a_project_that_was_not_ported_is_told_to_be_ported_first(rocmend: Rocmend, project: Path) -> None:
    root = project.rename(project.with_name("my project"))
    done = rocmend("port", "verify", root)
    assert (done.code, done.out) == (2, "")
    assert "was not ported yet: " in " ".join(done.err.split())
    assert f"  rocmend port '{root}' --apply" in done.err.splitlines()
    (error,) = json.loads(rocmend("port", "verify", root, "--json").out)["errors"]
    assert error["code"] == "usage"


def test_a_project_that_needs_no_port_is_checked_as_it_is(rocmend: Rocmend, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    done = rocmend("port", "verify", tmp_path)
    assert done.code == 0
    assert "No port was applied here, and there is nothing to rewrite." in " ".join(done.out.split())
    assert rocmend("port", "verify", tmp_path, "--level", "identity").code == 1, "it was asked for and did not run"


@pytest.mark.parametrize("command", ["", "--apply", "verify", "audit", "undo", "golden --name x"])
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("empty", "no CUDA was found"),
        ("git", "no CUDA was found"),
        ("text", "no CUDA was found"),
        ("file", "is not a folder"),
        ("absent", "No such file or directory"),
    ],
)
def test_what_is_no_project_is_wrong_use(rocmend: Rocmend, tmp_path: Path, command: str, kind: str, told: str) -> None:
    path = tmp_path / "somewhere"
    if kind == "file":
        path.write_text("x\n")
    elif kind != "absent":
        path.mkdir()
        if kind == "git":
            subprocess.run(["git", "init", "--quiet", path], check=True)
        elif kind == "text":
            (path / "README.md").write_text("cudaMalloc\n")
    done = rocmend("port", *command.split(), path, "--json")
    if command == "audit" and kind not in {"file", "absent"}:
        assert done.code == 1, "the environment of these tests has no PyTorch for ROCm"
        return
    (error,) = json.loads(done.out)["errors"]
    assert (done.code, error["next_step"] != "") == (2, True)
    told = (
        {"undo": "no port is recorded", "golden": "names no functions"}.get(command[:6].strip(), told)
        if (kind in {"empty", "git", "text"})
        else "is not a file that a port reads"
        if (command, kind) == ("", "file")
        else told
    )
    assert told in error["message"]


GUARDS = """#ifdef USE_ROCM
#include <hip/hip_runtime.h>
#else
#include <cuda_runtime.h>
#endif
#if CUDA_VERSION >= 11000 && !defined(USE_ROCM)
#include <cuda_bf16.h>
#endif
#if defined(__HIP_PLATFORM_AMD__)
#define HAS_HALF2 1
#elif CUDART_VERSION >= 9000
#define HAS_HALF2 1
#endif
#if !defined(USE_ROCM) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700
#error too old
#endif

__global__ void scale(float *out, const float *in) {
#if defined(USE_ROCM) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)
  out[threadIdx.x] = in[threadIdx.x] * 2;
#else
  out[threadIdx.x] = in[threadIdx.x] + in[threadIdx.x];
#endif
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;");
#elif defined(USE_ROCM)
  __builtin_amdgcn_s_sleep(1);
#endif
}
"""
GUARDED = """import torch

ROCM = torch.version.hip is not None


def faster(model):
    if ROCM:
        return torch.compile(model)
    return torch.compile(model, mode="reduce-overhead")


def wide():
    return torch.version.hip is None and torch.cuda.get_device_capability() >= (9, 0)
"""


def test_guards_that_treat_rocm_are_left_alone(project: Path) -> None:
    """What was ported by hand is ported: nothing is found, nothing is written, and the proof passes."""
    (project / "kernel.cu").write_text(GUARDS)
    (project / "fast" / "train.py").write_text(GUARDED)
    before = bytes_of(project)
    program = [sys.executable, "-m", "rocmend", "port"]

    def run(*arguments: str | Path) -> Any:
        done = subprocess.run([*program, *arguments, "--json"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)["data"]

    found = run(project)
    assert [file for file in found["analysis"]["files"] if file.get("issues")] == []
    assert (found["changed"], found["added"]) == ([], [])
    assert run(project, "--apply")["changed"] == []
    assert bytes_of(project) == before
    (static,) = [level for level in run("verify", project)["levels"] if level["name"] == "static"]
    assert static["status"] == "passed"
    # beside something that does need a port, they stay as they are
    (project / "more.cu").write_text(KERNEL)
    assert run(project, "--apply", "--allow-dirty")["changed"] == ["more.cu"]
    levels = run("verify", project, "--level", "static")["levels"]
    assert [level["status"] for level in levels] == ["passed", "passed"]


@pytest.mark.slow
def test_commands_in_a_list_and_in_a_ladder_are_whole_lines(rocmend: Rocmend, project: Path) -> None:
    path = f"fast/{'a_long_name_' * 8}.py"
    (project / path).write_text(TRAINING)
    rocmend("port", project, "--apply")
    done = rocmend("port", "verify", project, "--list")
    assert f"  {path}" in done.out.splitlines()
    ladder = rocmend("port", "verify", project, "--target", "gfx1151")
    assert f"  rocmend port verify {project} --level python --target gfx1151 --run" in ladder.out.splitlines()


def test_a_module_nested_too_deeply_costs_itself(rocmend: Rocmend, project: Path) -> None:
    """A chain that the parser takes and recursion over its tree does not."""
    (project / "fast" / "train.py").write_text("from . import flags\n" + TRAINING)
    (project / "fast" / "flags.py").write_text(f"import torch\nis_hip = bool(torch.version.hip{'.a' * 2000})\n")
    done = rocmend("port", project, "--no-cache", "--format", "json")
    assert done.code == 1, done.err
    assert "fast/train.py" in data_of(done)["changed"]


@pytest.mark.slow
def test_the_exit_code_of_a_written_port_is_what_is_left(rocmend: Rocmend, project: Path) -> None:
    assert rocmend("port", project).code == 1, "something is to be rewritten"
    assert rocmend("port", project, "--apply").code == 0, "nothing is left"
    again = rocmend("port", project, "--apply")
    assert (again.code, "There was nothing to write" in again.out) == (0, True)
    (project / "Dockerfile").write_text("FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\n")
    left = rocmend("port", project, "--apply", "--allow-dirty")
    assert left.code == 1, "a suggestion is for a person to take"
    assert "--suggestions takes suggested rewrites too" in " ".join(left.out.split())
    assert rocmend("port", project, "--apply", "--suggestions").code == 0
    assert rocmend("port", project, "--apply", "--suggestions").code == 0


def test_the_patch_is_what_git_applies(rocmend: Rocmend, project: Path, tmp_path: Path) -> None:
    patch = tmp_path / "rocm.patch"
    done = rocmend("port", project, "--diff")
    assert done.code == 1
    patch.write_text(done.out)
    subprocess.run(["git", "apply", str(patch)], cwd=project, check=True)
    by_git = bytes_of(project)
    subprocess.run(["git", "apply", "-R", str(patch)], cwd=project, check=True)
    rocmend("port", project, "--apply")
    written = {path: data for path, data in bytes_of(project).items() if not path.startswith(".rocmend")}
    assert written == by_git


def test_the_patch_has_the_bytes_of_files_that_are_not_utf_8(project: Path, tmp_path: Path) -> None:
    (project / "kernel.cu").write_bytes(b"// f\xfcr alle\r\n" + KERNEL.replace("\n", "\r\n").encode().rstrip())
    patch = tmp_path / "rocm.patch"
    with patch.open("wb") as out:
        command = [sys.executable, "-m", "rocmend", "port", str(project), "--diff"]
        made = subprocess.run(command, check=False, stdout=out, stderr=subprocess.PIPE)
    assert made.returncode == 1
    assert b"f\xfcr alle\r\n" in patch.read_bytes()
    subprocess.run(["git", "apply", str(patch)], cwd=project, check=True)
    assert b"USE_ROCM" in (project / "kernel.cu").read_bytes()


def test_suggestions_that_were_taken_are_not_suggested_again(rocmend: Rocmend, project: Path) -> None:
    (project / "Dockerfile").write_text("FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nENV TORCH_CUDA_ARCH_LIST=9.0\n")
    assert "suggested rewrite" in rocmend("port", project).out
    done = rocmend("port", project, "--apply", "--suggestions")
    assert done.code == 0
    assert "suggested rewrite" not in done.out
    assert (project / "Dockerfile.rocm").is_file()
    again = rocmend("port", project, "--diff")
    assert (again.code, again.out, "not in the patch" in again.err) == (0, "", False)


def test_what_is_not_in_the_patch_is_told(rocmend: Rocmend, project: Path) -> None:
    assert "not in the patch" not in rocmend("port", project, "--diff").err
    (project / "half.py").write_text("import torch\ntorch.compile(\n")
    done = rocmend("port", project, "--diff", "--select", "PY06")
    assert (done.code, done.out) == (1, "")
    assert "1 source that was not read" in done.err


def test_a_source_that_was_not_read_is_not_called_done(rocmend: Rocmend, tmp_path: Path) -> None:
    (tmp_path / "half.py").write_text("import torch\ntorch.compile(\n")
    done = rocmend("port", tmp_path, "--no-cache")
    assert done.code == 1
    assert "Nothing in it needs a port" not in done.out
    assert "1 source could not be read" in done.out


def test_rules_are_chosen_with_commas_and_an_empty_name_is_none(rocmend: Rocmend, project: Path) -> None:
    chosen = rocmend("port", project, "--select", "PY01,CU04", "--format", "jsonl")
    assert {json.loads(line)["rule"] for line in chosen.out.splitlines()} == {"PY01", "CU04"}
    assert rocmend("port", project, "--ignore", "", "--format", "jsonl").out


@pytest.mark.slow
def test_a_second_part_of_a_port_needs_no_commit_between(rocmend: Rocmend, project: Path) -> None:
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]
    for call in (["git", "init", "-q"], ["git", "add", "-A"], commit):
        subprocess.run(call, cwd=project, check=True)
    assert rocmend("port", project, "--apply", "--select", "PY").code == 0
    assert rocmend("port", project, "--apply").code == 0
    assert rocmend("port", project, "--apply").code == 0
    (project / "fast" / "train.py").write_text("changed = True\n")
    (project / "more.cu").write_text(KERNEL)
    done = rocmend("port", project, "--apply")
    assert done.code == 2
    assert "fast/train.py" in done.err


def test_sarif_names_places_and_shows_rewrites(rocmend: Rocmend, project: Path) -> None:
    log = json.loads(rocmend("port", project, "--format", "sarif").out)
    run = log["runs"][0]
    by_rule = {result["ruleId"]: result for result in run["results"]}
    result = by_rule["PY01"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "fast/train.py"
    assert place["region"]["startLine"] == 5
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "PY01"
    assert '"default"' in "".join(edit["text"] for edit in result["properties"]["rocmSide"])
    assert not any("fixes" in one for one in run["results"])  # applied, one would replace the NVIDIA side
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]


def test_sarif_escapes_names_and_tells_what_was_not_read(rocmend: Rocmend, project: Path) -> None:
    (project / "50 % größer.py").write_text(TRAINING)
    (project / "half.py").write_text("import torch\ntorch.compile(\n")
    run = json.loads(rocmend("port", project, "--format", "sarif").out)["runs"][0]
    places = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]}
    assert "50%20%25%20gr%C3%B6%C3%9Fer.py" in places
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "half.py"
    assert "syntax error" in told["message"]["text"]


def test_a_folder_of_hip_beside_the_sources_is_what_is_proven(rocmend: Rocmend, project: Path) -> None:
    before = bytes_of(project)
    assert data_of(rocmend("port", project, "--apply", "--style", "tree", "--json"))["written"]
    assert (project / "kernel.cu").read_text() == KERNEL
    proof = data_of(rocmend("port", "verify", project, "--level", "static", "--json"))
    assert [level["status"] for level in proof["levels"]] == ["passed", "passed"]
    hip = project / "rocm" / "kernel.hip"
    assert hip.is_file()
    again = rocmend("port", project, "--apply")  # in the style of the port that is there
    assert again.code == 0
    assert "Nothing to rewrite" in again.out
    assert (project / "kernel.cu").read_text() == KERNEL
    hip.write_text(hip.read_text() + "void moon() { cudaFlyToTheMoon(); }\n")
    proof = data_of(rocmend("port", "verify", project, "--level", "static", "--json"))
    assert proof["levels"][1]["status"] == "incomplete"
    assert rocmend("port", "undo", project).code == 2
    hip.write_text(hip.read_text().replace("void moon() { cudaFlyToTheMoon(); }\n", ""))
    assert rocmend("port", "undo", project).code == 0
    assert bytes_of(project) == before


def test_one_decision_is_one_line_however_many_places_it_is_about(rocmend: Rocmend, project: Path) -> None:
    guard = "__host__ __device__ int f() {\n#if __CUDA_ARCH__ >= 700\n  return 1;\n#endif\n  return 0;\n}\n"
    for number in range(30):
        (project / f"arch_{number:02}.cu").write_text(guard)
    done = rocmend("port", project)
    row = next(line for line in done.out.splitlines() if line.startswith("CU15"))
    assert row.split()[1] == "30\N{MULTIPLICATION SIGN}"
    assert "arch_00.cu:2" in done.out
    assert "arch_29.cu" not in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert done.out.index("By hand: 30 places") < done.out.index("Rewritten: ")
    assert "arch_29.cu" in rocmend("port", project, "-v").out


def test_single_files_are_linted_by_the_projects_settings(
    rocmend: Rocmend, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pyproject.toml").write_text('[tool.rocmend.port]\nignore = ["PY01"]\nexclude = ["third_party/*"]\n')
    (project / "third_party").mkdir()
    (project / "third_party" / "other.cu").write_text(KERNEL)
    (project / "README.md").write_text("cudaMalloc\n")
    monkeypatch.chdir(project)
    rest = ("README.md", "fast/train.py", "third_party/other.cu")
    assert rocmend("port", "lint", *rest).code == 0
    found = rocmend("port", "lint", "./kernel.cu", *rest, "--json")
    assert (found.code, [file["path"] for file in data_of(found)["files"]]) == (1, ["kernel.cu"])
    assert "CU04" in rocmend("port", "lint", project / "kernel.cu").out
    assert rocmend("port", "lint", "../elsewhere.cu").code == 2
    rocmend("port", ".", "--write-baseline", "known.json")
    (project / "new.cu").write_text(KERNEL)
    known = data_of(rocmend("port", "lint", "kernel.cu", "new.cu", "--baseline", "known.json", "--json"))
    assert [file["path"] for file in known["files"]] == ["new.cu"]
    rocmend("port", ".", "--apply")
    assert rocmend("port", "lint", "kernel.cu", "new.cu").code == 0, "a guard is no finding"


def test_lint_reads_what_was_named_or_says_that_it_did_not(
    rocmend: Rocmend, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "inner" / ".git").mkdir(parents=True)
    (project / "inner" / "other.cu").write_text(KERNEL)
    (project / "good.cu").write_text("int main() { return 0; }\n")
    (project / "README.md").write_text("cudaMalloc\n")
    monkeypatch.chdir(project)
    for wrong, why in {
        ("nothing.cu",): "nothing.cu does not exist",
        ("",): "path is empty",
        ("fast",): "fast is a folder",
        ("inner/other.cu",): "a git repository of its own, inner",
        ("good.cu", "typo.cu"): "typo.cu does not exist",
    }.items():
        done = rocmend("port", "lint", *(str(one) for one in wrong))
        assert (done.code, why in " ".join(done.err.split())) == (2, True), (wrong, done)
    done = rocmend("port", "lint", "README.md")
    assert done.code == 0
    assert "No file was read" in done.out
    assert "README.md was not read: its name is not" in " ".join(done.out.split())
    assert "1 file read" in rocmend("port", "lint", "good.cu", "README.md").out


def test_what_is_known_is_not_told_again(rocmend: Rocmend, project: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    rocmend("port", project, "--write-baseline", known)
    (project / "fast" / "more.py").write_text(TRAINING)
    done = rocmend("port", project, "--baseline", known, "--format", "jsonl")
    assert {json.loads(line)["path"] for line in done.out.splitlines()} == {"fast/more.py"}
    (project / "fast" / "more.py").unlink()
    assert "apart from what is known or ignored" in " ".join(rocmend("port", project, "--baseline", known).out.split())


def test_rules_are_listed_and_explained(rocmend: Rocmend) -> None:
    listed = rocmend("port", "--rules")
    assert listed.code == 0
    assert "PY01" in listed.out
    told = rocmend("port", "--explain", "py01")
    assert told.code == 0
    assert "Why it matters" in told.out
    unknown = rocmend("port", "--explain", "PY999")
    assert unknown.code == 2
    assert "--rules" in unknown.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("port", "no-such-folder"), "no-such-folder"),
        (("port", ".", "--apply", "--diff"), "--diff"),
        (("port", ".", "--diff", "--format", "sarif"), "sarif"),
        (("port", ".", "--target", "gfx9999"), "gfx9999"),
        (("port", ".", "--select", "ZZ"), "ZZ"),
    ],
)
def test_wrong_use_is_told(
    rocmend: Rocmend, project: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(project)
    done = rocmend(*arguments)
    assert done.code == 2
    assert message in done.err


def test_a_check_ports_and_proves_a_copy(rocmend: Rocmend, project: Path, tmp_path: Path) -> None:
    before = bytes_of(project)
    report = tmp_path / "report.html"
    done = rocmend("check", project, "--target", "gfx1151", "--no-probe", "--no-store", "-o", report)
    assert done.code == 1
    assert "Port of" in done.out
    assert bytes_of(project) == before
    text = report.read_text()
    for part in ("How far the port was proven", "The port as a patch", "reduce-overhead"):
        assert part in text
    (head,) = [line for line in text.splitlines() if '<p class="summary' in line]
    assert f"Port of {project}: " in head


@pytest.mark.slow
def test_a_check_copies_what_can_be_copied(rocmend: Rocmend, project: Path, tmp_path: Path) -> None:
    (project / "kernel.cu").unlink()
    os.mkfifo(project / "pipe")
    (project / "loop").symlink_to(".")
    (project / "gone.cu").symlink_to("nowhere")
    report = tmp_path / "report.html"
    done = rocmend("check", project, "--target", "gfx1151", "--no-probe", "--no-store", "-o", report)
    assert done.code == 1
    assert "Proven in a copy up to level 1" in " ".join(done.out.split())


@pytest.mark.slow
def test_a_check_has_the_project_in_its_sarif(rocmend: Rocmend, project: Path, tmp_path: Path) -> None:
    (project / "kernel.cu").unlink()
    report = tmp_path / "report.html"
    done = rocmend(
        "check", project, "--target", "gfx1151", "--no-probe", "--no-store", "-o", report, "--format", "sarif"
    )
    machine, port = json.loads(done.out)["runs"]
    assert {result["ruleId"] for result in port["results"]} == {"PY01"}
    assert machine["automationDetails"] != port["automationDetails"]
    assert "PY01" not in {result["ruleId"] for result in machine["results"]}


def test_an_audit_tells_what_an_install_would_do(rocmend: Rocmend, project: Path, tmp_path: Path) -> None:
    (project / "requirements.txt").write_text("torch==2.3.0\njax[cuda12]\ntqdm\n")
    script = tmp_path / "install.sh"
    done = rocmend("port", "audit", project, "--script", script, "--json")
    assert done.code == 1
    plan = data_of(done)["plan"]
    assert "torch==2.3.0" in [one["text"] for one in plan["left_out"]]
    assert any(one.startswith("tqdm") for one in plan["plain"])
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert not [line for line in script.read_text().splitlines() if "torch==2.3.0" in line and line[0] != "#"]
    shown = rocmend("port", "audit", project)
    assert "Left out" in shown.out
    assert rocmend("port", "audit", project, "--python", "/no/such/python").code == 2


@pytest.mark.slow
def test_golden_vectors_are_kept_and_compared(rocmend: Rocmend, project: Path) -> None:
    pytest.importorskip("torch")
    (project / "fast" / "ops.py").write_text("def doubled(x):\n    return x * 2\n")
    assert rocmend("port", "golden", project, "--name", "cpu", "--device", "cpu").code == 2
    (project / "pyproject.toml").write_text('[tool.rocmend.port]\ngolden = ["fast.ops:doubled"]\n')
    done = rocmend("port", "golden", project, "--name", "cpu", "--device", "cpu", "--run", "--json")
    assert done.code == 0, done.err
    assert Path(data_of(done)["path"]).is_file()
    (project / "fast" / "ops.py").write_text("def two(x, y):\n    return x\n\ndef doubled(x):\n    return x * 2\n")
    (project / "pyproject.toml").write_text('[tool.rocmend.port]\ngolden = ["fast.ops:two", "fast.ops:doubled"]\n')
    half = rocmend("port", "golden", project, "--name", "half", "--device", "cpu", "--run")
    assert half.code == 1
    assert "Could not be called" in half.out
    (project / "pyproject.toml").write_text('[tool.rocmend.port]\ngolden = ["fast.ops:two"]\n')
    none = rocmend("port", "golden", project, "--name", "none", "--device", "cpu", "--run")
    assert none.code == 2
    assert "missing 1 required positional argument" in none.err
    assert sorted(path.name for path in (project / ".rocmend" / "golden").iterdir()) == ["cpu.json", "half.json"]
    assert rocmend("port", "golden", project, "--name", "../out", "--device", "cpu").code == 2
