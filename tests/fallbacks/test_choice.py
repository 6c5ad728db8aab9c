"""Choosing by trying: what a child says decides, is kept, and is forgotten when the machine changes."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from rocmend.core.supervise import CommandResult, Ending, run_command  # noqa: E402
from rocmend.fallbacks import choice, conv, convolution, explain, probe, safe_conv  # noqa: E402
from rocmend.fallbacks.choice import MARK, NoWorkingPathError, choose, read_result, try_path  # noqa: E402
from rocmend.fallbacks.outcomes import Outcome, OutcomeCache  # noqa: E402

pytestmark = pytest.mark.cpu
CPU = torch.device("cpu")


def trial(**verdicts: str) -> Any:
    times = {"native": 1.0, "aten": 5.0, "gemm": 2.0}
    return lambda path: Outcome(path, verdicts[path], "said so", times[path])


@pytest.mark.parametrize(
    ("verdicts", "path", "tried"),
    [
        ({"native": "pass"}, "native", 1),
        ({"native": "hang", "aten": "pass", "gemm": "pass"}, "gemm", 3),
        ({"native": "wrong-output", "aten": "pass", "gemm": "crash"}, "aten", 3),
        ({"native": "infra"}, "native", 1),
    ],
)
def test_the_first_where_it_works_else_the_fastest(verdicts: dict[str, str], path: str, tried: int) -> None:
    found = choose("conv", ("native", "aten", "gemm"), trial(**verdicts), fastest=True)
    assert found.path == path
    assert len(found.outcomes) == tried
    if path != "native":
        assert verdicts["native"] in found.reason
    if verdicts["native"] == "infra":
        assert "untried" in found.reason


def test_no_path_is_an_error_that_says_what_was_tried() -> None:
    with pytest.raises(NoWorkingPathError, match=r"native: hang.*gemm: crash"):
        choose("conv", ("native", "gemm"), trial(native="hang", gemm="crash"), fastest=True)


def line(**fields: Any) -> str:
    return MARK + json.dumps(fields) + "\n"


@pytest.mark.parametrize(
    ("ending", "fields", "stdout", "verdict", "words"),
    [
        (Ending.TIMEOUT, {}, line(event="begin", case="groups"), "hang", "no end of groups within 9 s"),
        (Ending.TIMEOUT, {}, "", "hang", "start of PyTorch"),
        (Ending.SIGNALLED, {"signal": 11}, "noise\n" + line(event="begin", case="stride 2"), "crash", "signal 11"),
        (
            Ending.EXITED,
            {"exit_code": 1},
            line(event="end", verdict="wrong-output", reason="off"),
            "wrong-output",
            "off",
        ),
        (Ending.EXITED, {"exit_code": 0}, line(event="begin", case="x"), "crash", "exit 0 in x"),
        (Ending.EXITED, {"exit_code": 1}, MARK + "{cut", "infra", "said nothing"),
        (Ending.SIGNALLED, {"signal": 6}, line(event="end", verdict="pass", reason="right"), "pass", "right"),
        (Ending.NOT_FOUND, {}, "", "infra", "not-found"),
    ],
)
def test_how_a_child_ended_is_read(
    ending: Ending, fields: dict[str, Any], stdout: str, verdict: str, words: str
) -> None:
    result = CommandResult(("python",), ending, stdout=stdout, **fields)
    found, reason, _ = read_result(result, 9.0)
    assert found == verdict
    assert words in reason


@pytest.mark.slow
def test_a_real_child_proves_a_path_once(monkeypatch: pytest.MonkeyPatch, own_home: Path) -> None:
    started = []

    def counting(*arguments: Any, **options: Any) -> CommandResult:
        started.append(arguments)
        return run_command(*arguments, **options)

    monkeypatch.setattr("rocmend.core.supervise.run_command", counting)
    with safe_conv(device="cpu"):
        torch.nn.functional.conv1d(torch.randn(1, 2, 9), torch.randn(3, 2, 3))
        text = explain()
    assert "conv1d float32 on cpu: native: it works here" in text
    assert "in force on cpu devices, mode auto" in text
    assert "not in force" in explain()
    conv.choices.forget()
    with safe_conv(device="cpu"):
        torch.nn.functional.conv1d(torch.randn(1, 2, 9), torch.randn(3, 2, 3))
    assert len(started) == 1
    assert (own_home / "torch" / "torch-paths.json").exists()


@pytest.mark.slow
def test_a_child_that_does_not_return_is_a_hang_and_another_path_is_taken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def stuck(argv: Any, **options: Any) -> CommandResult:
        if "native" in argv:
            script = (
                f'import time; print({MARK!r} + \'{{"event": "begin", "case": "groups"}}\', flush=True); time.sleep(60)'
            )
            return run_command((argv[0], "-c", script), **{**options, "time_limit_s": 0.5})
        return run_command(argv, **options)

    monkeypatch.setattr("rocmend.core.supervise.run_command", stuck)
    x, w = torch.randn(1, 2, 9, requires_grad=True), torch.randn(3, 2, 3)
    with caplog.at_level(logging.WARNING), safe_conv(device="cpu") as handle:
        torch.nn.functional.conv1d(x, w).sum().backward()
        assert handle.path(x) == "gemm"
    said = [record.getMessage() for record in caplog.records if "does not work here" in record.getMessage()]
    assert len(said) == 1
    assert "no end of groups" in said[0]


def test_what_is_kept_ends_with_the_machine_it_was_found_on(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([Outcome("native", "hang", "first"), Outcome("native", "pass", "second")])
    monkeypatch.setattr(choice, "_run_child", lambda *_: next(answers))
    assert try_path(CPU, ("conv", "float32", "2"), "native").reason == "first"
    assert try_path(CPU, ("conv", "float32", "2"), "native").reason == "first"
    monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "10.3.0")
    assert try_path(CPU, ("conv", "float32", "2"), "native").reason == "second"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 9}', '{"schema": 1, "machines": {"a": 3}}', "\x00\xff"])
def test_a_damaged_file_is_made_anew(tmp_path: Path, text: str) -> None:
    cache = OutcomeCache(tmp_path / "paths.json")
    cache.path.write_text(text, encoding="latin-1")
    assert cache.find({"a": "b"}, "conv", "native") is None
    cache.keep({"a": "b"}, "conv", Outcome("native", "pass", "fine"))
    assert cache.find({"a": "b"}, "conv", "native") == Outcome("native", "pass", "fine")


def test_what_may_pass_by_the_next_run_is_not_kept(tmp_path: Path) -> None:
    cache = OutcomeCache(tmp_path / "paths.json")
    cache.keep({}, "conv", Outcome("native", "oom", "full"))
    assert not cache.path.exists()


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = OutcomeCache(tmp_path / "file" / "paths.json")
    cache.keep({}, "conv", Outcome("native", "pass", "fine"))
    assert cache.find({}, "conv", "native") is None


def test_a_probe_sees_wrong_results(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    plain = convolution.convolution
    monkeypatch.setattr(conv, "convolution", lambda *a, **k: plain(*a, **k) * 1.01)
    assert probe.main(["conv", "float32", "1", "--path", "gemm", "--device", "cpu"]) == 1
    last = json.loads(capsys.readouterr().out.splitlines()[-1].removeprefix(MARK))
    assert last["verdict"] == "wrong-output"
    assert "result of a kernel of 3" in last["reason"]


def test_a_probe_sees_memory_that_was_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conv, "convolution", lambda x, w, *_, **__: x.new_full((2, w.shape[0], x.shape[2]), torch.nan))
    assert probe.main(["conv", "float32", "1", "--path", "gemm", "--device", "cpu"]) == 1
