"""One benchmark at a time on a machine, or on a GPU that is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rocmend.bench.lock import NAME, BusyError, gpu_of, measuring
from rocmend.cli.quick_bench import quick_bench
from rocmend.core.errors import RocmendError
from rocmend.machine.facts import Machine

SMALL = ("gemm", "--device", "cpu", "--time", "50ms", "--quick", "--dtype", "fp32", "--shape", "16x16x16", "--no-store")


@contextmanager
def measuring_elsewhere(folder: Path, gpu: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Hold the lock in another process."""
    code = (
        "from pathlib import Path; from rocmend.bench.lock import measuring\n"
        f"with measuring('bench nn', gpu={gpu!r}, folder=Path({str(folder)!r})): print(1, flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline()
        yield other
        other.kill()


def is_free(folder: Path, gpu: str = "") -> bool:
    try:
        with measuring("x", gpu=gpu, folder=folder):
            return True
    except BusyError:
        return False


def test_one_measures_at_a_time_and_the_lock_goes_with_its_holder(tmp_path: Path) -> None:
    with measuring_elsewhere(tmp_path) as other:
        said = rf"bench nn, by .* \(process {other.pid}\) since 20"
        with pytest.raises(BusyError, match=said), measuring("x", folder=tmp_path):
            pass
    with measuring("bench gemm", folder=tmp_path):
        assert "bench gemm" in (tmp_path / NAME).read_text()
    (tmp_path / NAME).unlink()
    (tmp_path / "theirs").write_text("kept")
    (tmp_path / NAME).symlink_to(tmp_path / "theirs")
    with pytest.raises(RocmendError, match=r"symbolic.*remove what else"), measuring("x", folder=tmp_path):
        pass
    assert (tmp_path / "theirs").read_text() == "kept"


def test_two_gpus_are_measured_side_by_side_and_neither_beside_the_whole_machine(tmp_path: Path) -> None:
    with measuring_elsewhere(tmp_path, gpu="1"):
        assert [is_free(tmp_path, gpu) for gpu in ("0", "1", "")] == [True, False, False]
    with measuring_elsewhere(tmp_path):
        assert [is_free(tmp_path, gpu) for gpu in ("0", "")] == [False, False]


@pytest.mark.parametrize(
    ("device", "shown", "gpu"),
    [
        ("cuda:1", {}, "1"),
        ("cuda", {}, "0"),
        ("cuda:1", {"HIP_VISIBLE_DEVICES": "3,5"}, "5"),
        ("cuda:0", {"CUDA_VISIBLE_DEVICES": "1", "ROCR_VISIBLE_DEVICES": "4, 6"}, "6"),
        ("cuda:2", {"HIP_VISIBLE_DEVICES": "3,5"}, ""),
        ("cuda", {"ROCR_VISIBLE_DEVICES": "GPU-1234"}, ""),
        ("auto", {}, ""),
        ("cpu", {}, ""),
    ],
)
def test_the_gpu_is_told_where_variables_hide_others(device: str, shown: dict[str, str], gpu: str) -> None:
    assert gpu_of(device, shown) == gpu


def environment(tmp_path: Path) -> dict[str, str]:
    """Return the variables of a command that takes the lock."""
    env = {name: text for name, text in os.environ.items() if name != "ROCMEND_MEASURING"}
    return env | {"ROCMEND_LOCKS": str(tmp_path), "ROCMEND_HOME": str(tmp_path / "home")}


@pytest.mark.slow
@pytest.mark.cpu
def test_tuning_waits_for_a_benchmark(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    command = [str(Path(sys.executable).with_name("rocmend")), "kernels", "tune", "rms_norm", "--budget", "1s"]
    with measuring_elsewhere(tmp_path) as other:
        tuning = subprocess.Popen(command, env=environment(tmp_path), stderr=subprocess.PIPE, text=True)
        assert tuning.stderr is not None
        said = ""
        while "Waits for" not in said and (line := tuning.stderr.readline()):
            said += line
        assert f"bench nn, by {json.loads((tmp_path / NAME).read_text())['user']} (process {other.pid})" in said
        assert tuning.poll() is None
        other.kill()
        tuning.communicate(timeout=60)


def test_who_is_named_is_still_there(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("rocmend")), "bench", "exclusive", *SMALL]
    with measuring_elsewhere(tmp_path, gpu="0") as first:
        with measuring_elsewhere(tmp_path, gpu="1") as second:
            assert json.loads((tmp_path / NAME).read_text())["pid"] == second.pid
        done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert f"(process {first.pid})" in " ".join(done.stderr.split())
        assert f"(process {second.pid})" not in " ".join(done.stderr.split())


@pytest.mark.cpu
def test_a_second_benchmark_waits_for_the_first_and_says_whose_it_is(tmp_path: Path) -> None:
    env = {name: text for name, text in os.environ.items() if name != "ROCMEND_MEASURING"}
    env |= {"ROCMEND_LOCKS": str(tmp_path), "TMPDIR": str(tmp_path / "own")}  # of which there is one a user
    command = [str(Path(sys.executable).with_name("rocmend")), "bench", *SMALL, "--json"]
    with measuring_elsewhere(tmp_path) as other:
        second = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert second.stdout is not None
        assert second.stderr is not None
        said = second.stderr.readline()  # nothing else is said before it: the result is for a program
        assert f"bench nn, by {json.loads((tmp_path / NAME).read_text())['user']} (process {other.pid})" in said
        assert second.poll() is None
        other.kill()
        out, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert json.loads(out)["data"]["results"][0]["figure"] > 0


def test_a_check_leaves_its_figures_out_while_something_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCMEND_LOCKS", str(tmp_path))
    monkeypatch.delenv("ROCMEND_MEASURING")
    with measuring_elsewhere(tmp_path):
        found = quick_bench(Machine("m", "", {}, {}), None, whole=True, progress=lambda *_: None)
    assert isinstance(found, str)
    assert found.startswith("Not measured: another rocmend measures on this machine: bench nn, by")
