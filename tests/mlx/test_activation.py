"""``python -m rocmend.mlx`` and ``activate``: programs see rocmend's ``mlx.core``, and so do their children."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocmend.mlx import environment

OURS = "rocmend/mlx/core/__init__.py"
SHOW = "import mlx.core as mx; print(mx.__file__)"


def _run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=env, cwd=cwd, timeout=120, check=False
    )


def test_importing_the_package_imports_no_torch() -> None:
    code = "import sys, rocmend.mlx; rocmend.mlx.activate(); print('torch' in sys.modules, rocmend.mlx.is_active())"
    assert _run("-c", code).stdout.split() == ["False", "True"]


def test_usage_and_what_cannot_be_started(tmp_path: Path) -> None:
    assert _run("-m", "rocmend.mlx").returncode == 2
    assert _run("-m", "rocmend.mlx", "--help").returncode == 0
    pytest.importorskip("torch")
    for arguments, text in (
        (["nothing.py"], "there is no file 'nothing.py'"),
        (["-m", "nothing.at.all"], "there is no module 'nothing.at.all'"),
        (["-m"], "-m needs an argument"),
        (["-x"], "no option -x"),
        (["--device", "tpu", "x.py"], "takes cpu or gpu"),
    ):
        ran = _run("-m", "rocmend.mlx", *arguments, cwd=tmp_path)
        assert (ran.returncode, text in ran.stderr) == (2, True), ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ROCMEND_MLX_EXECUTOR", "ROCMEND_MLX_DEVICE", "ROCMEND_MLX_ACCELERATED"])
def test_an_environment_variable_of_another_value_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the launcher without a traceback, by an import as an error that says what to do."""
    pytest.importorskip("torch")
    monkeypatch.setenv(name, "fast")
    ran = _run("-m", "rocmend.mlx", "-c", "print('ran')")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"python -m rocmend.mlx: [{name}] expected one of ")
    assert "got 'fast'" in ran.stderr
    assert "Set it to one of these, or unset it" in ran.stderr
    assert "Traceback" not in ran.stderr
    ran = _run("-c", "import rocmend.mlx; rocmend.mlx.activate(); import mlx.core")
    assert f"ValueError: [{name}] expected one of " in ran.stderr


@pytest.mark.slow
def test_a_gpu_that_there_is_not_is_told_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    for arguments, device in ((["--device", "gpu"], "cpu"), ([], "gpu")):
        monkeypatch.setenv("ROCMEND_MLX_DEVICE", device)
        ran = _run("-m", "rocmend.mlx", *arguments, "-c", "print('ran')")
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "a GPU was requested, but torch" in ran.stderr
        assert "Traceback" not in ran.stderr


def test_environment_variables_that_are_empty_are_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, variable in environment.VARIABLES.items():
        monkeypatch.setenv(name, "")
        assert environment.asked(name) == variable.default
        monkeypatch.setenv(name, variable.choices[-1])
        assert environment.asked(name) == variable.choices[-1]
    environment.check()


@pytest.mark.slow
@pytest.mark.cpu
def test_scripts_modules_and_code_run_as_python_runs_them(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mlx.utils")
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    (tmp_path / "script.py").write_text(
        f"import sys, beside\n{SHOW}\nprint(__name__, sys.argv[1:], beside.VALUE)\nsys.exit(5)\n"
    )
    for arguments in (["script.py"], ["-m", "script"], ["-mscript"]):
        ran = _run("-m", "rocmend.mlx", *arguments, "a", "-b", cwd=tmp_path)
        assert ran.returncode == 5, ran.stderr
        where, rest = ran.stdout.splitlines()
        assert where.endswith(OURS)
        assert rest == "__main__ ['a', '-b'] 7"
    ran = _run("-m", "rocmend.mlx", "-c", "import sys; print(sys.argv)", "x")
    assert ran.stdout.strip() == "['-c', 'x']"


@pytest.mark.cpu
@pytest.mark.slow
def test_children_have_it_too(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mlx.utils")
    (tmp_path / "parent.py").write_text(
        "import multiprocessing, subprocess, sys\n"
        "def tell(queue):\n    import mlx.core as mx, mlx.nn\n    queue.put(mx.__file__)\n"
        "if __name__ == '__main__':\n"
        f"    subprocess.run([sys.executable, '-c', {SHOW!r}], check=True)\n"
        "    context = multiprocessing.get_context('spawn')\n    queue = context.Queue()\n"
        "    child = context.Process(target=tell, args=(queue,))\n    child.start()\n"
        "    print(queue.get(timeout=60))\n    child.join()\n"
    )
    ran = _run("-m", "rocmend.mlx", "parent.py", cwd=tmp_path)
    assert [line.endswith(OURS) for line in ran.stdout.splitlines()] == [True, True], ran.stderr


def test_activating_after_another_mlx_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "mlx" / "core").mkdir(parents=True)
    (tmp_path / "mlx" / "core" / "__init__.py").write_text("")
    code = "import sys; sys.path.insert(0, '.'); import mlx.core, rocmend.mlx; rocmend.mlx.activate()"
    ran = _run("-c", code, cwd=tmp_path)
    assert "mlx.core is imported already" in ran.stderr
