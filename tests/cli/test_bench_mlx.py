"""``rocmend bench mlx``, as a user meets it."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Done

Run = Callable[..., Done]


@pytest.mark.cpu
@pytest.mark.slow
def test_a_tiny_model_is_measured_and_kept(installed: Run, tmp_path: Path) -> None:
    for package in ("torch", "mlx_lm"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    store = ("--store", str(tmp_path / "evidence.sqlite"))
    words = ("--shape", "tiny", "--device", "cpu", "--prompt", "4", "--generate", "2", "--quick", "--time", "20ms")
    done = installed("bench", "mlx", *words, *store, "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)["data"]
    prompt, generation = data["results"]
    assert (prompt["case"]["id"], generation["case"]["id"]) == ("mlx/tiny/pp4/d0", "mlx/tiny/tg2/d0")
    assert prompt["figure"] > 0
    assert generation["figure"] > 0
    assert "mlx-lm" in generation["prepared"]["subject"]["versions"]
    assert generation["bounds"][0]["figure"] > generation["figure"]
    assert generation["prepared"]["detail"]["executed"]["executor"] == "graph"
    assert "Executor graph" in json.dumps(data["conclusions"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "use either --model or --shape"),
        (("--shape", "tiny", "--model", "x/y"), "use either --model or --shape"),
        (("--model", "x/y", "--layers", "2"), "--layers"),
        (("--shape", "tiny", "--depth", "1,x"), "not a list of token counts"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_started(rocmend: Run, arguments: tuple[str, ...], text: str) -> None:
    done = rocmend("bench", "mlx", *arguments)
    assert (done.code, done.out) == (2, "")
    assert text in done.err


def test_the_old_name_tells_the_new_one(rocmend: Run) -> None:
    done = rocmend("mlx", "bench", "--shape", "tiny")
    assert (done.code, done.out) == (2, "")
    assert "Use `rocmend bench mlx`." in done.err


def test_a_gpu_that_there_is_not_is_told(rocmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("rocmend.core.optional.need", lambda *_packages: None)
    for words in (("--device", "gpu"), ()):
        monkeypatch.setenv("ROCMEND_MLX_DEVICE", "" if words else "gpu")
        done = rocmend("bench", "mlx", "--shape", "tiny", *words)
        assert done.code == 2
        assert "finds no GPU" in done.err
