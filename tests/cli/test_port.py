"""``port`` and ``port run``: what is found, what is written, and in which forms."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .port_project import KERNEL, TRAINING, Rocmend, bytes_of, data_of


def test_without_apply_nothing_is_written(rocmend: Rocmend, project: Path) -> None:
    before = bytes_of(project)
    done = rocmend("port", project)
    assert done.code == 1
    assert bytes_of(project) == before
    assert "PY02" in done.out
    assert "CU04" in done.out
    assert "Nothing was written" in done.out
    assert max(len(line) for line in done.out.splitlines() if not line.startswith("/")) <= 80  # but for the path


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


@pytest.mark.parametrize("text", ["import torch\ntorch.compile(\n", "\ndef f(:\n    pass\n"])
def test_a_source_with_a_syntax_error_is_named_and_not_called_done(rocmend: Rocmend, tmp_path: Path, text: str) -> None:
    """Also where no rule would have looked at it: what is broken is the first thing to know of it."""
    (tmp_path / "half.py").write_text(text)
    (tmp_path / "old.py").write_text('print "Python 2 is not broken"\n')
    done = rocmend("port", tmp_path, "--no-cache")
    assert done.code == 1
    assert "Nothing in it needs a port" not in done.out
    assert "1 source could not be read" in done.out
    assert "half.py   it has a syntax error (line 2:" in done.out
    assert "old.py" not in done.out
    envelope = json.loads(rocmend("port", tmp_path, "--json").out)
    (file,) = envelope["data"]["analysis"]["files"]
    assert (envelope["status"], file["path"], "line 2" in file["skipped"]) == ("findings", "half.py", True)
    (run,) = json.loads(rocmend("port", tmp_path, "--format", "sarif").out)["runs"]
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert "line 2" in told["message"]["text"]


def test_rules_are_chosen_with_commas_and_an_empty_name_is_none(rocmend: Rocmend, project: Path) -> None:
    chosen = rocmend("port", project, "--select", "PY02,CU04", "--format", "jsonl")
    assert {json.loads(line)["rule"] for line in chosen.out.splitlines()} == {"PY02", "CU04"}
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


def test_a_requirement_that_cannot_work_on_rocm_is_left_to_do(rocmend: Rocmend, project: Path) -> None:
    (project / "requirements.txt").write_text("cupy-cuda12x\ntorch==2.6.0+cu124\n")
    told = rocmend("port", project, "--apply")
    assert (told.code, "Use cupy." in told.out) == (1, True)
    assert rocmend("port", project, "--apply", "--suggestions").code == 0
    assert "cupy-cuda12x" not in re.findall(r"^[^#].*", (project / "requirements-rocm.txt").read_text(), re.MULTILINE)
    assert rocmend("port", project, "--apply").code == 0, "what was taken stays"
    pin = 'from setuptools import setup\n\nsetup(name="a", install_requires=["torch==2.6.0+cu124"])\n'
    (project / "setup.py").write_text(pin)
    left = rocmend("port", project)
    assert (left.code, "By hand: 1 place" in left.out, "without the label" in left.out) == (1, True, True)
    assert "default index's CUDA build" not in told.out + left.out, "+cu124 is not there"
    bare = project.parent / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    audited = " ".join(rocmend("port", "audit", project, "--python", bare / "bin" / "python").out.split())
    assert "requires torch==2.6.0+cu124, which is a CUDA build (+cu124)." in audited


def test_sarif_names_places_and_shows_rewrites(rocmend: Rocmend, project: Path) -> None:
    log = json.loads(rocmend("port", project, "--format", "sarif").out)
    run = log["runs"][0]
    by_rule = {result["ruleId"]: result for result in run["results"]}
    result = by_rule["PY02"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "fast/train.py"
    assert place["region"]["startLine"] == 5
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "PY02"
    assert '"max-autotune-no-cudagraphs"' in "".join(edit["text"] for edit in result["properties"]["rocmSide"])
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


def test_one_decision_is_one_line_however_many_places_it_is_about(rocmend: Rocmend, project: Path) -> None:
    guard = "__host__ __device__ int f() {\n#if __CUDA_ARCH__ >= 700\n  return 1;\n#endif\n  return 0;\n}\n"
    for number in range(30):
        (project / f"arch_{number:02}.cu").write_text(guard)
    done = rocmend("port", project)
    row = next(line for line in done.out.splitlines() if line.startswith("CU15"))
    assert row.split()[1] == "30\N{MULTIPLICATION SIGN}"
    assert "arch_00.cu:2" in done.out
    assert "arch_29.cu" not in done.out
    assert max(len(line) for line in done.out.splitlines() if not line.startswith("/")) <= 80  # but for the path
    assert done.out.index("By hand: 30 places") < done.out.index("To be rewritten: ")
    assert "arch_29.cu" in rocmend("port", project, "-v").out


def test_what_is_known_is_not_told_again(rocmend: Rocmend, project: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    rocmend("port", project, "--write-baseline", known)
    (project / "fast" / "more.py").write_text(TRAINING)
    done = rocmend("port", project, "--baseline", known, "--format", "jsonl")
    assert {json.loads(line)["path"] for line in done.out.splitlines()} == {"fast/more.py"}
    (project / "fast" / "more.py").unlink()
    assert "apart from what is known or ignored" in " ".join(rocmend("port", project, "--baseline", known).out.split())


def test_what_is_planned_and_what_is_done_are_counted_alike(rocmend: Rocmend, project: Path) -> None:
    """One tense and one count in the headline, the plan and the headings."""
    (project / "requirements.txt").write_text("torch==2.7.1\nnumpy\n")
    (project / "Dockerfile").write_text("FROM nvidia/cuda:12.8.1-devel-ubuntu24.04\nENV TORCH_CUDA_ARCH_LIST=9.0\n")
    planned = rocmend("port", project).out
    (places,) = re.findall(r"^(\d+) places in 3 files", planned, re.MULTILINE)
    assert re.search(rf"^To be rewritten: {places} places", planned, re.MULTILINE)
    assert sum(map(int, re.findall(r"(\d+) to rewrite", planned))) == int(places)
    assert re.search(r"Verification +after --apply", planned)
    assert "Files to be made\n- " in planned, "no blank line, and the mark that other lists have"
    assert not re.search(r"^Rewritten|^Files made", planned, re.MULTILINE)
    assert not re.search(
        r"\brewritten\b",
        rocmend("port", project, "-v").out.replace("to be rewritten", "").replace("To be rewritten", ""),
    )
    applied = rocmend("port", project, "--apply").out
    assert re.search(rf"^{places} places in 3 files rewritten", applied, re.MULTILINE)
    assert "- kernel.cu\n" in applied
    assert not re.search(r"^Plan|^Rewritten|^Dependencies", applied, re.MULTILINE), "the plan was shown before"
    assert "rocmend port undo" in applied
    assert "Files made\n- " in applied
    again = rocmend("port", project, "--apply").out
    assert "Nothing to rewrite" in again
    assert not re.search(r"^Rewritten|^To be rewritten|\d+ to rewrite|\d rewritten", again, re.MULTILINE)
    assert not [line for line in (planned + applied + again).splitlines() if line != line.rstrip()]
    assert "1 kinds" not in planned + applied


def test_a_folder_of_scripts_is_not_called_nothing_to_port(rocmend: Rocmend, tmp_path: Path) -> None:
    (tmp_path / "i.sh").write_text("pip install torch==2.7.1\npip install torchvision==0.22.0\n")
    told = rocmend("port", tmp_path).out
    assert "Kind   scripts and settings" in told
    assert "To be rewritten: 2 places, 1 kind\n" in told


def test_files_for_rocm_are_counted_as_they_are_listed(rocmend: Rocmend, project: Path) -> None:
    (project / "fast" / "here.py").write_text("import torch\n\nis_hip = torch.version.hip is not None\n")
    (project / "Dockerfile.rocm").write_text("FROM rocm/pytorch\n")
    told = rocmend("port", project, "--no-cache").out
    (listed,) = re.findall(r"^For ROCm already +(.*)$", told, re.MULTILINE)
    assert re.search(rf"{listed.count(',') + 1} files are for ROCm", " ".join(told.split()))


def test_an_open_comment_is_told_to_its_end(rocmend: Rocmend, project: Path) -> None:
    words = "ROCm has no counterpart of it. Omit it on the ROCm side, or write it with what HIP has, see the page."
    (project / "open.cu").write_text(
        f"#ifdef USE_ROCM\n  // ROCM CU41: {words[:60].rpartition(' ')[0]}\n  //   {words[:60].rpartition(' ')[2]}"
        f"{words[60:]}\n  k();\n#else\n  k2();\n#endif\n// Another comment.\n"
    )
    done = rocmend("port", project, "--select", "CU46", "--format", "jsonl")
    (found,) = [json.loads(line) for line in done.out.splitlines()]
    assert found["message"] == f"CU41 is still open: {words}"


def test_rules_are_listed_and_explained(rocmend: Rocmend) -> None:
    listed = rocmend("port", "--rules")
    assert listed.code == 0
    assert "PY02" in listed.out
    told = rocmend("port", "--explain", "py01")
    assert told.code == 0
    assert "Why it matters" in told.out
    assert rocmend("port", "--explain", "DP05").out.count("Sources:") == 1
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
