"""All of the measurements in one call: what each GPU gets, what is done again, and that nothing goes on behind it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from benchmarks.kernels.whole import __main__ as whole
from benchmarks.kernels.whole.shares import filled, lacking, shares
from benchmarks.kernels.whole.steps import Steps, below

pytestmark = pytest.mark.cpu
ROOT = Path(__file__).resolve().parents[2]


def _row(name: str, *, topic: str = "norms", us: float = 1.0, ok: bool = True, **more: Any) -> dict[str, Any]:
    ours = {"ours": {"us": us}} if ok else {}
    return {"topic": topic, "op": "op", "name": name, "rank": 1, "gate": {"ok": ok}, **ours, **more}


def test_gpus_get_topics_that_take_as_long() -> None:
    rows = [_row(str(at), topic=topic, seconds=seconds) for at, (topic, seconds) in enumerate(
        [("quantized", 60), ("moe", 50), ("norms", 30), ("order", 20), ("conv", 5)]
    )]  # fmt: skip
    names = ["quantized", "moe", "norms", "order", "conv"]
    assert shares(names, 2, {"results": rows}) == [["quantized", "order", "conv"], ["moe", "norms"]]
    assert shares(names, 1, {"results": rows}) == [names]
    # Nothing is known of any, and there are more GPUs than topics.
    assert sorted(shares(["a", "b"], 4, None)) == [["a"], ["b"]]


def test_what_failed_is_lacking_and_replaced_by_what_did_not() -> None:
    first = {"results": [_row("a"), _row("b", ok=False)], "not_measured": ["op/c", "op/d"], "ceilings": {"x": 1}}
    assert lacking(first, ["op/a", "op/b", "op/c"]) == ["op/b", "op/c"]
    assert lacking(None, ["op/a"]) == ["op/a"]
    both = filled(first, {"results": [_row("b", us=2.0), _row("c"), _row("a", us=9.0)], "not_measured": []})
    assert [(row["name"], row["ours"]["us"]) for row in both["results"]] == [("a", 1.0), ("b", 2.0), ("c", 1.0)]
    assert both["not_measured"] == ["op/d"]
    assert both["ceilings"] == {"x": 1}


# A child that ignores TERM, in a session of its own.
STUBBORN = """
import subprocess, sys, time
child = (
    "import os, pathlib, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(60)"
)
subprocess.Popen([sys.executable, "-c", child, sys.argv[1]], start_new_session=True)
time.sleep(60)
"""


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _pid_in(path: Path) -> int:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if path.exists() and path.read_text(encoding="utf-8"):
            return int(path.read_text(encoding="utf-8"))
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")


def test_a_step_has_a_log_and_ends_with_all_below_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps, before = Steps(tmp_path, tmp_path, dict(os.environ), time.monotonic() + 60), set(below(os.getpid()))
    assert (
        steps.run("short", [sys.executable, "-c", "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])"], 30, "3") == 0
    )
    assert (tmp_path / "short.log").read_text(encoding="utf-8") == "3\n"
    assert steps.run("long", [sys.executable, "-c", STUBBORN, tmp_path / "pid"], 2) != 0
    assert "long: exit -15" in capsys.readouterr().out
    assert not _alive(_pid_in(tmp_path / "pid"))
    # Other tests of this process may have left some of their own.
    assert set(below(os.getpid())) <= before
    steps.end_all()
    assert steps.run("behind", [sys.executable, "-c", "print('said')"], 30) == 1
    assert not (tmp_path / "behind.log").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_steps_that_threads_wait_for(tmp_path: Path, number: signal.Signals) -> None:
    program = f"""
import os, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from benchmarks.kernels.whole.steps import running
here = Path({str(tmp_path)!r})
with running(here / "logs", here, dict(os.environ), 60) as steps, ThreadPoolExecutor(1) as pool:
    pool.submit(steps.run, "long", [sys.executable, "-c", {STUBBORN!r}, here / "pid"], 60).result()
"""
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    stubborn = _pid_in(tmp_path / "pid")
    process.send_signal(number)
    assert process.wait(20) == 128 + number
    assert not _alive(stubborn)


class Told(Steps):
    """Steps that only note what they are asked, and leave the files that the real ones would."""

    asked: list[tuple[str, list[str], str | None]]
    fails: set[str]

    def run(self, name: str, command: Any, seconds: float, gpu: str | None = None) -> int:
        assert seconds > 0
        words = [str(part) for part in command][2:]
        self.asked.append((name, words, gpu))
        options = dict(pairwise(words))
        out = Path(options["--out"]) if "--out" in options else None
        if name.startswith("prepare"):
            Path(options["--gates"]).write_text(
                json.dumps({f"op/{name}": {"ok": True, "detail": ""}}), encoding="utf-8"
            )
        elif name.startswith("rows") and out:
            names = [one for topic in options["--topics"].split(",") for one in NAMES[topic]]
            only = options.get("--ops", ",".join(names)).split(",")
            rows = [_row(one.split("/")[1], ok=one not in self.fails) for one in names if one in only]
            out.write_text(json.dumps({"results": rows, "not_measured": []}), encoding="utf-8")
            self.fails.difference_update(names)
        elif name == "mlx" and out:
            out.write_text("{}", encoding="utf-8")
        elif name == "calls":
            Path(words[-1]).write_text("{}", encoding="utf-8")
        return 0


NAMES = {"norms": ["op/a", "op/b"], "moe": ["op/c"]}


class _Bench:
    def __init__(self, full: str) -> None:
        self.op, self.name = full.split("/")


def _whole(folder: Path, monkeypatch: pytest.MonkeyPatch, fails: set[str]) -> list[tuple[str, list[str], str | None]]:
    monkeypatch.setattr(
        whole,
        "chosen",
        lambda topics, _ops, *, tiny: [("", _Bench(one)) for topic in topics for one in NAMES[topic]] * (not tiny),
    )
    asked = whole.parser().parse_args(
        [
            str(folder),
            "--gpus",
            "4,5",
            "--topics",
            "norms,moe",
            "--mlx-site",
            str(folder),
            "--seconds",
            "400",
            "--like",
            str(folder / "none.json"),
        ]
    )
    steps = Told(folder / "logs", folder, {}, time.monotonic() + asked.seconds)
    steps.asked, steps.fails = [], fails
    one = whole.Whole(asked, steps)
    one.first()
    one.mlx()
    one.rows()
    one.calls()
    assert one.join() == 0
    return steps.asked


def test_everything_is_measured_and_what_failed_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _whole(tmp_path, monkeypatch, {"op/b"})
    names = [name for name, _, _ in asked]
    beside = {"suites", "mlx-first", "prepare01", "prepare02", "prepare11", "prepare12"}
    assert set(names[:6]) == beside
    assert names[6] == "mlx"
    assert sorted(names[7:-2]) == ["rows0", "rows1", "rows1-more"]
    assert names[-2:] == ["calls", "page"]
    # Each GPU has its own topics, and what failed is asked alone.
    of = {name: (dict(pairwise(words)), gpu) for name, words, gpu in asked}
    assert (of["rows0"][0]["--topics"], of["rows0"][1]) == ("moe", "4")
    assert (of["rows1"][0]["--topics"], of["rows1"][1]) == ("norms", "5")
    assert (of["rows1-more"][0]["--ops"], of["rows1-more"][1]) == ("op/b", "5")
    assert "--ops" not in of["rows1"][0]
    assert set(json.loads((tmp_path / "gates.json").read_text(encoding="utf-8"))) == {
        f"op/prepare{gpu}{rank}" for gpu in range(2) for rank in (1, 2)
    }
    kept = json.loads((tmp_path / "rows1.json").read_text(encoding="utf-8"))
    assert lacking(kept, NAMES["norms"]) == []
    # What there is is not done again, but for suites, which know themselves what they lack.
    assert [name for name, _, _ in _whole(tmp_path, monkeypatch, set())] == ["suites", "page"]


def test_what_is_begun_while_all_is_ended_ends_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(tmp_path, tmp_path, dict(os.environ), time.monotonic() + 60)
    begin = subprocess.Popen

    def begun(*args: Any, **named: Any) -> Any:
        process = begin(*args, **named)
        steps.end_all()
        return process

    monkeypatch.setattr("benchmarks.kernels.whole.steps.subprocess.Popen", begun)
    assert steps.run("late", [sys.executable, "-c", "import time; time.sleep(60)"], 50) == -signal.SIGTERM


def test_what_a_run_that_was_ended_had_measured_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = {"results": [_row("a", us=7.0)], "not_measured": []}
    (tmp_path / "rows1.part.json").write_text(json.dumps(part), encoding="utf-8")
    asked = {name: words for name, words, _ in _whole(tmp_path, monkeypatch, set())}
    assert asked["rows1"][asked["rows1"].index("--ops") + 1] == "op/b"
    kept = json.loads((tmp_path / "rows1.json").read_text(encoding="utf-8"))
    assert {row["name"]: row["ours"]["us"] for row in kept["results"]} == {"a": 7.0, "b": 1.0}
