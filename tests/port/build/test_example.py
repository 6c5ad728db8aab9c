"""The CUDA project among the examples: everything in it is ported by the tool, and its builds do what they did."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rocmend.port.analyse import analyse
from rocmend.port.apply import apply
from rocmend.port.records import Outcome
from rocmend.port.undo import undo
from rocmend.port.verify.ladder import verify
from rocmend.port.verify.records import Status

EXAMPLE = Path(__file__).parents[3] / "src/rocmend/examples/cuda/warp-attention"


@pytest.fixture
def ported(tmp_path: Path) -> Path:
    root = tmp_path / "ported"
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
    analysis = analyse(root, targets=("gfx942", "gfx1100"), cache=False)
    assert [(one.path, one.line, one.rule) for one in analysis.issues if one.outcome is Outcome.MANUAL] == []
    done = apply(analysis, suggestions=True, allow_dirty=True)
    assert done.left_alone == ()
    assert {"Dockerfile.rocm", "requirements-rocm.txt", "warp_attention/_rocm.py"} <= set(done.added)
    return root


@pytest.mark.slow
def test_the_port_is_the_original_for_nvidia_and_has_nothing_of_cuda_left(ported: Path) -> None:
    levels = verify(ported, levels=["identity", "static"]).levels
    assert [level.status for level in levels] == [Status.PASSED, Status.PASSED]
    undo(ported)
    left = {path.relative_to(ported).as_posix(): path.read_bytes() for path in ported.rglob("*") if path.is_file()}
    original = {
        path.relative_to(EXAMPLE).as_posix(): path.read_bytes() for path in EXAMPLE.rglob("*") if path.is_file()
    }
    kept = {path: data for path, data in original.items() if "__pycache__" not in path and ".pytest_cache" not in path}
    assert {path: data for path, data in left.items() if not path.startswith(".rocmend/")} == kept


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_runs_what_it_ran(ported: Path) -> None:
    def told(root: Path, *more: str) -> str:
        argv = ["make", "-n", "CUDA_HOME=/c", *more]
        return subprocess.run(
            argv, cwd=root, capture_output=True, check=True, env={"PATH": "/usr/bin:/bin"}
        ).stdout.decode()

    assert told(ported) == told(EXAMPLE)
    rocm = told(ported, "USE_ROCM=1")
    assert "nvcc" not in rocm
    assert "nvidia-smi" not in rocm
    assert rocm.count("hipcc -DUSE_ROCM -O3 -std=c++17 --offload-arch=native -Wall -gline-tables-only") == 5
    assert "--offload-arch=gfx1201 " in told(ported, "USE_ROCM=1", "ROCM_ARCH=gfx1201")
    subprocess.run(["sh", "-n", "scripts/run.sh"], cwd=ported, check=True)
