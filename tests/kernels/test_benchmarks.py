"""The benchmarks' frame: nothing is timed behind a red gate, and every topic can be listed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from benchmarks.kernels import __main__ as program
from benchmarks.kernels import bench as benching
from benchmarks.kernels import isolated
from benchmarks.kernels.bench import Bench
from benchmarks.kernels.ceilings import floor_us
from benchmarks.kernels.plot import bars
from benchmarks.kernels.run import Options, measure
from benchmarks.kernels.table import beside, page, target, together

from rocmend.kernels import registry
from rocmend.kernels.suite import Call
from rocmend.kernels.timing import Timing, set_count, timed

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

CPU = torch.device("cpu")
CEILINGS = {"copy_gb_s": 4000.0, "read_gb_s": 4000.0, "bfloat16_tflops": 800.0}


def _bench(**settings: Any) -> Bench:
    def make(m: Any) -> Call:
        return Call((m.normal(4, 64), m.normal(64), 1e-5))

    given: dict[str, Any] = {"op": "rms_norm", "name": "tiny", "make": make, "dtype": "float32", "bytes": 2304.0}
    return Bench(**{**given, **settings})


def test_a_bench_is_gated_timed_and_compared_with_its_peers() -> None:
    def peer(x: Any, weight: Any, eps: float) -> Any:
        return torch.nn.functional.rms_norm(x, (64,), weight, eps)

    def broken(*_: Any) -> Any:
        raise RuntimeError("not for this type")

    row = measure(_bench(peers={"torch": peer, "other": broken}), Options(CPU), CEILINGS)
    assert row["gate"]["ok"]
    assert row["floor_us"] == pytest.approx(2304 / 4000 / 1e3)
    assert row["ours"]["of_floor"] == pytest.approx(row["floor_us"] / row["ours"]["us"])
    assert row["peers"]["torch"]["differs"] < 1e-5
    assert row["peers"]["other"] == {"error": "RuntimeError: not for this type"}
    assert "torch" in program.line({"topic": "norms", **row})


def test_what_is_wrong_is_not_timed() -> None:
    row = measure(_bench(gate=lambda _call, _out: "wrong"), Options(CPU), CEILINGS)
    assert row["gate"] == {"ok": False, "worst": None, "detail": "wrong"}
    assert "ours" not in row
    assert "not timed" in program.line(row)
    result = {"results": [{"topic": "norms", **row}]}
    assert bars(result) == []


def test_peers_are_chosen_by_name() -> None:
    assert Options(CPU).wants("torch.compile")
    assert not Options(CPU).wants("mlx")
    assert Options(CPU, mlx_site="/mlx").wants("mlx")
    one = Options(CPU, peers=("torch",))
    assert (one.wants("torch"), one.wants("torch.compile"), one.wants("sdpa-flash")) == (True, False, False)
    two = Options(CPU, peers=("compile", "flash"))
    assert (two.wants("torch"), two.wants("torch.compile"), two.wants("sdpa-flash")) == (False, True, True)


def test_the_floor_is_the_larger_of_travel_and_arithmetic() -> None:
    assert floor_us(CEILINGS, 4e9, 0.0, "bfloat16") == pytest.approx(1000.0)
    assert floor_us(CEILINGS, 4e3, 800e9, "bfloat16") == pytest.approx(1000.0)


def test_timing_on_the_cpu_is_by_the_clock() -> None:
    timing = timed([lambda: None, lambda: None], CPU)
    assert timing.method == "clock"
    assert timing.low_us <= timing.us <= timing.high_us
    assert Timing(10.0, 9.0, 12.0, "graph", 5).spread == pytest.approx(0.3)
    assert set_count(CPU, 1.0) == 1


def test_every_topic_yields_benches_of_ops_that_exist() -> None:
    known = {op.name: op for op in registry.ops()}
    for topic in benching.topics():
        seen: set[str] = set()
        for bench in benching.benches(topic):
            full = f"{bench.op}/{bench.name}"
            assert full not in seen, f"{topic}: {full} twice"
            seen.add(full)
            assert bench.op in known, f"{topic}: {full}"
            assert bench.function is None or bench.function in known[bench.op].functions
            assert bench.gate is not None or bench.tolerance is not None or bench.dtype in known[bench.op].tolerance
            assert bench.bytes > 0


def test_the_gates_of_a_topic_hold_in_the_interpreter() -> None:
    for topic in ("quantized", "order", "conv"):
        for bench in list(benching.benches(topic, tiny=True))[:2]:
            row = measure(bench, Options(CPU, peers=("torch",), gate_only=True), {})
            assert row["gate"]["ok"], f"{bench.op}/{bench.name}: {row['gate']['detail']}"


def test_a_goal_is_said_with_what_was_reached() -> None:
    row = {"op": "o", "name": "n", "ours": {"us": 10.0, "of_floor": 0.7}, "peers": {"sdpa-flash": {"us": 5.0}}}
    assert target(("of_floor", 0.6), row, {}) == "≥ 60%: 70%, reached"
    assert target(("of_peer:sdpa", 0.6), row, {}) == "≥ 60% of sdpa's rate: 50%, **missed**"
    assert target(("times:m", 1.15), row, {"o/m": {"ours": {"us": 9.0}}}) == "≤ 1.15 times m: 1.11, reached"


def _result(name: str, us: float, date: str) -> dict[str, Any]:
    ours = {"us": us, "spread": 0.0, "gb_s": 8.0}
    row = {"topic": "norms", "op": "rms_norm", "name": name, "gate": {"ok": True}, "ours": ours}
    return {
        "device": "G", "target": "sm90", "date": date, "versions": {"torch": "2", "triton": "3"},
        "ceilings": {"copy_gb_s": us * 100}, "results": [{**row, "peers": {}, "goals": [], "flops": 0, "bytes": 8.0}],
        "not_measured": [f"left of {name}"],
    }  # fmt: skip


def test_a_page_holds_what_another_gpu_and_a_later_run_measured() -> None:
    result = beside(_result("one", 11.0, "2026-01-01"), _result("other", 22.0, "2026-01-01"))
    told = page(together(result, _result("one", 33.0, "2026-02-02")))
    assert "| rms_norm | one ² | 33.0 |" in told
    assert "| rms_norm | other | 22.0 |" in told
    assert "11.0" not in told
    assert "* left of one: the time was up\n* left of other: the time was up\n" in told
    assert "ceilings of the second: copy gb s 2,200." in told
    assert "Marked ²: measured on 2026-02-02 in another run, whose ceilings were copy gb s 3,300." in told


@pytest.mark.usefixtures("_one_topic")
@pytest.mark.parametrize("other", [["--mlx-gpu", "1"], []])
def test_mlx_is_timed_meanwhile_or_after_ours(
    other: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = _result("tiny", 11.0, "2026-01-01")["results"][0] | {"rank": 1, "twin": ["m:f", {}], "sets": 1}
    said = {"us": 7.0, "low_us": 6.0, "high_us": 8.0, "samples": 3, "method": "eval", "version": "0", "device": "gpu"}
    asked: list[tuple[int, str | None]] = []

    def mlx(rows: Any, _site: str, plan: Any, _limit: float) -> dict[str, Any]:
        asked.append((len(rows), plan.env.get("CUDA_VISIBLE_DEVICES")))
        return {"rms_norm/tiny": said}

    monkeypatch.setattr(isolated, "topic", lambda _name, rank, _plan: ([row] if rank == 1 else [], []))
    monkeypatch.setattr(isolated, "mlx", mlx)
    out = tmp_path / "result.json"
    assert program.main(["--device", "cpu", "--mlx-site", "folder", "--out", str(out), *other]) == 0
    assert json.loads(out.read_text())["results"][0]["peers"]["mlx"]["us"] == 7.0
    assert asked == ([(0, "1")] if other else [(1, None)])


@pytest.fixture
def _one_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    def benches(_topic: str, *, tiny: bool = False) -> Iterator[Bench]:
        del tiny
        yield _bench()

    monkeypatch.setattr(benching, "topics", lambda: ["norms"])
    monkeypatch.setattr(benching, "benches", benches)


@pytest.mark.usefixtures("_one_topic")
def test_the_program_writes_a_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "result.json"
    assert program.main(["--device", "cpu", "--in-process", "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    assert result["results"][0]["gate"]["ok"]
    assert result["versions"]["torch"] == torch.__version__
    assert program.main(["--device", "cpu", "--ops", "other/*", "--list"]) == 0
    assert "rms_norm/tiny" in capsys.readouterr().out
    if not torch.cuda.is_available():
        assert program.main(["--device", "cuda"]) == 2
