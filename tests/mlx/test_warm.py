"""``rocmend mlx warm``: what it runs, what it counts; and that a length alone is no new plan."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.mlx import activate

activate()
import mlx.core

pytest.importorskip("mlx_lm")

from tests.mlx.test_cli import _model

from rocmend.cli.main import main
from rocmend.cli.mlx_memory import Room
from rocmend.mlx.execute import settings
from rocmend.mlx.execute.planner import planner
from rocmend.mlx.programs import warm

mx: Any = mlx.core
generating: Any = importlib.import_module("mlx_lm.generate")
pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def model() -> Any:
    from rocmend.mlx.programs import speed

    return speed.build(speed.CONFIGS["tiny"] | {"hidden_size": 64, "num_attention_heads": 2, "vocab_size": 128})


def test_kernels_that_are_compiled_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton import knobs

    monkeypatch.setattr(knobs.compilation, "listener", None)
    compiled = warm.Compiled().install()
    assert knobs.compilation.listener is compiled
    for hit in (False, True, False):
        knobs.compilation.listener(src=None, metadata={}, metadata_group={}, times=None, cache_hit=hit)
    assert compiled.count == 2


def test_each_length_is_told_as_it_ends(model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    class Growing(warm.Compiled):
        """A kernel each time that it is asked."""

        @property
        def count(self) -> int:
            self.asked = getattr(self, "asked", 0) + 1
            return self.asked

        @count.setter
        def count(self, _: int) -> None:
            pass

    first, second, late = warm.warm(model, 128, [1, 20], Growing())
    assert first > 0
    assert second > 0
    assert late > 0
    told = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in told] == ["1 of 2: a prompt of 1 token", "2 of 2: a prompt of 20 tokens"]
    assert " kernels compiled, " in told[0]


def test_a_prompt_that_differs_in_its_length_alone_is_no_new_plan(model: Any) -> None:
    planner().forget()
    made = []
    with settings.use("plan"):
        for length in (20, 21, 48, 77):
            before = planner().made
            prompt = mx.array([place % 128 for place in range(length)])
            for token, _ in generating.generate_step(prompt, model, max_tokens=5):
                int(token)
            made.append(planner().made - before)
    assert made[0] > 0
    assert made[1:] == [0, 0, 0]


def test_the_command_needs_a_gpu_and_starts_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    import torch

    from rocmend.cli import mlx as shared

    folder = _model(tmp_path / "m")
    started: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda _, command: started.append(command))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as left:
        main(["mlx", "warm", "--model", str(folder)])
    assert left.value.code == 2
    told = capfd.readouterr().err
    assert "finds no GPU" in told
    assert "Nothing is compiled for the CPU" in told
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(shared, "free_room", lambda _: Room(8 << 30, "the GPU"))
    with pytest.raises(SystemExit) as left:
        main(["mlx", "warm", "--model", str(folder), "--longest", "64"])
    assert left.value.code == 0
    assert started == [[sys.executable, "-P", "-m", "rocmend.mlx", "--device", "gpu", "-m", "rocmend.mlx.programs.warm",
                        "--model", str(folder), "--longest", "64"]]  # fmt: skip


def test_the_program_says_what_it_took(
    model: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rocmend.mlx.programs import speed

    monkeypatch.setattr(speed, "load", lambda _: (model, {"vocab_size": 128}))
    monkeypatch.setattr(sys, "argv", ["warm", "--model", "m", "--longest", "16"])
    assert warm.main() == 0
    told = capsys.readouterr()
    assert told.out.startswith("0 kernels compiled. All 3 prompts took ")
    assert told.err.splitlines()[-1].startswith("3 of 3: a prompt of 16 tokens, 0 kernels compiled, ")
