"""The benchmarks' frame: nothing is timed behind a red gate, and every topic can be listed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from benchmarks.kernels import __main__ as program
from benchmarks.kernels import bench as benching
from benchmarks.kernels import isolated, pairs, ratios, run
from benchmarks.kernels.bench import Bench
from benchmarks.kernels.ceilings import floor_us
from benchmarks.kernels.plot import bars
from benchmarks.kernels.run import Options, measure
from benchmarks.kernels.table import beside, earlier, page, target, together, with_twins
from benchmarks.kernels.table import main as write_page

from rocmend.kernels import allocate, registry
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


def test_what_is_left_unwritten_is_wrong_even_where_memory_holds_the_right_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "empty", torch.ones)

    def unwritten(*_: Any) -> Any:
        return allocate.empty((4, 64), dtype=torch.float32, device=CPU)

    compared = []

    def gate(_call: Any, out: Any) -> str | None:
        compared.append(out)
        return None if bool((out == 1).all()) else "wrong"

    row = measure(_bench(call=unwritten, gate=gate), Options(CPU), CEILINGS)
    assert not row["gate"]["ok"]
    assert compared[0].isnan().all()


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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("count", "low", "high"), [(6, 0, 5), (8, 0, 7), (9, 1, 7), (12, 2, 9), (20, 5, 14), (40, 13, 26)]
)
def test_the_interval_of_a_median_leaves_out_what_the_confidence_allows(count: int, low: int, high: int) -> None:
    values = [float((7 * number) % count) for number in range(count)] if count % 7 else list(map(float, range(count)))
    assert ratios.interval(values) == (float(low), float(high))


def test_the_interval_covers_the_median_as_often_as_it_says() -> None:
    draws = torch.empty(4000, 12).exponential_(generator=torch.Generator().manual_seed(1))
    median = math.log(2)
    inside = sum(low <= median <= high for low, high in (ratios.interval(row.tolist()) for row in draws))
    assert 0.95 < inside / 4000 < 0.97


def test_too_few_values_have_no_interval() -> None:
    for count in range(6):
        with pytest.raises(ValueError, match="no interval"):
            ratios.interval([1.0] * count)


def test_a_ratio_is_the_median_of_placings_each_the_median_of_its_rounds() -> None:
    ours = [[1.0, 2.0, 4.0]] * 6
    peer = [[number / 10, 2 * number / 10, 400.0] for number in (9, 10, 11, 12, 13, 14)]
    assert ratios.ratio(ours, peer) == pytest.approx((1.15, 0.9, 1.4))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ((1.001, 1.0, 1.002), "reached"),
        ((1.002, 1.001, 1.2), "reached"),
        ((0.998, 0.997, 0.9999), "missed"),
        ((0.9, 0.8, 0.99), "missed"),
        ((1.001, 0.998, 1.003), "level"),
        ((0.999, 0.9975, 1.0), "level"),
        ((1.001, 0.997, 1.003), "no verdict"),
        ((0.97, 0.94, 1.0), "no verdict"),
    ],
)
def test_a_verdict_needs_an_interval_on_one_side_or_a_narrow_one(found: tuple[float, float, float], said: str) -> None:
    assert ratios.verdict(1.0, ratios.Ratio(*found)) == said
    assert ratios.verdict(0.5, ratios.Ratio(*(value / 2 for value in found))) == said


def test_noise_makes_no_clear_loss_level() -> None:
    generator = torch.Generator().manual_seed(2)
    seen = set()
    for noise in (0.0, 0.001, 0.01, 0.1):
        for _ in range(50):
            draws = 0.99 * (1 + noise * torch.randn(12, 6, generator=generator, dtype=torch.float64))
            found = ratios.ratio([[1.0] * 6] * 12, draws.tolist())
            seen.add(ratios.verdict(1.0, found))
    assert "level" not in seen
    assert {"missed", "no verdict"} <= seen


def test_ours_and_the_peer_take_turns_and_each_is_first_as_often() -> None:
    runs = [(lambda place=place: ("ours", place), lambda place=place: ("peer", place)) for place in range(3)]
    order: list[tuple[str, int]] = []

    def seconds(run: Any) -> float:
        order.append(run())
        return len(order) / 10

    ours, peer = pairs.alternate(runs, 4, seconds)
    assert [len(place) for place in (*ours, *peer)] == [4] * 6
    firsts = order[::2]
    assert all(set(order[at : at + 2]) == {("ours", place), ("peer", place)}
               for at, (_, place) in zip(range(0, 24, 2), firsts, strict=True))  # fmt: skip
    assert all(firsts.count((who, place)) == 2 for who in ("ours", "peer") for place in range(3))
    assert sorted(round(10 * value) for place in (*ours, *peer) for value in place) == list(range(1, 25))


class _Graph:
    """Stands in for a captured graph: replaying it lets a clock go on."""

    def __init__(self, clock: list[float], seconds: float) -> None:
        self.clock, self.seconds = clock, seconds

    def replay(self) -> None:
        self.clock[0] += self.seconds


@pytest.mark.parametrize(("held", "placings"), [(99, 20), (15, 7), (11, 0), (0, 0)])
def test_a_pair_is_captured_as_often_as_memory_allows(
    held: int, placings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, made = [0.0], [0]

    def captured(thunks: Any) -> _Graph | None:
        made[0] += 1
        return _Graph(clock, thunks[0]() * 2) if made[0] <= held else None

    def event_s(run: Any, times: int) -> float:
        before = clock[0]
        for _ in range(times):
            run()
        return (clock[0] - before) / times

    monkeypatch.setattr(pairs, "captured", captured)
    monkeypatch.setattr(pairs, "event_s", event_s)

    def place() -> tuple[list[Any], list[Any]]:
        return [lambda: 1e-4] * 2, [lambda: 1.02e-4] * 2

    pair = pairs.measured_in_turn(place, torch.device("cuda"), budget_s=0.2)
    if not placings:
        assert pair is None
        return
    assert pair is not None
    assert pair.placings == placings
    assert tuple(pair.ratio) == pytest.approx((1.02, 1.02, 1.02))
    assert (pair.ours.us, pair.peer.us) == pytest.approx((100.0, 102.0))
    assert pair.rounds % 2 == 0
    assert pair.ours.samples == pair.rounds * placings
    assert pairs.measured_in_turn(place, CPU, budget_s=0.2) is None


def test_placings_end_where_they_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    made: list[list[Any]] = []

    def place() -> tuple[list[Any], list[Any]]:
        now[0] += 1.0
        made.append([object()])
        return made[-1], made[-1]

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(pairs, "captured", lambda thunks: (len(made), thunks))
    assert len(pairs._placings(place, 0.5)) == pairs.LEAST_PLACINGS
    made.clear()
    found = pairs._placings(place, 7.5)
    assert len(found) == 8
    assert [placing[2] for placing in found] == made


def test_a_peer_near_a_target_is_measured_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def alone(thunks: Any, _device: Any, *, budget_s: float) -> Timing:
        del budget_s
        return Timing({"rms": 10.0, "near": 10.4, "far": 20.0}[thunks[0]()], 9.0, 11.0, "graph", 5)

    ours, peer = (Timing(us, us - 0.1, us + 0.1, "graph", 72) for us in (10.1, 10.2))
    found = pairs.Pair(ratios.Ratio(1.01, 1.005, 1.015), ours, peer, 12, 6)
    monkeypatch.setattr(run, "timed", alone)
    placed: list[Any] = []

    def in_turn(place: Any, _device: Any, *, budget_s: float) -> pairs.Pair:
        assert budget_s == 1.0
        placed.append(place())
        return found

    monkeypatch.setattr(run, "measured_in_turn", in_turn)
    peers = {"torch.compile": lambda *_: "near", "torch": lambda *_: "far"}
    bench = _bench(call=lambda *_: "rms", gate=lambda *_: None, goals=(("of_peer:torch", 1.0),), peers=peers)
    monkeypatch.setattr(benching, "distance", lambda *_: None)
    row = measure(bench, Options(CPU), CEILINGS)
    assert [[thunk() for thunk in thunks] for thunks in placed[0]] == [["rms"], ["near"]]
    assert row["ours"]["us"] == 10.1
    assert row["ours"]["of_floor"] == pytest.approx(row["floor_us"] / 10.1)
    assert row["peers"]["torch.compile"]["us"] == 10.2
    assert row["peers"]["torch.compile"]["pair"] == {
        "ratio": 1.01, "low": 1.005, "high": 1.015, "placings": 12, "rounds": 6
    }  # fmt: skip
    assert "pair" not in row["peers"]["torch"]
    assert target(bench.goals[0], row, {}) == "≥ 100% of torch's rate: 101.0% (100.5% to 101.5%), reached"
    assert "in turn 101.00% (100.50% to 101.50%) of ours" in program.line(row)
    monkeypatch.setattr(run, "measured_in_turn", lambda *_, **__: None)
    row = measure(bench, Options(CPU), CEILINGS)
    assert "cannot be captured" in row["peers"]["torch.compile"]["not_paired"]
    assert target(bench.goals[0], row, {}) == "≥ 100% of torch's rate: 104%, reached"


def test_a_target_that_was_measured_in_turn_is_judged_by_its_interval() -> None:
    cell = {"us": 9.99, "pair": {"ratio": 0.999, "low": 0.997, "high": 1.001, "placings": 12, "rounds": 6}}
    row = {"op": "o", "name": "n", "ours": {"us": 10.0}, "peers": {"torch.compile": cell, "torch": {"us": 30.0}}}
    goal = ("of_peer:torch.compile", 1.0)
    assert target(goal, row, {}) == "≥ 100% of torch.compile's rate: 99.9% (99.7% to 100.1%), level"
    cell["pair"] = {"ratio": 0.99, "low": 0.98, "high": 0.995}
    assert target(goal, row, {}) == "≥ 100% of torch.compile's rate: 99.0% (98.0% to 99.5%), **missed**"
    del cell["pair"]  # a result from before pairs were measured
    assert target(goal, row, {}) == "≥ 100% of torch.compile's rate: 100%, **missed**"


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
    assert "ceilings of the others: copy gb s 2,200." in told
    assert "Marked ²: measured on 2026-02-02 in another run, whose ceilings were copy gb s 3,300." in told


def test_a_page_marks_what_only_an_earlier_run_has() -> None:
    before = _result("one", 44.0, "2026-01-01")
    before["results"][0]["peers"] = {"mlx": {"us": 22.0}, "torch": {"us": 33.0}}
    before["results"] += _result("left", 55.0, "2026-01-01")["results"]
    result = _result("one", 11.0, "2026-02-02")
    result["results"][0]["peers"] = {"mlx": {"error": "no end"}, "torch": {"us": 12.1}}
    told = page(earlier(result, before))
    assert "| rms_norm | one | 11.0 |" in told
    assert "torch 12.1 (1.10); mlx ³ 22.0 (2.00)" in told
    assert "| rms_norm | left ³ | 55.0 |" in told
    assert "Marked ³: from an earlier run, of 2026-01-01" in told
    result["results"][0]["peers"] = {"mlx": {"us": 13.2}}
    assert "mlx 13.2 (1.20)" in page(earlier(result, before))


def test_a_page_says_how_verdicts_are_reached_where_there_are_pairs() -> None:
    result = _result("one", 11.0, "2026-01-01")
    assert "in turn" not in page(result)
    row = result["results"][0]
    row["goals"] = [["of_peer:torch", 1.0]]
    row["peers"] = {"torch": {"us": 11.0, "pair": {"ratio": 1.0, "low": 0.999, "high": 1.001}}}
    told = page(result)
    assert "at most half a per cent wide" in told
    assert "≥ 100% of torch's rate: 100.0% (99.9% to 100.1%), level" in told


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


SAID = {"us": 7.0, "low_us": 6.0, "high_us": 8.0, "samples": 3, "method": "eval", "version": "0", "device": "gpu"}


def test_a_page_has_what_mlx_was_timed_at_by_itself_and_keeps_what_it_had(tmp_path: Path) -> None:
    result = _result("one", 14.0, "2026-01-01")
    found = {"found": {"rms_norm/one": SAID, "rms_norm/not-here": SAID}}
    assert "mlx 7.0 (0.50)" in page(with_twins(result, found))
    kept = with_twins(with_twins(result, found), {"found": {"rms_norm/one": {"error": "no end"}}})
    assert "mlx 7.0 (0.50)" in page(kept)
    assert "mlx: no end" in page(with_twins(result, {"found": {"rms_norm/one": {"error": "no end"}}}))
    paths = {name: tmp_path / f"{name}.json" for name in ("result", "beside", "mlx", "joined")}
    for name, value in (("result", result), ("beside", _result("other", 22.0, "2026-01-01")), ("mlx", found)):
        paths[name].write_text(json.dumps(value))
    given = ["--beside", str(paths["beside"]), "--mlx", str(paths["mlx"]), "--joined", str(paths["joined"])]
    assert write_page([str(paths["result"]), str(tmp_path / "page.md"), *given]) == 0
    joined = json.loads(paths["joined"].read_text())
    assert [row["name"] for row in joined["results"]] == ["one", "other"]
    assert page(joined) == (tmp_path / "page.md").read_text()


def test_a_target_of_the_floor_shows_what_a_plain_read_reaches() -> None:
    row = _result("one", 14.0, "2026-01-01")["results"][0]
    row["ours"]["of_floor"], row["peers"] = 0.36, {"plain read": {"us": 13.0, "of_floor": 0.37}}
    assert target(["of_floor", 0.6], row, {}) == "≥ 60%: 36% (plain read 37%), **missed**"
    row["peers"] = {"other": {"us": 13.0, "of_floor": 0.37}}
    assert target(["of_floor", 0.6], row, {}) == "≥ 60%: 36%, **missed**"


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
