"""Porting a project and taking it back, with real rules, writers and git."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.core.errors import RocmendError, UnitError, UsageError
from rocmend.port import rewrite as rewrite_module
from rocmend.port.analyse import analyse
from rocmend.port.apply import apply, changes, diff
from rocmend.port.languages import identity_broken
from rocmend.port.records import Language
from rocmend.port.state import generations
from rocmend.port.undo import undo

PYTHON = b'import torch\n\n\ndef step(model):\n    return torch.compile(model, mode="max-autotune")\n'
CUDA = b"""#include <cuda_runtime.h>
__global__ void total(float *out) {
  float value = __shfl_down_sync(0xffffffff, *out, 1);
  *out = value;
}
"""

Make = Callable[[Path, dict[str, str | bytes]], Path]


def tree(root: Path) -> dict[str, tuple[bytes, int]]:
    """Every file but the record of ports and git's, with its permissions."""
    return {
        str(path.relative_to(root)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in sorted(root.rglob("*"))
        if path.is_file() and not {".git", ".rocmend"} & set(path.relative_to(root).parts)
    }


def git(root: Path, *arguments: str) -> str:
    who = ("-c", "user.name=n", "-c", "user.email=e")
    done = subprocess.run(["git", *who, "-C", str(root), *arguments], check=True, capture_output=True)
    return done.stdout.decode()


def committed(root: Path) -> Path:
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "all")
    return root


def test_a_port_is_written_and_taken_back(project: Path) -> None:
    (project / "script.py").chmod(0o755)
    before = tree(project)
    applied = apply(analyse(project))
    after = tree(project)
    assert set(applied.changed) >= {"pkg/train.py", "pkg/deep/model.py", "script.py", "csrc/total.cu"}
    assert set(applied.added) >= {"pkg/_rocm.py", "csrc/cuda_to_hip.h"}
    assert not applied.left_alone
    assert {path for path in after if path not in before} == set(applied.added)
    assert {path for path in before if before[path] != after[path]} == set(applied.changed)
    assert all(after[path][1] == before[path][1] for path in before)
    assert b"\r\n" in after["script.py"][0]
    assert b"\n" not in after["script.py"][0].replace(b"\r\n", b"")
    assert b"from .._rocm import is_rocm" in after["pkg/deep/model.py"][0]
    undone = undo(project)
    assert tree(project) == before
    assert set(undone.restored) == set(applied.changed)
    assert set(undone.removed) == set(applied.added)
    assert not (project / ".rocmend").exists()


def test_the_nvidia_side_of_every_change_is_the_original(project: Path) -> None:
    for change in changes(analyse(project)):
        if change.before is not None and change.after is not None:
            language = Language.CUDA if change.path.endswith(".cu") else Language.PYTHON
            assert identity_broken(language, change.path, change.before, change.after) is None


def test_a_second_port_changes_nothing(project: Path) -> None:
    apply(analyse(project))
    once = tree(project)
    again = apply(analyse(project), allow_dirty=True)
    assert (again.changed, again.added, again.made) == ((), (), 0)
    assert tree(project) == once
    assert len(generations(project)) == 1


def test_ports_of_some_rules_add_up_and_are_taken_back_together(project: Path) -> None:
    before = tree(project)
    apply(analyse(project, select=("PY",)))
    apply(analyse(project, select=("CU",)))
    assert len(generations(project)) == 2
    several = tree(project)
    undo(project)
    assert tree(project) == before
    apply(analyse(project))
    assert tree(project) == several


def test_git_applies_the_diff_and_the_inverse(project: Path) -> None:
    committed(project)
    patch = diff(changes(analyse(project)))
    apply(analyse(project))
    ported = tree(project)
    inverse = (project / ".rocmend" / "port" / "0001" / "inverse.patch").read_bytes()
    undo(project)
    assert git(project, "status", "--porcelain") == ""
    subprocess.run(["git", "apply", "-"], cwd=project, input=patch.encode(), check=True, capture_output=True)
    assert tree(project) == ported
    subprocess.run(["git", "apply", "-"], cwd=project, input=inverse, check=True, capture_output=True)
    assert git(project, "status", "--porcelain") == ""


def test_the_record_is_no_matter_of_git(project: Path) -> None:
    committed(project)
    apply(analyse(project))
    assert ".rocmend" not in git(project, "status", "--porcelain", "--untracked-files=all")


def test_a_dirty_work_tree_is_refused_unless_allowed(project: Path) -> None:
    committed(project)
    (project / "README.md").write_text("mine\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"uncommitted changes: README\.md"):
        apply(analyse(project))
    assert git(project, "status", "--porcelain").strip() == "M README.md"
    assert apply(analyse(project), allow_dirty=True).changed


def test_an_untracked_file_counts_where_it_would_be_changed(project: Path, make_project: Make) -> None:
    committed(project)
    make_project(project, {"notes.txt": "mine\n"})
    make_project(project, {"new.py": (project / "script.py").read_bytes()})
    with pytest.raises(UsageError, match=r"uncommitted changes: new\.py\."):
        apply(analyse(project))


def test_a_part_of_a_work_tree_answers_for_itself(project: Path) -> None:
    committed(project)
    (project / "README.md").write_text("mine\n", encoding="utf-8")
    assert apply(analyse(project / "pkg")).changed


def test_a_file_that_changed_since_the_analysis_is_left_alone(project: Path) -> None:
    analysis = analyse(project)
    changed = (project / "csrc" / "total.cu").read_bytes() + b"// more\n"
    (project / "csrc" / "total.cu").write_bytes(changed)
    applied = apply(analysis)
    assert [left.path for left in applied.left_alone] == ["csrc/total.cu"]
    assert "changed since" in applied.left_alone[0].reason
    assert (project / "csrc" / "total.cu").read_bytes() == changed
    assert "pkg/train.py" in applied.changed


def test_a_file_whose_proof_fails_is_left_alone_with_what_it_alone_needed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def failing(language: Language, path: str, before: bytes, after: bytes, reach: str) -> str | None:
        return "made up" if language is Language.CUDA else identity_broken(language, path, before, after, reach)

    monkeypatch.setattr(rewrite_module, "identity_broken", failing)
    before = tree(project)
    applied = apply(analyse(project))
    assert [(left.path, "made up" in left.reason) for left in applied.left_alone] == [("csrc/total.cu", True)]
    assert tree(project)["csrc/total.cu"] == before["csrc/total.cu"]
    assert not any(path.endswith(".h") for path in applied.added)


def test_a_file_whose_edits_contradict_is_left_alone(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> bytes:
        raise UnitError("port rule", "two rewrites change the same bytes.")

    monkeypatch.setattr(rewrite_module, "ported", failing)
    applied = apply(analyse(project))
    assert applied.changed == applied.added == ()
    assert len(applied.left_alone) == 4


def test_a_support_file_never_replaces_a_project_s_own(project: Path, make_project: Make) -> None:
    make_project(project, {"pkg/_rocm.py": "mine = 1\n"})
    applied = apply(analyse(project))
    assert (project / "pkg" / "_rocm.py").read_text(encoding="utf-8") == "mine = 1\n"
    assert {left.path for left in applied.left_alone} == {"pkg/train.py", "pkg/deep/model.py"}
    assert "script.py" in applied.changed


def test_work_by_hand_is_not_undone(project: Path) -> None:
    before = tree(project)
    apply(analyse(project))
    mine = (project / "pkg" / "train.py").read_bytes() + b"# by hand\n"
    (project / "pkg" / "train.py").write_bytes(mine)
    ported = tree(project)
    with pytest.raises(UsageError, match=r"(?s)by hand since the port: pkg/train\.py.*git -C .* apply"):
        undo(project)
    assert tree(project) == ported
    undone = undo(project, keep_changed=True)
    assert undone.kept == ("pkg/train.py",)
    after = tree(project)
    assert after.pop("pkg/train.py")[0] == mine
    assert {path: after[path] for path in before if path != "pkg/train.py"} == {
        path: before[path] for path in before if path != "pkg/train.py"
    }
    (left,) = generations(project)
    assert [entry.path for entry in left.manifest.entries] == ["pkg/train.py"]
    assert left.original(left.manifest.entries[0]) == before["pkg/train.py"][0]
    with pytest.raises(UsageError, match=r"by hand since the port: pkg/train\.py"):
        undo(project)
    (project / "pkg" / "train.py").write_bytes(mine.removesuffix(b"# by hand\n"))
    git(project, "apply", str(left.path / "inverse.patch"))
    assert tree(project) == before
    assert undo(project).restored == ()
    assert not (project / ".rocmend").exists()


def test_a_file_that_was_taken_back_by_hand_is_no_obstacle(project: Path) -> None:
    before = tree(project)
    apply(analyse(project))
    (project / "pkg" / "train.py").write_bytes(before["pkg/train.py"][0])
    undo(project)
    assert tree(project) == before


def test_a_damaged_original_is_told_before_anything_changes(project: Path) -> None:
    apply(analyse(project))
    ported = tree(project)
    for path in (project / ".rocmend" / "port" / "0001" / "originals").iterdir():
        path.write_bytes(b"damaged")
    with pytest.raises(Exception, match="original"):
        undo(project)
    assert tree(project) == ported


def test_without_a_port_there_is_nothing_to_undo(project: Path) -> None:
    with pytest.raises(UsageError, match="no port"):
        undo(project)
    assert not (project / ".rocmend").exists()


def test_an_unknown_style_is_told(project: Path) -> None:
    with pytest.raises(UsageError, match="baroque"):
        changes(analyse(project), style="baroque")


def test_the_other_style_leaves_sources_as_they_are(project: Path, make_project: Make) -> None:
    make_project(
        project,
        {
            "csrc/helper.h": "inline int one() { return 1; }\n",
            "csrc/part.cu": "__global__ void part() {}\n",
            "csrc/whole.cu": '#include "helper.h"\n#include "part.cu"\nvoid f() { cudaDeviceSynchronize(); }\n',
        },
    )
    before = tree(project)
    applied = apply(analyse(project), style="tree")
    after = tree(project)
    assert {path for path in before if path.startswith("csrc") and before[path] != after[path]} == set()
    assert {"rocm/csrc/total.hip", "rocm/csrc/whole.hip", "rocm/csrc/part.cu", "rocm/csrc/helper.h"} <= set(
        applied.added
    )
    assert "rocm/csrc/cuda_to_hip.h" in applied.added
    assert "pkg/train.py" in applied.changed
    assert b"hipDeviceSynchronize()" in after["rocm/csrc/whole.hip"][0]
    assert b"USE_ROCM" not in after["rocm/csrc/total.hip"][0]
    assert after["rocm/csrc/helper.h"] == before["csrc/helper.h"]
    again = apply(analyse(project), style="tree", allow_dirty=True)
    assert (again.changed, again.added, again.made) == ((), (), 0)
    undo(project)
    assert tree(project) == before
    assert not (project / "rocm").exists()


def test_the_other_style_includes_the_headers_of_the_names_that_it_puts(tmp_path: Path, make_project: Make) -> None:
    source = "#include <math_constants.h>\n__global__ void top(float *x) { *x = CUDART_INF_F; }\n"
    root = make_project(tmp_path / "p", {"top.cu": source})
    apply(analyse(root), style="tree")
    assert b"= HIP_INF_F;" in (root / "rocm" / "top.hip").read_bytes()
    assert b"#include <hip/hip_math_constants.h>" in (root / "rocm" / "cuda_to_hip.h").read_bytes()


def test_the_other_style_keeps_out_of_a_folder_that_is_there(project: Path, make_project: Make) -> None:
    make_project(project, {"rocm/mine.cu": "int x;\n"})
    with pytest.raises(UsageError, match="already exists where"):
        changes(analyse(project), style="tree")


def test_a_file_beside_that_is_the_project_s_own_stays(project: Path, make_project: Make) -> None:
    make_project(project, {"requirements.txt": "torch==2.7.1\n", "requirements-rocm.txt": "mine\n"})
    applied = apply(analyse(project))
    assert (project / "requirements-rocm.txt").read_text(encoding="utf-8") == "mine\n"
    assert [left.path for left in applied.left_alone] == ["requirements-rocm.txt"]


def test_files_beside_are_made_once(project: Path, make_project: Make) -> None:
    make_project(project, {"requirements.txt": "torch==2.7.1\nnumpy\n"})
    before = tree(project)
    applied = apply(analyse(project))
    assert "requirements-rocm.txt" in applied.added
    again = apply(analyse(project), allow_dirty=True)
    assert (again.changed, again.added) == ((), ())
    assert tree(project)["requirements.txt"] == before["requirements.txt"]


def test_what_cannot_be_written_is_told_in_words(project: Path) -> None:
    (project / ".rocmend").write_text("in the way", encoding="utf-8")
    before = tree(project)
    with pytest.raises(RocmendError, match=r"cannot be written.*run the command again"):
        apply(analyse(project))
    assert tree(project) == before


def test_permissions_are_given_back(project: Path) -> None:
    (project / "script.py").chmod(0o4750)
    apply(analyse(project))
    assert stat.S_IMODE((project / "script.py").stat().st_mode) == 0o750
    (project / "script.py").chmod(0o777)
    undo(project)
    assert stat.S_IMODE((project / "script.py").stat().st_mode) == 0o750


def test_permissions_that_were_taken_away_since_stay_away(project: Path) -> None:
    (project / "script.py").chmod(0o755)
    apply(analyse(project))
    (project / "script.py").chmod(0o600)
    undo(project)
    assert stat.S_IMODE((project / "script.py").stat().st_mode) == 0o600


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("bom.py", b"\xef\xbb\xbf" + PYTHON),
        ("crlf.py", PYTHON.replace(b"\n", b"\r\n")),
        ("endless.py", PYTHON.rstrip(b"\n")),
        ("latin.py", b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + PYTHON),
        ("bom.cu", b"\xef\xbb\xbf" + CUDA),
        ("crlf.cu", CUDA.replace(b"\n", b"\r\n")),
        ("endless.cu", CUDA.rstrip(b"\n")),
        ("latin.cu", b"// caf\xe9\n" + CUDA),
        ("mixed.cu", CUDA.replace(b"\n", b"\r\n", 3)),
    ],
)
def test_files_keep_their_encoding_and_line_ends(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    applied = apply(analyse(tmp_path))
    after = (tmp_path / name).read_bytes()
    assert name in applied.changed
    assert after.startswith(b"\xef\xbb\xbf") == data.startswith(b"\xef\xbb\xbf")
    assert after.count(b"\xef\xbb\xbf") == data.count(b"\xef\xbb\xbf")
    assert after.endswith(b"\n") == data.endswith(b"\n")
    assert (b"\xe9" in after) == (b"\xe9" in data)
    if b"\r\n" not in data:
        assert b"\r" not in after
    if name.startswith("crlf"):
        assert after.count(b"\n") == after.count(b"\r\n")
    again = apply(analyse(tmp_path), allow_dirty=True)
    assert (again.changed, again.added) == ((), ())
    undo(tmp_path)
    assert (tmp_path / name).read_bytes() == data


def test_a_source_includes_what_its_rewrites_use(tmp_path: Path, make_project: Make) -> None:
    """No rule about headers sees a source that names nothing of CUDA but an operation across lanes."""
    source = "// sums\ninline float f(float v) { return __shfl_down_sync(0xffffffff, v, 1); }\n"
    make_project(tmp_path, {"a/deep.cuh": source, "b/k.cu": CUDA})
    applied = apply(analyse(tmp_path))
    assert "cuda_to_hip.h" in applied.added
    after = (tmp_path / "a" / "deep.cuh").read_text(encoding="utf-8")
    assert after.count('#include "../cuda_to_hip.h"') == 1
    assert not apply(analyse(tmp_path), allow_dirty=True).changed
