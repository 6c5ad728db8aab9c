"""``rocmend bench mlx``: its cases, what it says, and a tiny model that is measured for real."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from rocmend.bench.case import DEFAULT, Case, Setting
from rocmend.bench.records import Measured
from rocmend.bench.session import Prepared
from rocmend.bench.stats import summarize
from rocmend.bench.suite import Bound
from rocmend.bench.suites import mlx as suite
from rocmend.bench.suites.mlx import Request, conclusions, model_cases
from rocmend.cli.views.bench_curves import curves
from rocmend.core.verdict import Verdict
from rocmend.mlx.programs import SHAPES
from rocmend.report.document import Plot

EXECUTED = {
    "executor": "graph", "accelerated": False, "why_not_accelerated": "no C compiler was found", "plans": 4,
    "planned_runs": 400, "captures": 0, "replays": 0,
    "why_not_captured": ["Scatter depends on an integer that changes from step to step"],
}  # fmt: skip


def test_the_shapes_are_those_of_the_program() -> None:
    program = Path(suite.__file__).parents[2] / "mlx" / "programs" / "speed.py"
    tree = ast.parse(program.read_text(encoding="utf-8"))
    found = next(
        node.value for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "CONFIGS"
    )
    assert isinstance(found, ast.Dict)
    assert sorted(ast.literal_eval(key) for key in found.keys if key is not None) == list(SHAPES)


def test_there_is_a_prompt_and_a_generation_for_each_depth() -> None:
    cases = model_cases(Request(shape="qwen3-0.6b", depths=(0, 2048)))
    assert [(case.id, case.work) for case in cases] == [
        ("mlx/qwen3-0.6b/pp512/d0", 512.0),
        ("mlx/qwen3-0.6b/tg128/d0", 128.0),
        ("mlx/qwen3-0.6b/pp512/d2048", 512.0),
        ("mlx/qwen3-0.6b/tg128/d2048", 128.0),
    ]
    assert model_cases(Request(model="/home/ada/models/Qwen3-4bit/"))[0].id == "mlx/models/Qwen3-4bit/pp512/d0"
    assert model_cases(Request(shape="tiny", layers=1))[0].id == "mlx/tiny-1-layers/pp512/d0"


def _measured(case: Case, seconds: float, detail: dict[str, Any], setting: Setting = DEFAULT) -> Measured:
    blocks = ((seconds,),) * 3
    prepared = Prepared(Verdict.PASS, detail=detail)
    bounds = (Bound(400.0, suite.COPY),) if "executed" in detail else ()
    return Measured(case, Verdict.PASS, "", prepared, blocks, summarize(blocks), "", 0.0, setting, bounds)


def test_it_says_how_steps_were_computed_and_how_near_the_bound_they_are() -> None:
    prompt, generation = model_cases(Request(shape="qwen3-0.6b"))
    detail = {"executed": EXECUTED, "record_ms": 1.25, "hand_over_ms": 0.75}
    said = conclusions([_measured(prompt, 0.5, {}), _measured(generation, 0.64, detail)])
    assert said[0].text == (
        "Prompt 1,024.0 tok/s, generation 200.0 tok/s (50 % of reading weights and cache at copy speed)."
    )
    assert "Executor graph: 4 plans, 0 captured graphs with 0 replays (Scatter depends on an integer" in said[1].text
    assert "recorded in Python (no C compiler was found)" in said[1].text
    assert "1.25 ms to record, 0.75 ms to hand over" in said[1].text


def test_speed_is_drawn_over_the_depth_and_the_first_depth_is_the_answer() -> None:
    cases = model_cases(Request(shape="qwen3-0.6b", depths=(0, 2048)))
    results = [_measured(case, 0.5 + 0.1 * number, {}) for number, case in enumerate(cases)]
    prompt, generation = curves(results)
    assert isinstance(prompt, Plot)
    assert isinstance(generation, Plot)
    assert [point.x for point in prompt.series[0].points] == [0, 2048]
    assert [point.x for point in generation.series[0].points] == [512, 2560]
    assert prompt.caption == "qwen3-0.6b, reading a prompt"
    assert conclusions(results[::-1])[0].text.startswith("Prompt 1,024.0 tok/s, generation 213.3 tok/s")


@pytest.fixture
def workload() -> Any:
    pytest.importorskip("torch")
    from rocmend.mlx import activate

    activate()
    pytest.importorskip("mlx_lm")
    from rocmend.bench.workloads import mlx

    mlx._kept.clear()
    yield mlx
    mlx._kept.clear()


def _made(workload: Any, task: str, depth: int = 0) -> Any:
    import torch

    parameters = {"shape": "tiny", "task": task, "depth": depth, "prompt": 6, "generate": 3}
    return workload.make(parameters, torch.device("cpu"))


@pytest.mark.cpu
@pytest.mark.filterwarnings("ignore")
def test_a_tiny_model_is_timed_again_and_again_from_the_same_place(
    workload: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "STEPS", 1)
    sizes = {}
    for depth in (0, 8):
        prompt = _made(workload, workload.PROMPT, depth)
        for _ in range(2):
            prompt.run()
            assert [one.offset for one in prompt._cache] == [depth + 6] * 2
        assert prompt.wrong() == ""
        generation = _made(workload, workload.GENERATION, depth)
        for _ in range(2):
            generation.run()
            assert [one.offset for one in generation._cache] == [depth + 5 + 3] * 2
        assert generation.wrong() == ""
        sizes[depth] = generation.detail()["cache_bytes"]
        assert generation.detail()["executed"]["why_not_captured"]
    # keys and values of 8 tokens more: 2 layers, 2 heads of 32, in bfloat16
    assert sizes[8] - sizes[0] == 8 * (2 * 2 * 2 * 32 * 2)


@pytest.mark.cpu
@pytest.mark.filterwarnings("ignore")
def test_a_model_that_computes_something_else_for_single_tokens_is_found(workload: Any) -> None:
    run = _made(workload, workload.PROMPT)
    model = run._model

    class Wrong:
        layers = model.layers

        def __call__(self, tokens: Any, **more: Any) -> Any:
            return model(tokens * 0 + 3 if tokens.shape[1] == 1 else tokens, **more)

    run._model = Wrong()
    run.run()
    assert "one by one differ" in run.wrong()
    run._model = model
    model.model.norm.weight = model.model.norm.weight * float("nan")
    assert "are NaN" in run.wrong()


@pytest.mark.cpu
@pytest.mark.filterwarnings("ignore")
def test_a_cache_that_cannot_be_cut_back_is_restored(workload: Any) -> None:
    import mlx.core as mx
    from mlx_lm.models.cache import ArraysCache, CacheList, KVCache, RotatingKVCache

    def tokens(count: int, value: float) -> Any:
        return mx.full((1, 1, count, 4), value)

    cache = [RotatingKVCache(max_size=4), CacheList(KVCache(), ArraysCache(1))]
    cache[0].update_and_fetch(tokens(1, 1.0), tokens(1, 1.0))
    cache[1][0].update_and_fetch(tokens(2, 2.0), tokens(2, 2.0))
    cache[1][1][0] = mx.array([3.0])
    saved = workload._saved(cache)
    for _ in range(2):
        for number in range(6):  # more than it holds: it goes round, and writes over what was there
            cache[0].update_and_fetch(tokens(1, 5.0 + number), tokens(1, 5.0))
        cache[1][0].update_and_fetch(tokens(3, 6.0), tokens(3, 6.0))
        cache[1][1][0] = mx.array([7.0])
        workload._rewind(cache, saved)
        assert cache[0].offset == 1
        assert cache[0].keys[0, 0, 0, 0].item() == 1.0
        assert (cache[1][0].offset, cache[1][1][0].item()) == (2, 3.0)
