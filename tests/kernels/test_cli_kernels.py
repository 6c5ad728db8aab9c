"""``rocmend kernels list``, ``explain``, ``check`` and ``tune``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("torch")

from rocmend.core.verdict import Verdict
from rocmend.kernels import registry, rungs
from rocmend.kernels.suite.supervise import CaseOutcome, OpRun
from rocmend.kernels.tuning import records

Run = Callable[..., Any]
PROBLEM = ("rms_norm", "dtype=float16", "rows=512", "columns=4096")
DECODE = "dtype=bfloat16 batch=1 heads=32 kv_heads=8 keys=4096 head_dim=128 value_dim=128"


@pytest.fixture
def rocmend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the program in this process, at an 80-column terminal, with a home of its own."""
    import io
    from contextlib import redirect_stderr, redirect_stdout
    from types import SimpleNamespace

    from rocmend.cli.main import main

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("ROCMEND_HOME", str(tmp_path))

    def run(*arguments: str) -> SimpleNamespace:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
            main(list(arguments))
        return SimpleNamespace(code=stop.value.code, out=out.getvalue(), err=err.getvalue())

    return run


def _run(op: str, verdict: Verdict = Verdict.PASS, target: str = "gfx1151") -> OpRun:
    bad = () if verdict is Verdict.PASS else (CaseOutcome("f16-3x7", verdict, "at (0,): got nan"),)
    return OpRun(
        op=op,
        rung="amd" if target != "cpu" else "reference",
        target=target,
        device_name="Radeon 8060S",
        verdict=verdict,
        passed=10 - len(bad),
        count=10,
        not_passed=bad,
        worst=0.7,
        time_ms=1234.0,
        versions={"torch": "2.11.0", "triton": "3.6.0"},
        started_at="2026-11-21T08:00:00.000",
        sizes=("tiny",),
        implementations={"rows": 9, "tiles": 1},
    )


def test_list_claims_nothing_without_a_record(rocmend: Run) -> None:
    done = rocmend("kernels", "list", "rms_norm", "--json")
    (row,) = json.loads(done.out)["data"]["ops"]
    assert row["implementations"][-1][1] == "reference"
    # What ships with rocmend is all there is: the default of ``origin`` is left out of JSON.
    assert all(run.get("origin", "shipped") == "shipped" and run["rung"] != "amd" for run in row["runs"])
    whole = rocmend("kernels", "list")
    assert max(map(len, whole.out.splitlines())) <= 80
    assert all(op.name[:12] in whole.out for op in registry.ops())


def test_check_keeps_what_came_out_and_list_shows_it(
    rocmend: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("rocmend.kernels.suite.supervise.check_op", lambda op, *_args, **_more: _run(op))
    record = tmp_path / "runs.json"
    done = rocmend("kernels", "check", "rms_norm", "--device", "cuda", "--record", str(record))
    assert done.code == 0, done.err
    assert "10 of 10 cases passed on Radeon 8060S (gfx1151)" in done.out
    (kept,) = msgspec.json.decode(record.read_bytes(), type=list[rungs.Run])
    assert (kept.rung, kept.target, kept.origin) == ("amd", "gfx1151", "shipped")
    assert "amd gfx1151 10/10" in rocmend("kernels", "list", "--format", "md").out
    (row,) = json.loads(rocmend("kernels", "list", "rms_norm", "--json").out)["data"]["ops"]
    assert row["runs"][-1]["origin"] == "store"
    assert "kernel-suite" in rocmend("store", "ls").out
    (group,) = re.findall(r"Kept as (\S+):", done.out)
    assert len(json.loads(rocmend("store", "ls", "--group", group, "--json").out)["data"]) == 1
    assert f"store ls --group {group}" in " ".join(rocmend("store", "show", group).err.split())
    assert rocmend("store", "rm", "", "--yes").code == 2
    assert json.loads(rocmend("store", "rm", group, "--yes", "--json").out)["data"]["removed"] == 1


def test_what_does_not_pass_is_a_finding(rocmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "rocmend.kernels.suite.supervise.check_op", lambda op, *_args, **_more: _run(op, Verdict.WRONG_OUTPUT)
    )
    done = rocmend("kernels", "check", "rms_norm", "--device", "cuda", "--no-store")
    assert done.code == 1
    assert "Kept as" not in done.out
    assert "f16-3x7: wrong-output, at (0,): got nan" in done.out
    assert "WRONG-OUTPUT" in done.out
    lines = rocmend("kernels", "check", "rms_norm", "--no-store", "--format", "jsonl").out.splitlines()
    assert json.loads(lines[0])["verdict"] == "wrong-output"


def test_the_cpu_says_nothing_about_a_gpu(rocmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocmend.kernels.suite.supervise.check_op", lambda op, *_args, **_more: _run(op, target="cpu"))
    assert "not on a GPU" in " ".join(rocmend("kernels", "check", "rms_norm", "--device", "cpu").out.split())


def test_explain_for_a_gpu_that_is_not_here(rocmend: Run) -> None:
    done = rocmend("kernels", "explain", *PROBLEM, "--target", "gfx1151", "--product", "8060S", "--json")
    data = json.loads(done.out)["data"]
    assert data["chosen"]
    assert sum(one["taken"] for one in data["considered"]) == 1
    assert all(one["reason"] for one in data["considered"])
    assert data["floor"]["travel_us"] == pytest.approx(data["bytes"] / 256e9 * 1e6)
    human = rocmend("kernels", "explain", *PROBLEM, "--target", "gfx1151")
    assert human.code == 0
    assert max(map(len, human.out.splitlines())) <= 80


@pytest.mark.parametrize("op", [op.name for op in registry.ops()])
def test_the_problem_that_explain_suggests_is_a_real_one(op: str, rocmend: Run) -> None:
    asked = rocmend("kernels", "explain", op, "--target", "gfx1151")
    assert asked.code == 2
    suggested = asked.err.partition("For example: rocmend ")[2].split()
    assert suggested[:3] == ["kernels", "explain", op]
    done = rocmend(*suggested, "--json")
    assert (done.code, "gfx1151" in suggested) == (0, True), done.err
    assert json.loads(done.out)["data"]["chosen"] != "reference"


def test_the_problem_that_explain_suggests_names_a_target_where_torch_is_missing(
    rocmend: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--target" not in rocmend("kernels", "explain", "attention").err
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert "--target gfx1151" in rocmend("kernels", "explain", "attention").err


@pytest.mark.parametrize(
    ("problem", "target", "kernel"),
    [
        ("rms_norm dtype=bfloat16 rows=1 columns=20000", "gfx1151", "split"),
        ("softmax dtype=bfloat16 rows=1 columns=20000", "gfx1151", "held"),
        ("softmax dtype=bfloat16 rows=1 columns=20000 backward=true", "gfx1151", "split_backward"),
        ("sort dtype=float32 rows=1 length=2000 indices=false", "gfx1151", "counted"),
        ("topk dtype=float32 rows=1 length=151936 k=50", "gfx1151", "groups"),
        (f"attention_decode {DECODE} queries=1", "gfx1151", "split"),
        (f"attention_decode {DECODE} queries=1", "gfx1030", "split_vector"),
        (f"attention_decode {DECODE} queries=2", "gfx1030", "split_rows"),
    ],
)
def test_explain_names_the_kernel(problem: str, target: str, kernel: str, rocmend: Run) -> None:
    done = rocmend("kernels", "explain", *problem.split(), "--target", target)
    assert f"\n{kernel} (triton): " in done.out


@pytest.mark.parametrize(
    ("problem", "kernels"),
    [
        ("rope dtype=float16 elements=2097152 tokens=512", ["rope"]),
        ("copy dtype=float16 to=float16 elements=4096 contiguous=false", ["lines", "turned"]),
        ("scatter dtype=float16 outer=1 length=9 inner=4096 indices=512 along=false mode=add", ["keys", "apply"]),
        ("attention dtype=float16 batch=1 heads=32 kv_heads=8 queries=99 keys=99 dim=128 dim_v=128", ["forward"]),
        ("softmax dtype=bfloat16 rows=1 columns=20000 backward=true", ["split"]),
    ],
)
def test_explain_lists_only_the_records_of_the_problem(problem: str, kernels: list[str], rocmend: Run) -> None:
    done = rocmend("kernels", "explain", *problem.split(), "--target", "gfx1151", "--json")
    data = json.loads(done.out)["data"]
    assert [row["kernel"] for row in data["records"]] == kernels
    op = problem.split(maxsplit=1)[0]
    assert data["other_records"] == len(records(op)) - len(kernels)


@pytest.mark.parametrize("tier", ["reference", "nonsense"])
def test_explain_follows_what_was_asked_for(tier: str, rocmend: Run) -> None:
    from rocmend.kernels import select

    with select.prefer(tier):
        data = json.loads(rocmend("kernels", "explain", *PROBLEM, "--target", "gfx1151", "--json").out)["data"]
    taken = [one["tier"] for one in data["considered"] if one["taken"]]
    assert taken == (["reference"] if tier == "reference" else [])


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "no_such_op"],
        ["explain", "rms_norm"],
        ["explain", *PROBLEM, "--target", "gfx0"],
        ["explain", *PROBLEM, "--target", "gfx1151", "--product", "GeForce"],
        ["check", "no_such_op"],
        ["check", "rms_norm", "--sizes", "huge"],
        ["check", "rms_norm", "--no-store", "--store", "x"],
        ["tune"],
        ["tune", "rms_norm", "--all"],
        ["tune", "rms_norm", "width=3"],
        ["tune", "rms_norm", "--budget", "soon"],
        ["tune", "rms_norm", "--device", "cpu"],
        ["tune", "rms_norm", "--model"],
        ["tune", "rms_norm", "--target", "gfx1151"],
        ["tune", "rms_norm", "--model", "--target", "gfx1103"],
        ["tune", "rms_norm", "--product", "8060S"],
        ["tune", "--export", "records.toml"],
        ["list", "no_such_op"],
    ],
    ids=" ".join,
)
def test_mistakes_are_words(arguments: list[str], rocmend: Run) -> None:
    done = rocmend("kernels", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("rocmend: ")


@pytest.mark.slow
@pytest.mark.cpu
def test_tune_needs_a_gpu(rocmend: Run) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    done = rocmend("kernels", "tune", "rms_norm")
    assert done.code == 2
    assert "tuning failed" in done.err


def test_tune_says_what_it_kept(rocmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from rocmend.kernels.tuning import tune

    result = tune.Tuned(
        "held", "held", 3, 4, {"num_warps=64": "crash: too many"}, "num_warps=4", "num_warps=8", 1.2, {}, True
    )
    found = tune.Tuning("rms_norm", "Radeon", "gfx1151", (result,), False, "/home/me/kernel-tuning.json")
    monkeypatch.setattr(tune.Tuner, "run", lambda _self, _fields: found)
    done = rocmend("kernels", "tune", "rms_norm")
    assert done.code == 0
    for text in ("1 new record", "num_warps=8", "20 %", "num_warps=64: crash", "Not all configurations"):
        assert text in done.out


@pytest.mark.slow
@pytest.mark.cpu
def test_the_model_proposes_without_a_gpu(rocmend: Run, tmp_path: Path) -> None:
    pytest.importorskip("triton")
    arguments = ["kernels", "tune", "router", "--model", "--target", "gfx1151", "--export", str(tmp_path / "made.toml")]
    done = rocmend(*arguments, "--json")
    assert done.code == 0, done.err
    (op,) = json.loads(done.out)["data"]["ops"]
    (result,) = op["results"]
    assert (op["target"], op["product"], op["finished"]) == ("gfx1151", "Radeon 8060S", True)
    assert result["estimated"] == result["of"] >= 4
    assert result["before_us"] > 0
    assert (tmp_path / "made.toml").is_file() == result["proposed"]


def test_list_and_explain_need_neither_torch_nor_triton() -> None:
    code = (
        "import sys; sys.modules['torch'] = sys.modules['triton'] = None\n"
        "from rocmend.cli.main import main\n"
        "try:\n    main(['kernels', 'list', '--json'])\n"
        "except SystemExit as stop:\n    assert stop.code == 0, stop.code\n"
        f"main(['kernels', 'explain', *{PROBLEM!r}, '--target', 'gfx942', '--json'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_newer_records_come_first() -> None:
    old = rungs.Run("op", "amd", "gfx1151", "crash", 1, 2, "2026-01-01")
    new = rungs.Run("op", "amd", "gfx1151", "pass", 2, 2, "2026-02-01", origin="store")
    other = rungs.Run("op", "reference", "cpu", "pass", 5, 5, "2026-01-01")
    found = rungs.latest([new, old, other])["op"]
    assert rungs.told(found) == "reference 5/5; amd gfx1151 2/2"
