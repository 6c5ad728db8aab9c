"""Conclusions from made-up evidence, that of the Strix Halo investigation among it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from rocmend.core.evidence import Evidence, PhaseSpan
from rocmend.core.verdict import Verdict
from rocmend.kb.load import load_entries
from rocmend.lab.conclude import Conclusion, conclude
from rocmend.lab.experiment import Experiment
from rocmend.lab.load import load_experiment
from rocmend.lab.outcome import Outcomes, collect
from rocmend.lab.service import predictions_of, trial_named
from rocmend.store.store import Store

EXAMPLES = Path(__file__).parents[2] / "src" / "rocmend" / "examples" / "experiments"


@pytest.fixture
def halo() -> Experiment:
    return load_experiment(EXAMPLES / "strix-halo-load-hang.toml")


def _add(store: Store, experiment: Experiment, name: str, verdict: Verdict, phase: str = "", *, times: int = 1) -> None:
    trial = trial_named(experiment, name)
    phases = ["load-tensors", "async-uploads", "graph-reserve", "reserved"]
    reached = phases[: phases.index(phase) + 1] if phase else phases
    timeline = tuple(PhaseSpan(item, number * 100.0, number * 100.0 + 100) for number, item in enumerate(reached))
    for number in range(times):
        store.add(
            Evidence(
                "trial",
                name,
                "identity",
                verdict,
                "because",
                f"2026-01-01T00:00:{number:02d}Z",
                1000.0,
                settings=dict(trial.settings),
                timeline=timeline,
                last_phase=phase or "reserved",
                detail={"definition": trial.definition},
                group=experiment.id,
            )
        )


def _found(experiment: Experiment, store: Store) -> tuple[Outcomes, Conclusion]:
    outcomes = collect(experiment, store, predictions_of(experiment, load_entries()))
    return outcomes, conclude(experiment, outcomes.outcomes, file="x.toml")


def _as_reported(store: Store, halo: Experiment) -> None:
    _add(store, halo, "baseline", Verdict.HANG, "async-uploads")
    for name in ("sdma-off", "minimal-image", "gfx1100-kernels", "gfx1100-no-flash-attention"):
        _add(store, halo, name, Verdict.HANG, "graph-reserve")


def test_says_what_the_investigation_found(halo: Experiment, store: Store) -> None:
    _as_reported(store, halo)
    outcomes, conclusion = _found(halo, store)
    assert conclusion.sentence == (
        "HSA_ENABLE_SDMA=0 shifts the hang from async-uploads to graph-reserve; "
        "image, gfx override and flash attention make no difference."
    )
    assert conclusion.status == "blocked"
    assert conclusion.status_text.startswith(
        "None of the 5 trials that ran passed. The furthest came to graph-reserve ("
    )
    assert conclusion.untried == ("mmap", "cwsr")
    assert "cwsr-off" in conclusion.next[0]
    told = [told for item in outcomes.outcomes if item.runs for told in item.told]
    assert len(told) == 4
    assert all(item.came_true for item in told)


def test_a_wrong_prediction_is_held_against_the_entry(halo: Experiment, store: Store) -> None:
    _add(store, halo, "baseline", Verdict.PASS)
    _, conclusion = _found(halo, store)
    assert any(
        "llama-cpp-async-upload-hang predicted hang after async-uploads for baseline, and it was pass" in step
        for step in conclusion.next
    )


def test_entries_say_nothing_of_another_image_target_or_release(halo: Experiment) -> None:
    knowledge = load_entries()
    found = predictions_of(halo, knowledge)
    assert [item.entry for item in found["baseline"]] == ["llama-cpp-async-upload-hang"]
    assert found["therock-nightly"] == ()  # what ROCm it holds is not known
    for change in ({"gfx": "gfx1100"}, {"workload": "pytorch"}, {"rocm": "7.2"}, {"rocm": ""}):
        other = msgspec.structs.replace(halo, experiment=msgspec.structs.replace(halo.experiment, **change))
        assert predictions_of(other, knowledge)["baseline"] == ()


def test_a_factor_that_matters_only_beside_another_is_said_so(halo: Experiment, store: Store) -> None:
    _add(store, halo, "baseline", Verdict.HANG, "async-uploads")
    _add(store, halo, "cwsr-off", Verdict.HANG, "async-uploads")
    _add(store, halo, "sdma-off", Verdict.HANG, "graph-reserve")
    _add(store, halo, "cwsr-and-sdma-off", Verdict.PASS)
    _, conclusion = _found(halo, store)
    assert "amdgpu.cwsr_enable=0 fixes the hang after graph-reserve: it passes (beside HSA_ENABLE_SDMA=0)" in (
        conclusion.sentence
    )
    assert "saving of waves makes no difference by itself" in conclusion.sentence
    assert conclusion.status == "works"
    assert conclusion.no_difference == ()
    assert any("lab minimize x.toml baseline cwsr-and-sdma-off" in step for step in conclusion.next)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (
            (Verdict.HANG, "async-uploads"),
            (Verdict.CRASH, "graph-reserve"),
            "turns the hang after async-uploads into crash after",
        ),
        ((Verdict.PASS, ""), (Verdict.HANG, "graph-reserve"), "breaks it: hang after graph-reserve instead of a pass"),
        ((Verdict.CRASH, "graph-reserve"), (Verdict.PASS, ""), "fixes the crash after graph-reserve: it passes"),
        ((Verdict.WRONG_OUTPUT, ""), (Verdict.SLOW, ""), "turns the wrong-output into slow"),
    ],
)
def test_words_for_each_change(
    before: tuple[Verdict, str], after: tuple[Verdict, str], text: str, halo: Experiment, store: Store
) -> None:
    _add(store, halo, "baseline", *before)
    _add(store, halo, "sdma-off", *after)
    assert f"HSA_ENABLE_SDMA=0 {text}" in _found(halo, store)[1].sentence


def test_few_flaky_runs_do_not_tell_and_many_do(halo: Experiment, store: Store) -> None:
    _add(store, halo, "baseline", Verdict.HANG, "async-uploads", times=3)
    _add(store, halo, "baseline", Verdict.PASS, times=1)
    _add(store, halo, "sdma-off", Verdict.PASS, times=3)
    conclusion = _found(halo, store)[1]
    assert conclusion.unclear == ("sdma",)
    assert "too few runs to tell whether the copy engine makes a difference" in conclusion.sentence
    _add(store, halo, "baseline", Verdict.HANG, "async-uploads", times=12)
    _add(store, halo, "sdma-off", Verdict.PASS, times=12)
    conclusion = _found(halo, store)[1]
    assert conclusion.unclear == ()
    assert "HSA_ENABLE_SDMA=0 changes how often it passes from 1 of 16 (6 %" in conclusion.sentence


def test_runs_that_do_not_count_leave_a_trial_not_run(halo: Experiment, store: Store) -> None:
    _add(store, halo, "baseline", Verdict.INFRA)
    outcomes, conclusion = _found(halo, store)
    assert outcomes.outcomes[0].void == "because"
    assert conclusion.status == "nothing run"
    assert conclusion.sentence == ""
    assert "baseline could not be run: because" in conclusion.next
