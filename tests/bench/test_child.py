"""How runs are timed in the child, by a clock that only the runs move."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rocmend.bench import child
from rocmend.bench.workload import Workload

pytestmark = pytest.mark.cpu


class _Clock:
    """Stands in for the module ``time``."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


class _Timed(Workload):
    """Each run takes the next of these times."""

    def __init__(self, clock: _Clock, seconds: Iterator[float], wrong: str = "") -> None:
        self.clock, self.seconds, self._wrong, self.runs = clock, seconds, wrong, 0

    def run(self) -> None:
        self.runs += 1
        self.clock.now += next(self.seconds)

    def wrong(self) -> str:
        return self._wrong


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Clock]:
    pytest.importorskip("torch")
    made = _Clock()
    monkeypatch.setattr(child, "time", made)
    yield made
    child.release()


def ready(monkeypatch: pytest.MonkeyPatch, workload: Workload, **more: Any) -> dict[str, Any]:
    monkeypatch.setattr(child, "made", lambda *_: workload)
    return child.prepare("made", {}, "cpu", **more)


def test_the_first_run_is_told_apart_and_warming_up_ends_when_times_stay(
    clock: _Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ramp = (0.010 * 0.8**n + 0.005 for n in range(1000))
    found = ready(monkeypatch, _Timed(clock, itertools.chain([3.0], ramp)))
    assert (found["outcome"], found["first_s"], found["steady"]) == ("pass", 3.0, True)
    assert 0.05 <= found["warm_s"] < 0.3
    made = child.block(0.05, 3)
    assert made["seconds"] == pytest.approx([0.005] * len(made["seconds"]), rel=0.02)
    assert len(made["seconds"]) == pytest.approx(10, abs=1)


def test_what_never_gets_steady_ends_in_time_and_says_so(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ready(monkeypatch, _Timed(clock, (0.01 * 1.05**n for n in range(200))), warm_most_s=1.0)
    assert (found["outcome"], found["steady"]) == ("pass", False)
    assert found["warm_s"] == pytest.approx(1.0, abs=0.1)


def test_noise_is_no_trend(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = itertools.cycle((0.010, 0.0115, 0.0102, 0.0099, 0.0121, 0.0101))
    assert ready(monkeypatch, _Timed(clock, noise))["steady"] is True


def test_short_runs_are_timed_many_at_once(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = _Timed(clock, itertools.repeat(1e-5))
    ready(monkeypatch, workload)
    before = workload.runs
    made = child.block(0.02, 3)
    assert made["seconds"] == pytest.approx([1e-5] * len(made["seconds"]))
    assert (workload.runs - before) / len(made["seconds"]) >= child.SHORTEST_S / 1e-5


def test_long_runs_are_timed_once_a_block(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = _Timed(clock, itertools.repeat(4.0))
    ready(monkeypatch, workload)
    assert child.block(0.2, 3)["seconds"] == [4.0]


def test_the_first_runs_of_a_block_do_not_count(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = _Timed(clock, itertools.repeat(0.002))
    ready(monkeypatch, workload)
    cold = itertools.chain([0.05], itertools.repeat(0.002))
    workload.seconds = cold
    assert max(child.block(0.2, 3)["seconds"]) == pytest.approx(0.002)


def test_a_wrong_result_is_not_timed(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ready(monkeypatch, _Timed(clock, itertools.repeat(0.01), wrong="off by 3"))
    assert (found["outcome"], found["reason"]) == ("wrong-output", "off by 3")
    assert child.block(0.1)["outcome"] == "infra"


def test_what_fails_while_it_is_timed_says_why(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")

    class _Fails(_Timed):
        def run(self) -> None:
            super().run()
            if self.runs > 400:
                raise torch.OutOfMemoryError("out of memory")

    ready(monkeypatch, _Fails(clock, itertools.repeat(0.01)))
    found = child.block(60.0)
    assert found["outcome"] == "oom"
    assert len(found["seconds"]) > 100


def test_the_time_that_a_thread_waited_for_a_processor_is_told(
    clock: _Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for thread, waited in (("1", 0), ("2", 10_000_000)):
        (tmp_path / thread).mkdir()
        (tmp_path / thread / "schedstat").write_text(f"5 {waited} 1\n")
    monkeypatch.setattr(child, "_TASKS", str(tmp_path))

    class _Waits(_Timed):
        def run(self) -> None:
            super().run()
            (tmp_path / "2" / "schedstat").write_text(f"5 {10_000_000 + round(self.runs * 2.5e6)} 1\n")

    ready(monkeypatch, _Waits(clock, itertools.repeat(0.01)))
    assert child.block(0.2)["waited"] == pytest.approx(0.25, abs=0.03)
    monkeypatch.setattr(child, "_TASKS", str(tmp_path / "nothing"))
    assert child.block(0.2)["waited"] == 0.0


def test_a_gpu_is_timed_by_events_with_a_run_before_the_first_one(
    clock: _Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    class _Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at = clock.now

        def synchronize(self) -> None:
            """Find the work done already."""

        def elapsed_time(self, end: _Event) -> float:
            return (end.at - self.at) * 1e3

    monkeypatch.setattr(torch.cuda, "Event", _Event)
    workload = _Timed(clock, itertools.chain([0.5], itertools.repeat(1e-4)))  # the first one waits for its launch
    assert child._sample(workload.run, torch.device("cuda"), 20) == pytest.approx(1e-4)
    assert workload.runs == 21
    assert child._sample(workload.run, torch.device("cuda"), 1) == pytest.approx(1e-4)
    assert workload.runs == 22


def test_launches_that_take_as_long_as_the_runs_are_told(clock: _Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    workload = _Timed(clock, itertools.repeat(1e-5))
    monkeypatch.setattr(child, "synchronize", lambda _device: None)
    child._Ready.inner = 200
    assert child._launch_share(workload, torch.device("cuda")) == 1.0

    def waits(_device: torch.device) -> None:
        clock.now += 0.006  # the GPU is still at work when all is launched

    monkeypatch.setattr(child, "synchronize", waits)
    assert child._launch_share(workload, torch.device("cuda")) == pytest.approx(0.25)
    assert child._launch_share(workload, torch.device("cpu")) == 0.0
