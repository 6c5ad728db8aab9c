"""Batch sizes are found by few runs of many and many of few; what is said rests on the last round alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rocmend.bench.calibration import Beginning, Calibration, evidence_of
from rocmend.bench.case import Case
from rocmend.bench.llama.build import Build, Help
from rocmend.bench.llama.calibrate import SIZES, Calibrator, Options
from rocmend.bench.measure import Effort
from rocmend.bench.session import Block, Prepared, Session, Subject
from rocmend.bench.suites.llama import QUICK, STANDARD
from rocmend.core.errors import UsageError
from rocmend.core.verdict import Verdict

CASE = Case("llama/m/pp2048", "llama", {"prompt": 2048, "generate": 0, "depth": 0}, "tok/s", 2048, "pp2048")
HELP = Help({"-m": "", "-b": "", "-ub": ""}, {"-ub": "512", "-b": "2048"})
Fault = Callable[[int], Block | None]


class _Simulated(Session):
    """A size whose starts differ from each other by noise; repetitions of one start hardly do."""

    def __init__(self, options: Options, speeds: dict[int, float], draw: random.Random, fault: Fault) -> None:
        self.size = options.get("ubatch", 512)
        self._seconds, self._draw, self._fault = 1 / speeds.get(self.size, 1.0), draw, fault

    def prepare(self, case: Case) -> Prepared:
        del case
        return Prepared(Verdict.PASS, subject=Subject("gfx1151", "ROCm0", "Radeon"))

    def block(self, case: Case, time_s: float, least: int = 1) -> Block:
        del case, time_s
        start = self._seconds * (1 + self._draw.gauss(0, 0.02))
        return self._fault(self.size) or Block(tuple(start * (1 + self._draw.gauss(0, 0.002)) for _ in range(least)))

    def close(self) -> None:
        """Nothing runs."""


def found(
    speeds: dict[int, float],
    seed: int = 1,
    effort: Effort = STANDARD,
    *,
    fault: Fault = lambda _size: None,
    build_help: Help = HELP,
    sizes: tuple[int, ...] = SIZES,
) -> Calibration | None:
    draw = random.Random(seed)  # noqa: S311  it draws times
    beginning = Beginning(("rocm",), effort, (), lambda _found: None, lambda _text: None, lambda: False)
    build = Build("", Path("llama-bench"), build_help)
    return Calibrator(
        "rocm", CASE, build, sizes, lambda options, _: _Simulated(options, speeds, draw, fault), beginning
    ).find()


@pytest.mark.parametrize("effort", [QUICK, STANDARD])
def test_of_sizes_that_are_alike_the_default_stays(effort: Effort) -> None:
    chosen = [one.chosen for seed in range(100) if (one := found({}, seed, effort)) is not None]
    assert len(chosen) == 100
    assert sum(one != {"ubatch": 512} for one in chosen) <= 5


def test_a_size_that_is_a_tenth_faster_is_found() -> None:
    speeds = {64: 0.5, 128: 0.7, 256: 0.9, 2048: 1.1}
    chosen = [one.chosen for seed in range(100) if (one := found(speeds, seed)) is not None]
    assert sum(one == {"ubatch": 2048} for one in chosen) >= 90


def test_a_larger_size_is_taken_only_where_it_is_shown_to_be_faster_than_a_smaller_one() -> None:
    one = found({64: 0.5, 128: 0.6, 256: 0.7, 1024: 1.3, 2048: 1.302})
    assert one is not None
    assert one.chosen == {"ubatch": 1024}
    by = {item.name: item for item in one.tried}
    assert {name for name, item in by.items() if item.low is not None} >= {"512", "1024", "2048"}
    assert (by["64"].low, by["64"].rounds, by["1024"].rounds) == (None, 1, 3)


def test_a_size_that_fails_is_out_and_one_that_resets_the_gpu_ends_it() -> None:
    oom = Block((), Verdict.OOM, "failed to allocate")
    one = found({64: 0.5, 1024: 1.3}, fault=lambda size: oom if size in {512, 2048} else None)
    assert one is not None
    assert one.chosen["ubatch"] == 1024
    assert one.compared_with != "512"
    assert "512 oom" in one.text
    reset = Block((), Verdict.GPU_RESET, "the GPU was reset", quarantine="the GPU was reset")
    started: list[int] = []

    def resets(size: int) -> Block | None:
        started.append(size)
        return reset if size == 128 else None

    one = found({}, fault=resets)
    assert one is not None
    assert (one.chosen, one.quarantine) == ({}, "the GPU was reset")
    assert started[-1] == 128
    assert not any(item.figure for item in one.tried)
    passed = Block((1.0,), quarantine="the GPU was reset")  # its figures are there, and may not be taken
    started.clear()
    last = found({}, fault=lambda size: passed if started.append(size) or started.count(512) == 4 else None)  # type: ignore[func-returns-value]
    assert last is not None
    assert (last.chosen, last.text, last.quarantine) == ({}, "stopped: the GPU was reset", "the GPU was reset")
    everything = found({}, fault=lambda _size: oom)
    assert everything is not None
    assert (everything.chosen, everything.text) == ({}, "no size gave a figure")
    assert evidence_of(everything, "bench-llama-1", "llama", {}).verdict is Verdict.OOM
    assert [one.verdict for one in (found({}, build_help=Help({"-m": ""})), found({})) if one] == [
        Verdict.UNSUPPORTED,
        Verdict.PASS,
    ]


def test_few_sizes_are_tried_with_a_small_logical_batch_too_and_those_above_the_prompt_not_at_all() -> None:
    started: set[int] = set()
    one = found({1024: 1.3}, fault=started.add, sizes=(1024, 4096))
    assert one is not None
    assert started == {512, 1024}
    by = {item.name: item for item in one.tried}
    assert [*by] == ["512", "1024", "1024 (b=1024)", "4096"]
    assert by["1024 (b=1024)"].comparison is not None
    assert (by["4096"].verdict, by["4096"].rounds, "room for 2048 tokens" in by["4096"].reason) == (
        Verdict.UNSUPPORTED,
        0,
        True,
    )
    assert "4096 left out, the context has no room for it" in one.text


def test_what_was_found_is_taken_again_only_where_it_was_asked_for_so() -> None:
    one = found({64: 0.5, 1024: 1.3})
    assert one is not None
    failed = msgspec.structs.replace(one, verdict=Verdict.INFRA, chosen={})

    def before(kept: Calibration, sizes: tuple[int, ...] = SIZES, measured: str = "") -> Calibration | None:
        begin = Beginning(
            ("rocm",), STANDARD, (kept,), lambda _: None, lambda _: None, lambda: False, measured=(measured,)
        )
        return begin.found_before("rocm", CASE.id, sizes)

    assert before(one) == one
    assert before(one, (64, 128)) is None
    assert before(failed) is None
    assert before(failed, measured="rocm") == failed  # all figures of a setting have the same batch size
    with pytest.raises(UsageError, match="batch size was looked for among others"):
        before(one, (64, 128), "rocm")
