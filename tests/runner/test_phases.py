from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.core.errors import DataError, UsageError
from rocmend.runner.phases import PhaseTracker, known_sets, load_phases, slow_first_runs

LOGS = Path(__file__).parent / "logs"
REAL_LOGS = Path(__file__).resolve().parents[3] / "shared" / "fixtures"

LOAD = ["load-metadata", "load-tensors", "offload", "async-uploads", "context", "kv-cache", "reserve", "graph-reserve"]


def phases_of(name: str, data: bytes) -> list[str]:
    tracker = PhaseTracker(load_phases(name))
    return [mark.phase.name for mark in tracker.feed(data)]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (
            "llama-b2000.log",
            ["backend-init", "start-up", "load-metadata", "load-tensors", "offload", "context", "kv-cache", "reserve",
             "reserved", "generate", "done"],
        ),
        (
            "llama-b5400.log",
            ["backend-init", "start-up", "load-model", "load-metadata", "load-tensors", "offload", "context",
             "kv-cache", "reserve", "reserved", "warm-up", "slots", "ready"],
        ),
        (
            "llama-b11400.log",
            ["start-up", "load-model", "fit-params", "load-metadata", "load-tensors", "context", "kv-cache", "reserve",
             "graph-reserve", "reserved", *LOAD, "reserved", "warm-up", "slots", "ready", "prompt", "ready", "done"],
        ),
        ("vllm-0.6.log", ["engine-init", "load-weights", "weights-loaded", "profile", "kv-cache", "capture-graphs",
                          "captured", "ready"]),
        ("vllm-v1.log", ["platform", "engine-init", "distributed", "load-weights", "weights-loaded", "compile",
                         "profile", "kv-cache", "capture-graphs", "captured", "ready", "generate"]),
        ("inductor.log", ["dynamo", "aot", "inductor", "autotune", "triton"]),
        ("pytorch.log", ["miopen-find", "collectives", "steps"]),
        ("mlx-generate.log", ["fetch", "load", "generate", "done"]),
        ("mlx-lora.log", ["load", "train", "steps", "done"]),
    ],
)  # fmt: skip
def test_phases_of_a_log(log: str, expected: list[str]) -> None:
    name = {"llama": "llama.cpp", "inductor.log": "triton", "pytorch.log": "pytorch"}.get(
        log.partition("-")[0], log.partition("-")[0]
    )
    data = (LOGS / log).read_bytes()
    assert phases_of(name, data) == expected
    tracker = PhaseTracker(load_phases(name))
    by_line = [mark.phase.name for line in data.splitlines(keepends=True) for mark in tracker.feed(line)]
    assert by_line == expected


@pytest.mark.skipif(not REAL_LOGS.is_dir(), reason="the real logs are not here")
@pytest.mark.parametrize(("number", "uploads"), [("15", True), ("16", False)])
def test_phases_of_a_real_server(number: str, uploads: bool) -> None:
    (log,) = REAL_LOGS.glob(f"{number}-*.log")
    load = LOAD if uploads else [name for name in LOAD if name != "async-uploads"]
    fit = [name for name in load if name != "async-uploads"]
    expected = ["start-up", "load-model", "fit-params", *fit, "reserved", *load, "reserved", "warm-up", "slots"]
    assert phases_of("llama.cpp", log.read_bytes())[: len(expected)] == expected


def test_an_earlier_phase_is_passed_over_unless_it_may_come_again(tmp_path: Path) -> None:
    path = tmp_path / "set.toml"
    path.write_text(
        '[set]\ntitle = "x"\n[[phases]]\nname = "a"\nwords = ["AA"]\n'
        '[[phases]]\nname = "b"\nwords = ["BB"]\nagain = true\n'
        '[[phases]]\nname = "c"\nwords = ["CC"]\n'
    )
    tracker = PhaseTracker(load_phases(str(path)))
    assert tracker.current == "start"
    names = [mark.phase.name for mark in tracker.feed(b"AA\nBB\nCC\nAA\nBB\nAA\nCC\n")]
    assert names == ["a", "b", "c", "b", "c"]
    assert tracker.current == "c"


@pytest.mark.parametrize("name", known_sets())
def test_every_shipped_set_is_sound(name: str) -> None:
    found = load_phases(name)
    assert found.phases
    assert found.set.sources
    assert all(source.startswith("https://") for source in found.set.sources)
    assert all(phase.words and phase.silence_s > 0 for phase in found.phases)


def test_slow_first_runs_are_allowed_more_than_is_usual() -> None:
    for item in slow_first_runs().values():
        assert item.usual_s[0] < item.usual_s[1] < item.allowance_s
        assert item.source
        assert item.cache
    assert {"torch-compile", "torch-compile-max-autotune", "aiter-jit", "triton", "tunableop"} <= set(slow_first_runs())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[set]\n", "not a phase set"),
        ('[set]\ntitle="x"\n[[phases]]\nname="a"\nwords=["w"]\nslow="nonesuch"\n', "not a known slow first run"),
        ('[set]\ntitle="x"\n[[phases]]\nname="a"\npattern="x"\n', "no words"),
        ('[set]\ntitle="x"\n[[phases]]\nname="a"\nwords=["w"]\npattern="("\n', "pattern"),
        ('[set]\ntitle="x"\n[[phases]]\nname="a"\nwords=["w"]\n[[phases]]\nname="a"\nwords=["v"]\n', "twice"),
        ("\x00", "not TOML"),
    ],
)
def test_a_wrong_set_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "set.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        load_phases(str(path))


def test_an_unknown_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"llama\.cpp"):
        load_phases("nonesuch")
    with pytest.raises(UsageError):
        load_phases(str(tmp_path / "absent.toml"))


@given(st.lists(st.binary(max_size=300), max_size=10))
def test_any_output_can_be_followed(blocks: list[bytes]) -> None:
    tracker = PhaseTracker(load_phases("llama.cpp"))
    for block in blocks:
        tracker.feed(block)
    assert tracker.current
