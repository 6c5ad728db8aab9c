"""Level 6: a port is run both ways, and what the original does is the measure."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError
from rocmend.port.analyse import analyse
from rocmend.port.apply import apply
from rocmend.port.verify import golden, python_run, python_tree
from rocmend.port.verify.execution import Execution
from rocmend.port.verify.job import Job
from rocmend.port.verify.ladder import verify
from rocmend.port.verify.python_tree import SIDES, TreeSide, forced, grow
from rocmend.port.verify.records import Level, Outcome, Status

Make = Callable[[Path, dict[str, str | bytes]], Path]

TORCH = """
class version:
    hip = None
    cuda = "12.4"


def compile(model=None, mode=None, fullgraph=False):
    if mode not in ("default", "max-autotune", "max-autotune-no-cudagraphs"):
        raise ValueError(mode)
    return lambda x: (x + 1, mode)
"""
FILES: dict[str, str | bytes] = {
    "torch/__init__.py": TORCH,
    "src/pkg/__init__.py": "",
    "src/pkg/train.py": 'import torch\n\n\ndef step(f):\n    return torch.compile(f, mode="max-autotune")\n',
    "src/pkg/data.txt": "41",
    "script.py": 'import torch\n\nf = torch.compile(None, mode="max-autotune")\n\n'
    'if __name__ == "__main__":\n    f(1)\n',
    "tests/test_train.py": "from pathlib import Path\n\nimport pkg\nfrom pkg.train import step\n\n\n"
    "def test_step():\n    given = int((Path(pkg.__file__).parent / 'data.txt').read_text())\n"
    "    assert step(None)(given)[0] == 42\n\n\n"
    "def test_writes():\n    Path(__file__).with_name('left.txt').write_text('x')\n\n\n"
    "def test_fails():\n    assert False\n",
}


@pytest.fixture
def ported(tmp_path: Path, make_project: Make) -> Path:
    return port(make_project(tmp_path / "project", FILES))


def port(root: Path) -> Path:
    apply(analyse(root, jobs=1, cache=False), allow_dirty=True)
    return root


def run(root: Path) -> Level:
    return verify(root, levels=["python"], execution=Execution()).levels[0]


def rewrite(root: Path, path: str, old: str, new: str) -> None:
    text = (root / path).read_text()
    assert old in text
    (root / path).write_text(text.replace(old, new))


def told(level: Level, outcome: Outcome) -> dict[str, str]:
    return {one.subject: one.detail for one in level.evidence if one.outcome is outcome}


@pytest.mark.slow
def test_a_right_port_runs_both_ways(ported: Path) -> None:
    before = {path: path.read_bytes() for path in ported.rglob("*") if path.is_file()}
    level = run(ported)
    assert level.status is Status.PASSED, level
    held = told(level, Outcome.HOLDS)
    assert (
        held["src/pkg/train.py"]
        == held["src/pkg/_rocm.py"]
        == held["script.py"]
        == "it can be imported with and without ROCm"
    )
    assert held["tests"] == "2 pass with and without ROCm; 1 do not pass in the original here"
    assert {path: path.read_bytes() for path in ported.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_a_changed_cuda_side_is_found(ported: Path) -> None:
    rewrite(ported, "src/pkg/train.py", 'else "max-autotune"', 'else "reduce-overhead"')
    level = run(ported)
    assert level.status is Status.FAILED
    broken = told(level, Outcome.BROKEN)
    assert broken == {"tests.test_train::test_step": "without ROCm it failed; it passes in the original"}


@pytest.mark.slow
def test_a_wrong_rocm_side_is_found(ported: Path) -> None:
    rewrite(ported, "src/pkg/train.py", '"max-autotune-no-cudagraphs" if', "1 / 0 if")
    rewrite(ported, "script.py", '"max-autotune-no-cudagraphs" if', "missing if")
    level = run(ported)
    broken = told(level, Outcome.BROKEN)
    assert broken["tests.test_train::test_step"] == "with the flag set it failed; it passes in the original"
    assert "with the flag set: NameError" in broken["script.py"]
    assert set(broken) == {"tests.test_train::test_step", "script.py"}


@pytest.mark.slow
def test_a_crash_costs_the_module_that_crashed(ported: Path) -> None:
    path = ported / "src/pkg/train.py"
    path.write_text(
        path.read_text() + "\nif is_rocm:\n    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    broken = told(run(ported), Outcome.BROKEN)
    assert broken["src/pkg/train.py"].startswith("it cannot be imported with the flag set: the process ended: ")
    assert "script.py" not in broken


@pytest.mark.slow
def test_what_hangs_is_ended(ported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ported / "src/pkg/train.py"
    path.write_text(path.read_text() + "\nif is_rocm:\n    while True:\n        pass\n")
    (ported / "tests/test_train.py").unlink()
    monkeypatch.setattr(python_run, "IMPORT_LIMIT_S", 5.0)
    broken = told(run(ported), Outcome.BROKEN)
    assert "src/pkg/train.py" in broken


@pytest.mark.slow
def test_what_the_original_cannot_do_says_nothing(tmp_path: Path, make_project: Make) -> None:
    root = make_project(tmp_path / "project", {**FILES, "src/pkg/__init__.py": "import not_there_at_all\n"})
    level = run(port(root))
    assert level.status is Status.INCOMPLETE
    unknown = told(level, Outcome.UNKNOWN)
    assert "No module named 'not_there_at_all'" in unknown["src/pkg/train.py"]
    assert "none of the original's tests pass here" in unknown["tests"]
    assert not told(level, Outcome.BROKEN)


def test_nothing_to_run(tmp_path: Path, make_project: Make) -> None:
    level = run(make_project(tmp_path / "project", {"a.py": "x = 1\n"}))
    assert level.status is Status.NOT_RUN
    assert level.why == "the port changed no Python file"


def test_nothing_that_can_be_compared(tmp_path: Path, make_project: Make) -> None:
    root = make_project(
        tmp_path / "project", {"work.py": 'import torch\n\nf = torch.compile(1, mode="max-autotune")\n'}
    )
    level = run(port(root))
    assert level.status is Status.NOT_RUN
    assert "none of the changed files can be imported on its own" in level.why


def test_files_of_no_package_do_not_share_what_lies_beside_them(tmp_path: Path, make_project: Make) -> None:
    script = 'import torch\n\nfrom model import {}\n\nf = torch.compile(1, mode="max-autotune")\n\n__main__ = 1\n'
    root = make_project(
        tmp_path / "project",
        {
            "torch/__init__.py": TORCH,
            "a/run.py": script.format("one"),
            "a/model.py": "one = 1\n",
            "b/run.py": script.format("two"),
            "b/model.py": "two = 2\n",
        },
    )
    assert set(told(run(port(root)), Outcome.HOLDS)) >= {"a/run.py", "b/run.py"}


def test_the_three_folders(ported: Path) -> None:
    with Job(ported) as job:
        sides = {side: grow(job, side) for side in SIDES}
        train = {side: (folder / "src/pkg/train.py").read_text() for side, folder in sides.items()}
        assert train[TreeSide.ORIGINAL] == FILES["src/pkg/train.py"]
        assert train[TreeSide.CUDA] == train[TreeSide.ROCM] == (ported / "src/pkg/train.py").read_text()
        assert not (sides[TreeSide.ORIGINAL] / "src/pkg/_rocm.py").exists()
        for side, value in ((TreeSide.CUDA, "False"), (TreeSide.ROCM, "True")):
            assert f"\nis_rocm = {value}\n" in (sides[side] / "src/pkg/_rocm.py").read_text()
            assert f"\nis_rocm = {value}\n" in (sides[side] / "script.py").read_text()
        for folder in sides.values():
            assert (folder / "src/pkg/data.txt").read_text() == "41"
            assert not (folder / "src/pkg/data.txt").is_symlink(), "a test that writes to it writes to the project"


def test_copies_that_there_is_no_room_for_are_not_made(ported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (ported / "model.bin").write_bytes(b"\0" * (3 << 20))
    room = shutil.disk_usage(ported)._replace(free=5 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: room)
    with monkeypatch.context() as patch, Job(ported) as job:
        patch.setattr(python_tree, "_shared", lambda *_: False)
        with pytest.raises(DataError, match=r"3 copies .* would take 9\.01 MiB, .* has 5 MiB free.*model\.bin.*TMPDIR"):
            grow(job, TreeSide.ORIGINAL)
        assert not list(job.base.rglob("model.bin"))
        assert (grow(job, TreeSide.PRESENT) / "model.bin").stat().st_size == 3 << 20
    with monkeypatch.context() as patch, Job(ported) as job:  # a file system whose copies share their bytes
        patch.setattr(python_tree, "_shared", lambda file, to: shutil.copyfile(file, to) == to)
        folder = grow(job, TreeSide.ORIGINAL)
        assert (folder / "model.bin").stat().st_size == 3 << 20
        assert not list(folder.glob(".rocmend*"))


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_folder_in_memory_has_no_more_room_than_memory(
    ported: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (ported / "model.bin").write_bytes(b"\0" * (3 << 20))
    monkeypatch.setattr(python_tree, "file_system", lambda _: kind)
    monkeypatch.setattr(python_tree, "available_bytes", lambda: 1 << 20)
    monkeypatch.setattr(python_tree, "_shared", lambda *_: False)
    with Job(ported) as job, contextlib.ExitStack() as stack:
        if kind == "tmpfs":
            stack.enter_context(pytest.raises(DataError, match=r"which is in memory, has 1 MiB free"))
        grow(job, TreeSide.PRESENT)


def test_flags_are_forced_where_they_are_proven() -> None:
    own = b"import torch\nHIP = torch.version.hip is not None\nrocm = input()\n"
    assert forced("a.py", own, value=True) == b"import torch\nHIP = True\nrocm = input()\n"
    assert forced("a.py", b"is_rocm = 1 +\n", value=True) == b"is_rocm = 1 +\n"


def vector(values: list[float], dtype: str = "float32", **more: object) -> golden.Vector:
    import base64
    from array import array

    data = base64.b64encode(array("f", values).tobytes()).decode()
    output = {"shape": [len(values)], "dtype": dtype, "not_finite": 0, "largest": 1.0, "values": data}
    return golden.Vector("m:f", dtype, (1, 2, 3), (output,), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "wanted", "outcome"),
    [
        (vector([1.0, 2.0]), vector([1.0, 2.0]), Outcome.HOLDS),
        (vector([1.00015]), vector([1.0]), Outcome.HOLDS),
        (vector([1.0003]), vector([1.0]), Outcome.BROKEN),
        (vector([100.0]), vector([100.009]), Outcome.HOLDS),
        (vector([100.0]), vector([100.1]), Outcome.BROKEN),
        (vector([1.0], "float16"), vector([1.019], "float16"), Outcome.HOLDS),
        (vector([1.0], "bfloat16"), vector([1.11], "bfloat16"), Outcome.BROKEN),
        (vector([1.0], "bfloat16", many_layers=True), vector([1.11], "bfloat16"), Outcome.HOLDS),
        (vector([float("nan")]), vector([float("nan")]), Outcome.HOLDS),
        (vector([float("nan")]), vector([1.0]), Outcome.BROKEN),
        (vector([float("inf")]), vector([float("-inf")]), Outcome.BROKEN),
        (vector([1.0]), vector([1.0, 2.0]), Outcome.BROKEN),
        (vector([1.0], error="E"), vector([1.0]), Outcome.BROKEN),
        (vector([1.0]), vector([1.0], error="E"), Outcome.UNKNOWN),
        (vector([1.0]), vector([1.0], "float16"), Outcome.UNKNOWN),
        (golden.Vector("m:f", "float32", (1, 2, 3)), vector([1.0]), Outcome.BROKEN),
    ],
)
def test_vectors_are_compared(given: golden.Vector, wanted: golden.Vector, outcome: Outcome) -> None:
    (one,) = golden.compared([given], [wanted], "there")
    assert one.outcome is outcome, one


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, Outcome.HOLDS),
        ({"different": 3, "largest": 1e-6}, Outcome.HOLDS),
        ({"largest": 1e-2}, Outcome.BROKEN),
        ({"not_finite": 1}, Outcome.BROKEN),
        ({"error": "E"}, Outcome.BROKEN),
        ({"grown_bytes": 5 << 20}, Outcome.BROKEN),
    ],
)
def test_repeated_runs_are_judged(change: dict[str, object], outcome: Outcome) -> None:
    record = {"entry": "m:f", "iterations": 100, "largest": 0.0, "different": 0, "not_finite": 0, **change}
    assert golden.steady(record).outcome is outcome


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"version": 2}', b'{"version": 1, "machine": 1, "vectors": [1]}']
)
def test_files_that_hold_no_vectors(tmp_path: Path, data: bytes) -> None:
    from rocmend.core.errors import DataError

    (tmp_path / "a.json").write_bytes(data)
    with pytest.raises(DataError, match=r"a\.json"):
        golden.read(Beneath(tmp_path), "a.json")


MODEL = """import torch

ROCM = torch.version.hip is not None
SCALE = 1.0


def forward(x):
    w = torch.randn(8, 8)
    return {"y": (x.float() @ w).to(x.dtype) * SCALE, "x": x}
"""


@pytest.mark.cpu
@pytest.mark.slow
def test_golden_vectors_are_kept_and_compared(
    tmp_path: Path, make_project: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(golden, "SHAPES", ((1, 2, 8), (2, 3, 8)))
    monkeypatch.setattr(golden, "ITERATIONS", 10)
    settings = '[tool.rocmend.port]\ngolden = ["pkg.model:forward"]\n'
    root = make_project(
        tmp_path / "project", {"pyproject.toml": settings, "pkg/__init__.py": "", "pkg/model.py": MODEL}
    )
    with Job(root, execution=Execution()) as job:
        path = python_run.capture(job, "here", "this machine", device="cpu")
    vectors, machine = golden.read(Beneath(root), path)
    assert machine == "this machine"
    assert [one.name for one in vectors if one.error] == []
    assert len(vectors) == 4
    level = run(root)
    assert level.status is Status.PASSED, level
    held = told(level, Outcome.HOLDS)
    assert held["pkg.model:forward, 10 times"] == "finite, all bitwise equal"
    assert "differs by 0 from here (this machine); 0.0001 is allowed" in held.values()
    assert sum("with the flag set" in subject for subject in held) == 4
    rewrite(root, "pkg/model.py", "SCALE = 1.0", "SCALE = 1.01 if ROCM else 1.0")
    broken = told(run(root), Outcome.BROKEN)
    assert not [subject for subject in broken if "without" in subject]
    assert {subject for subject in broken if "flag set" in subject} == {
        f"pkg.model:forward float32 {shape} with the flag set" for shape in ("1x2x8", "2x3x8")
    }, "one per cent is beyond what float32 may differ by, and not beyond what bfloat16 may"
    assert any("from here (this machine)" in detail for detail in broken.values())
