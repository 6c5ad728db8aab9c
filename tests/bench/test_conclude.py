"""Statements about figures hold where the figures carry them, and nowhere else."""

from __future__ import annotations

import random

import msgspec
import pytest

from rocmend.bench.case import Case, Setting
from rocmend.bench.compare import compared_in
from rocmend.bench.conclude import Conclusion, conclusions, fit
from rocmend.bench.records import BenchRun, Measured
from rocmend.bench.session import Prepared
from rocmend.bench.stats import Difference, summarize
from rocmend.cli.views.bench import statements
from rocmend.core.verdict import Verdict


def _result(
    setting: str, test: str, depth: int, speed: float, *, model: str = "7B", size: float = 0.0, noise: float = 0.01
) -> Measured:
    """Return a result of this speed, with 1 % of noise."""
    drawn = random.Random(f"{setting} {test} {depth} {model}")  # noqa: S311  noise
    blocks = tuple(tuple(100 / speed * drawn.lognormvariate(0, noise) for _ in range(5)) for _ in range(8))
    parameters = {"model": model, "prompt": 0, "generate": 0, test: 100, "depth": depth}
    if size:
        parameters["size_bytes"] = size
    case = Case(f"llama/{model}/{test}/{depth}", "llama", parameters, "tok/s", 100.0)
    prepared = Prepared(Verdict.PASS)
    summary = summarize(blocks)
    return Measured(case, Verdict.PASS, "", prepared, blocks, summary, "2026-01-01", 1.0, Setting(setting))


def _topic(found: list[Conclusion], topic: str) -> list[str]:
    return [one.text for one in found if one.topic == topic]


def test_the_best_for_prompts_and_for_generation_and_where_they_cross() -> None:
    rocm = {0: (900, 48.0), 8192: (700, 43.0), 32768: (400, 36.0)}
    vulkan = {0: (1100, 52.0), 8192: (690, 43.1), 32768: (200, 31.0)}
    results = [
        _result(name, test, depth, speeds[number])
        for name, depths in (("rocm", rocm), ("vulkan", vulkan))
        for depth, speeds in depths.items()
        for number, test in enumerate(("prompt", "generate"))
    ]
    found = conclusions(results)
    best = _topic(found, "best")
    assert "7B: for reading a prompt with an empty cache, vulkan is the fastest" in best[0]
    assert "7B: for generating with an empty cache, vulkan is the fastest" in best[1]
    assert "with 32,768 tokens in the cache, rocm is the fastest" in best[2]
    assert "100 % ahead" in best[2] or "99 % ahead" in best[2] or "101 % ahead" in best[2]
    crossing = _topic(found, "crossing")
    assert crossing[-1] == ("7B: for generating, rocm overtakes vulkan between 0 and 32,768 tokens in the cache.")
    assert all(one.evidence for one in found)


def test_prompts_of_two_lengths_are_not_compared_with_each_other() -> None:
    results = []
    for tokens, speed in ((512, 900.0), (2048, 1500.0)):
        for setting, factor in (("rocm", 1.0), ("vulkan", 0.5)):
            one = _result(setting, "prompt", 0, speed * factor)
            parameters = {**one.case.parameters, "prompt": tokens}
            case = msgspec.structs.replace(one.case, id=f"{one.case.id}/{tokens}", parameters=parameters)
            results.append(msgspec.structs.replace(one, case=case))
    best = _topic(conclusions(results), "best")
    assert [text.partition(" for ")[0] for text in best] == ["7B, 512 tokens:", "7B, 2,048 tokens:"]
    assert all("rocm is the fastest" in text and "ahead of vulkan" in text for text in best)


def test_equal_settings_are_not_ranked() -> None:
    (found,) = conclusions([_result("one", "generate", 0, 50.0), _result("other", "generate", 0, 50.0)])
    assert not found.shown
    assert "no difference is shown between" in found.text


def test_the_best_of_both_is_told_apart() -> None:
    speeds = (("amdvlk", "prompt", 1200.0), ("amdvlk", "generate", 48.0), ("radv", "prompt", 900.0))
    results = [_result(setting, test, 0, speed) for setting, test, speed in speeds]
    found = conclusions([*results, _result("radv", "generate", 0, 53.0)])
    assert any("(amdvlk) is not the best one for generation (radv)" in text for text in _topic(found, "best"))


def test_decay_is_a_line_of_the_time() -> None:
    results = [_result("rocm", "generate", depth, 1 / (0.02 + depth * 1e-6)) for depth in (0, 4096, 16384, 65536)]
    (text,) = _topic(conclusions(results), "decay")
    assert "77 % slower at 65,536 tokens than at 0" in text
    assert "doubles after 20,000 tokens" in text


def test_what_is_no_line_is_not_called_one() -> None:
    results = [_result("rocm", "generate", depth, speed) for depth, speed in ((0, 50.0), (4096, 20.0), (8192, 45.0))]
    (text,) = _topic(conclusions(results), "decay")
    assert "a straight line does not describe it" in text


def test_noise_is_no_decay() -> None:
    results = [_result("rocm", "generate", depth, 50.0, noise=0.5) for depth in (0, 4096, 8192)]
    (found,) = [one for one in conclusions(results) if one.topic == "decay"]
    assert not found.shown
    assert "it is not shown that it is slower at 8,192 tokens than at 0" in found.text


def test_smaller_is_faster_with_a_bandwidth() -> None:
    sizes = {"1B": 0.6e9, "7B": 3.8e9, "30B": 17e9}
    results = [_result("rocm", "generate", 0, 200e9 / size, model=name, size=size) for name, size in sizes.items()]
    (text,) = _topic(conclusions(results), "size")
    assert "smaller is faster" in text
    assert "200 GB of weights a second" in text or "199 GB" in text or "201 GB" in text


def test_a_fit_goes_through_a_line() -> None:
    line = fit([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)])
    assert (line.start, line.slope, line.residual) == pytest.approx((1.0, 2.0, 0.0), abs=1e-12)


def test_results_of_other_suites_say_nothing() -> None:
    case = Case("gemm/a", "gemm", {}, "TFLOPS", 1.0)
    blocks = ((1.0,) * 3,) * 3
    other = Measured(case, Verdict.PASS, "", Prepared(Verdict.PASS), blocks, summarize(blocks), "2026-01-01", 1.0)
    assert conclusions([other]) == []


def _noisy_run(seed: int, suite: str = "llama") -> BenchRun:
    """Return a run of five settings that do not differ, three blocks each: by themselves, some would seem to."""
    drawn = random.Random(seed)  # noqa: S311  noise
    results = []
    for depth in (0, 4096):
        case = Case(f"{suite}/{depth}", suite, {"model": "7B", "prompt": 512, "depth": depth}, "tok/s", 512.0)
        for setting in ("one", "two", "three", "four", "five"):
            blocks = tuple((drawn.lognormvariate(0, 0.3),) for _ in range(3))
            made = Measured(
                case, Verdict.PASS, "", Prepared(Verdict.PASS), blocks, summarize(blocks), "2026-01-01", 1.0
            )
            results.append(msgspec.structs.replace(made, setting=Setting(setting)))
    settings = tuple(dict.fromkeys(item.setting.id for item in results))
    return BenchRun("", suite, "", tuple(map(Setting, settings)), tuple(results))


def test_a_statement_never_says_other_than_the_table() -> None:
    stated = 0
    for seed in range(200):
        run = _noisy_run(seed)
        table = {f"{case} @ {setting}": one for (case, setting), one in compared_in(run).items()}
        found = conclusions(run.results)
        stated += any(one.shown for one in found)
        for said in (one for one in found if one.shown and one.topic == "best"):
            leader, second = said.evidence
            if second.endswith("@ one"):
                assert table[leader].difference is Difference.FASTER, said.text
            if leader.endswith("@ one"):
                assert table[second].difference is Difference.SLOWER, said.text
    assert stated <= 200 * 0.1  # the table's comparisons, and those that statements add, are wrong in 5 of 100 each


def test_settings_over_all_cases_are_judged_together() -> None:
    stated = sum(any(one.shown for one in statements(_noisy_run(seed, "nn"))) for seed in range(200))
    assert stated <= 200 * 0.05 + 5


def test_the_highest_figure_is_not_called_the_fastest_where_another_may_be_as_fast() -> None:
    results = [
        _result("uneven", "generate", 0, 45.0, noise=0.4),
        _result("slow", "generate", 0, 48.0),
        _result("fast", "generate", 0, 50.0),
    ]
    (found,) = conclusions(results)
    assert not found.shown
    assert "no difference is shown between" in found.text
    assert "uneven" in found.text


def test_single_figures_are_told_as_what_they_are() -> None:
    results = []
    for setting, depth, speed in (("rocm", 0, 50.05), ("rocm", 4096, 40.1), ("rocm", 16384, 31.54), ("vk", 0, 60.0)):
        blocks = ((100 / speed,),)
        one = _result(setting, "generate", depth, speed)
        results.append(msgspec.structs.replace(one, blocks=blocks, summary=summarize(blocks)))
    found = conclusions(results)
    (best,) = _topic(found, "best")
    assert "vk has the highest figure: 60 tok/s, 20 % ahead of rocm; by single figures" in best
    (decay,) = _topic(found, "decay")
    assert "is 37 % slower at 16,384 tokens than at 0 (50.05 and 31.54 tok/s; by single figures" in decay
    assert not any(one.shown for one in found)
