"""``rocmend mlx bench``: what a child's lines and its end are made into, and one child for real."""

from __future__ import annotations

import ast
import datetime as dt
import importlib.util
import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rocmend.core.supervise import CommandResult, Ending
from rocmend.core.verdict import Verdict
from rocmend.mlx.programs import bench as benching
from rocmend.mlx.programs.bench import BenchRun, Request
from rocmend.store.store import Store

Run = Callable[..., Any]
REQUEST = Request(shape="qwen3-0.6b", device="gpu", depths=(0, 2048), reps=3)
MODEL = {
    "what": "model", "model": "qwen3-0.6b", "weight_bytes": 400_000_000, "copy_gb_s": 200.0,
    "about": {"name": "Radeon 8060S Graphics", "target": "gfx1151", "versions": {"torch": "2.9.0", "hip": "7.0"}},
}  # fmt: skip
STEPS = {"what": "steps", "record_ms": 1.25, "hand_over_ms": 0.75}
EXECUTED = {
    "what": "executed", "executor": "graph", "accelerated": False, "why_not_accelerated": "no C compiler was found",
    "plans": 4, "planned_runs": 400, "captures": 0, "replays": 0,
    "why_not_captured": ["Scatter depends on an integer that changes from step to step"],
}  # fmt: skip


def speed(depth: int, rep: int, rate: float, *, finite: bool = True) -> dict[str, Any]:
    return {
        "what": "speed", "depth": depth, "rep": rep, "prompt": 512, "generate": 128, "prompt_tok_s": 10 * rate,
        "generate_tok_s": rate, "finite": finite, "cache_bytes": 100_000_000 + depth, "peak_gb": 1.5,
    }  # fmt: skip


SPEEDS = [speed(depth, rep, rate) for depth in (0, 2048) for rep, rate in enumerate((1.0, 100.0, 140.0))]


def judged(
    lines: list[Any], ending: Ending = Ending.EXITED, *, code: int | None = 0, err: str = "", request: Request = REQUEST
) -> BenchRun:
    text = "a warning of something\n" + "".join(json.dumps(line) + "\n" for line in lines) + '{"what": "spe'
    signal = 11 if ending is Ending.SIGNALLED else None
    done = CommandResult(("python",), ending, code, signal, text, err, time_ms=2000.0)
    return benching.summed(request, done, dt.datetime(2026, 3, 1, tzinfo=dt.UTC), 60.0)


def test_the_first_repetition_is_left_out_and_the_floor_is_bytes_over_the_copy() -> None:
    run = judged([MODEL, *SPEEDS, STEPS, EXECUTED])
    assert run.verdict is Verdict.PASS
    first = run.speeds[0]
    assert (first.reps, first.prompt_tok_s, first.generate_tok_s) == (2, 1200.0, 120.0)
    assert first.floor_tok_s == 200e9 / 500e6
    assert first.of_floor == pytest.approx(0.3)
    assert run.executed is not None
    assert (run.record_ms, run.hand_over_ms, run.executed.captures) == (1.25, 0.75, 0)
    alone = judged([MODEL, speed(0, 0, 7.0)], request=Request(shape="tiny", reps=1))
    assert alone.speeds[0].generate_tok_s == 7.0


def test_without_the_bytes_of_a_token_there_is_no_floor() -> None:
    run = judged([MODEL | {"weight_bytes": None}, *SPEEDS, STEPS, EXECUTED])
    assert run.speeds[0].floor_tok_s is None
    assert run.speeds[0].of_floor is None


@pytest.mark.parametrize(
    ("ending", "code", "err", "verdict", "text"),
    [
        (Ending.TIMEOUT, None, "", Verdict.HANG, "no end within 60 s; 1 of 2 depths"),
        (Ending.SIGNALLED, None, "Memory access fault", Verdict.CRASH, "signal 11; 1 of 2 depths measured. Memory"),
        (Ending.EXITED, 1, "torch.OutOfMemoryError: HIP out of memory.", Verdict.OOM, "out of memory"),
        (Ending.EXITED, 1, "RuntimeError: no", Verdict.CRASH, "exit status 1; 1 of 2 depths measured. RuntimeError"),
        (Ending.NOT_STARTED, None, "", Verdict.INFRA, "not-started"),
    ],
)
def test_a_child_that_ends_early_keeps_what_it_measured(
    ending: Ending, code: int | None, err: str, verdict: Verdict, text: str
) -> None:
    run = judged([MODEL, *SPEEDS[:3]], ending, code=code, err=err)
    assert run.verdict is verdict
    assert text in run.reason
    assert [one.depth for one in run.speeds] == [0]
    assert run.executed is None
    assert run.target == "gfx1151"


def test_of_a_traceback_the_error_is_told() -> None:
    err = (
        'a warning\nTraceback (most recent call last):\n  File "a.py", line 1, in f\n    raise KeyError\nKeyError\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "b.py", line 2, in g\n    raise ValueError(msg) from e\n'
        "ValueError: Model type x not supported.\n"
    )
    run = judged([], err=err, code=1)
    assert run.reason == "exit status 1; 0 of 2 depths measured. ValueError: Model type x not supported."


def test_nan_is_wrong_output_even_where_all_was_measured() -> None:
    run = judged([MODEL, *SPEEDS[:-1], speed(2048, 2, 140.0, finite=False), STEPS, EXECUTED])
    assert run.verdict is Verdict.WRONG_OUTPUT
    assert "depth 2048" in run.reason


def test_evidence_repeats_with_the_same_request_and_differs_with_another() -> None:
    lines = [MODEL, *SPEEDS, STEPS, EXECUTED]
    one, two = (benching.evidence_of(judged(lines), group) for group in ("a", "b"))
    assert (one.identity, one.gfx_target, one.versions["hip"]) == (two.identity, "gfx1151", "7.0")
    other = benching.evidence_of(judged(lines, request=Request(shape="qwen3-0.6b", depths=(0, 4096))), "a")
    assert other.identity != one.identity


def test_the_shapes_are_those_of_the_program() -> None:
    tree = ast.parse(benching.CHILD.read_text(encoding="utf-8"))
    found = next(
        node.value for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "CONFIGS"
    )
    assert isinstance(found, ast.Dict)
    assert sorted(ast.literal_eval(key) for key in found.keys if key is not None) == list(benching.SHAPES)


@pytest.fixture
def rocmend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the program in this process, at an 80-column terminal, with a home of its own."""
    from rocmend.cli.main import main

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("ROCMEND_HOME", str(tmp_path))

    def run(*arguments: str) -> SimpleNamespace:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
            main(list(arguments))
        return SimpleNamespace(code=stop.value.code, out=out.getvalue(), err=err.getvalue())

    return run


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Have the figures above measured by every child; returns what was asked for."""
    asked: list[Request] = []

    def bench(request: Request, *, time_limit_s: float) -> BenchRun:
        del time_limit_s
        asked.append(request)
        return judged([MODEL, *SPEEDS, STEPS, EXECUTED], request=request)

    monkeypatch.setattr(benching, "bench", bench)
    monkeypatch.setattr("rocmend.cli.commands.mlx_bench.need", lambda *_packages: None)
    return asked


def test_the_table_fits_into_80_columns_and_says_what_was_not_used(rocmend: Run, measured: list[Request]) -> None:
    done = rocmend("mlx", "bench", "--shape", "qwen3-0.6b", "--depth", "0,2048")
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    words = " ".join(done.out.split())
    assert "0 1,200.0 120.0 400.0 30.0%" in words
    assert "recording a step 1.25 ms" in words
    assert "recording in C no no C compiler was found" in words
    assert "Scatter depends on an integer" in words
    assert [one.depths for one in measured] == [(0, 2048)]


@pytest.mark.usefixtures("measured")
def test_it_is_kept_as_evidence(rocmend: Run) -> None:
    done = rocmend("mlx", "bench", "--shape", "qwen3-0.6b", "--depth", "0,2048", "--json")
    data = json.loads(done.out)["data"]
    assert data["run"]["speeds"][1]["depth"] == 2048
    with Store.open(None, create=False) as store:
        kept = list(store.query(kind="bench"))
    assert len(kept) == 1
    evidence = kept[0].evidence
    assert (evidence.subject, evidence.gfx_target, evidence.verdict) == ("mlx/qwen3-0.6b", "gfx1151", Verdict.PASS)
    assert evidence.group == data["group"]
    assert evidence.detail["speeds"][0]["generate_tok_s"] == 120.0
    rocmend("mlx", "bench", "--shape", "qwen3-0.6b", "--no-store")
    with Store.open(None, create=False) as store:
        assert len(list(store.query(kind="bench"))) == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "use either --model or --shape"),
        (("--shape", "tiny", "--model", "x/y"), "use either --model or --shape"),
        (("--model", "x/y", "--layers", "2"), "--layers"),
        (("--shape", "tiny", "--depth", "1,x"), "not a list of token counts"),
        (("--shape", "tiny", "--depth", "0", "--no-store", "--store", "s.sqlite"), "--no-store"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_started(
    rocmend: Run, measured: list[Request], arguments: tuple[str, ...], text: str
) -> None:
    done = rocmend("mlx", "bench", *arguments)
    assert done.code == 2
    assert text in done.err
    assert not measured


@pytest.mark.cpu
@pytest.mark.slow
def test_a_tiny_model_is_timed_in_a_child() -> None:
    for package in ("torch", "mlx_lm"):
        if importlib.util.find_spec(package) is None:  # mlx_lm itself can be imported in the child only
            pytest.skip(f"{package} is not installed")
    request = Request(shape="tiny", device="cpu", depths=(0, 8), prompt=4, generate=3, reps=1, steps=2)
    run = benching.bench(request, time_limit_s=600.0)
    assert run.verdict is Verdict.PASS, run.reason
    assert (run.target, [one.depth for one in run.speeds]) == ("cpu", [0, 8])
    assert all(one.prompt_tok_s > 0 and one.generate_tok_s > 0 and one.finite for one in run.speeds)
    # what the floor reads more at the second depth: keys and values, 2 layers, 2 heads of 32, in bfloat16
    assert run.weight_bytes is not None
    assert run.copy_gb_s is not None
    floors = [run.copy_gb_s * 1e9 / one.floor_tok_s for one in run.speeds if one.floor_tok_s]
    assert floors[1] - floors[0] == pytest.approx(8 * (2 * 2 * 2 * 32 * 2), rel=1e-6)
    assert run.executed is not None
    assert run.executed.captures == 0
    assert run.executed.why_not_captured
