"""``rocmend mlx``: what is checked before a model is loaded."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from rocmend.cli import mlx as shared
from rocmend.cli.main import main
from rocmend.cli.mlx_memory import Room
from rocmend.core.errors import UsageError
from rocmend.core.optional import need
from rocmend.mlx.programs import lm


def _model(folder: Path, size: int = 64, *, claim: int | None = None) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    end = size if claim is None else claim
    header = json.dumps({"w": {"dtype": "U8", "shape": [end], "data_offsets": [0, end]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(size))
    return folder


def test_a_model_that_fits_passes_and_one_that_does_not_is_told_in_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _model(tmp_path / "m", 1 << 20)
    assert shared.weights_bytes(folder) == 1 << 20
    monkeypatch.setattr(shared, "free_room", lambda device: Room(1 << 30, f"the {device}"))
    shared.check_model(str(folder), "machine")
    monkeypatch.setattr(shared, "weights_bytes", {folder: 18 << 30}.__getitem__)
    parts = r"weights 18 GiB, activations and a short cache 512 MiB"
    with pytest.raises(
        UsageError, match=rf"needs 18\.5 GiB \({parts}\), and 1 GiB of the memory of the machine are free"
    ):
        shared.check_model(str(folder), "machine")


def test_a_folder_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no config\.json"):
        shared.check_model(str(tmp_path), "cpu")
    for text in ("{", "[]", ""):
        config = _model(tmp_path / f"config-{len(text)}") / "config.json"
        config.write_text(text)
        with pytest.raises(UsageError, match=r"config\.json is broken"):
            shared.check_model(str(config.parent), "cpu")
    folder = _model(tmp_path / "cut", 10, claim=64)
    with pytest.raises(UsageError, match="not downloaded completely"):
        shared.check_model(str(folder), "cpu")
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(UsageError, match="not downloaded completely"):
        shared.check_model(str(folder), "cpu")
    whole = _model(tmp_path / "index")
    names = {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}
    (whole / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    with pytest.raises(UsageError, match="lacks model-00002-of-00002"):
        shared.check_model(str(whole), "cpu")
    (whole / "model.safetensors").unlink()
    with pytest.raises(UsageError, match=r"has no model\*\.safetensors"):
        shared.check_model(str(whole), "cpu")


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = _model(tmp_path / "m")
    with pytest.raises(UsageError, match="has no tokenizer"):
        shared.check_tokenizer(str(folder))
    (folder / "tokenizer.json").write_text("{}")
    shared.check_tokenizer(str(folder))
    shared.check_tokenizer("rocmend-test/there-is-no-such-model")  # of the hub: not known before it is there


def test_a_name_without_a_network_is_told_early(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UsageError, match="is not in the local cache"):
        shared.check_model("rocmend-test/there-is-no-such-model", "cpu")
    with pytest.raises(UsageError, match="neither a folder nor a model name"):
        shared.check_model(str(tmp_path / "nothing"), "cpu")


@pytest.mark.parametrize("arguments", [
    ["run", "-c", "print(1)"],
    ["generate", "--model", "."], ["chat", "--model", "."], ["serve", "--model", "."],
])  # fmt: skip
def test_a_setting_that_there_is_not_is_told(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """By each command, before it starts anything."""
    monkeypatch.setenv("ROCMEND_MLX_EXECUTOR", "fast")
    monkeypatch.setattr("os.execv", lambda *_: pytest.fail("a program was started"))
    with pytest.raises(SystemExit) as left:
        main(["mlx", *arguments])
    assert left.value.code == 2
    told = capfd.readouterr().err
    assert told.startswith(
        "rocmend: [ROCMEND_MLX_EXECUTOR] expected one of interpreter, plan, graph, compare, got 'fast'."
    )
    assert "Set it to one of these, or unset it." in told


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "mlx_lm" else object())
    with pytest.raises(UsageError, match="needs mlx_lm, which is not installed") as error:
        need("mlx chat")
    assert "[mlx]'" in str(error.value.next_step)


@pytest.mark.parametrize("arguments", [
    ["run", "-c", "print(1)"],
    ["generate", "--model", "."], ["chat", "--model", "."], ["serve", "--model", "."],
])  # fmt: skip
@pytest.mark.parametrize("by_option", [True, False])
def test_a_gpu_that_there_is_not_is_told(
    arguments: list[str], by_option: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(shared, "need", lambda *_packages: None)
    monkeypatch.setattr("rocmend.cli.commands.mlx_run.need", lambda *_packages: None)
    monkeypatch.setattr("os.execv", lambda *_: pytest.fail("a program was started"))
    monkeypatch.setenv("ROCMEND_MLX_DEVICE", "" if by_option else "gpu")
    command, *rest = arguments
    with pytest.raises(SystemExit) as left:
        main(["mlx", command, *(["--device", "gpu"] if by_option else []), *rest])
    assert left.value.code == 2
    told = capfd.readouterr().err
    assert told.startswith(f"rocmend: [{'--device' if by_option else 'ROCMEND_MLX_DEVICE'}] torch {torch.__version__}")
    assert "finds no GPU" in told


def test_a_program_ends_with_a_line_when_it_is_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its usage names the command that was typed."""
    pytest.importorskip("torch")
    started: list[list[str]] = []

    def program(raised: type[BaseException] | BaseException | None) -> ModuleType:
        def run() -> None:
            started.append(sys.argv)
            if raised:
                raise raised

        return cast("ModuleType", SimpleNamespace(main=run))

    monkeypatch.setattr(sys, "argv", ["lm.py", "server", "--model", "x"])
    for raised, code, text in ((KeyboardInterrupt, 130, "\nInterrupted.\n"), (None, 0, "")):
        monkeypatch.setitem(sys.modules, "mlx_lm.server", program(raised))
        monkeypatch.setattr(sys, "argv", ["lm.py", "server", "--model", "x"])
        assert lm.main() == code
        assert capsys.readouterr().err == text
    assert started == [["rocmend mlx serve", "--model", "x"]] * 2
    lack = RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB. If reserved but unallocated memory is large")
    monkeypatch.setitem(sys.modules, "mlx_lm.server", program(lack))
    monkeypatch.setattr(sys, "argv", ["lm.py", f"--memory-limit={3 << 30}", "server", "--model", "x"])
    capped: list[int] = []
    monkeypatch.setattr("rocmend.mlx.memory.cap", capped.append)
    assert lm.main() == 1
    assert capped == [3 << 30]
    told = capsys.readouterr().err
    assert "the memory does not suffice: CUDA out of memory. Tried to allocate 2.00 GiB.\n" in told
    assert " are in use, " in told
    assert "--memory-limit allows 3 GiB" in told
    monkeypatch.setitem(sys.modules, "mlx_lm.server", program(RuntimeError("another")))
    monkeypatch.setattr(sys, "argv", ["lm.py", "server", "--model", "x"])
    with pytest.raises(RuntimeError, match="another"):
        lm.main()
    monkeypatch.setitem(sys.modules, "mlx_lm.chat", program(EOFError))
    monkeypatch.setattr(sys, "argv", ["lm.py", "chat"])
    assert lm.main() == 0
    monkeypatch.setitem(sys.modules, "mlx_lm.generate", program(EOFError))
    monkeypatch.setattr(sys, "argv", ["lm.py", "generate"])
    with pytest.raises(EOFError):
        lm.main()
