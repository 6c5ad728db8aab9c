"""Tuning records: look-up, the user's own file, search spaces, and tuning with children that misbehave."""

from __future__ import annotations

import json
import logging
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.core.errors import UnitError
from rocmend.core.supervise import CommandResult
from rocmend.core.watch import Ending
from rocmend.kernels import caches, logsumexp, select
from rocmend.kernels.model.rank import Ranked
from rocmend.kernels.suite.supervise import MARK, NoDeviceError
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config, config_for, export, forced, lookup, propose, tune, user
from rocmend.kernels.tuning.record import Record
from rocmend.kernels.tuning.space import Space, candidates

GFX, SM = by_name("gfx1151"), by_name("sm90")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("ROCMEND_HOME", str(tmp_path))
    monkeypatch.setattr(user, "triton_version", lambda: "3.6.0")
    monkeypatch.setattr(user, "torch_version", lambda: "2.11.0")
    user.forget()
    yield tmp_path
    user.forget()


def _records(monkeypatch: pytest.MonkeyPatch, *rows: tuple[str, str, str, str, int]) -> None:
    made = tuple(
        Record(kernel, kind, target, triton, Config({"BLOCK": size})) for kernel, kind, target, triton, size in rows
    )
    monkeypatch.setattr(lookup, "records", lambda _op: made)
    caches.forget()


def test_the_most_specific_record_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "triton_version", lambda: "3.7.1")
    _records(
        monkeypatch,
        ("k", "*", "any", "", 1),
        ("k", "c", "any", "", 2),
        ("k", "*", "amd", "", 3),
        ("k", "c", "gfx1151", ">=3.8", 4),
        ("k", "*", "gfx1151", "<3.8", 5),
    )
    assert config_for("op", "k", "c", GFX)["BLOCK"] == 5
    assert config_for("op", "k", "c", by_name("gfx942"))["BLOCK"] == 3
    assert config_for("op", "k", "c", SM)["BLOCK"] == 2
    assert config_for("op", "k", "d", SM)["BLOCK"] == 1
    with pytest.raises(UnitError, match="no tuning record"):
        config_for("op", "other", "c", SM)
    caches.forget()


def test_a_forced_record_is_used_whatever_the_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    _records(monkeypatch, ("k", "*", "any", "", 1))
    mine = Config({"BLOCK": 7})
    with forced("op", "k", mine):
        assert config_for("op", "k", "c", SM) is mine
        with forced("op", "k", Config({"BLOCK": 8})):
            assert config_for("op", "k", "c", SM)["BLOCK"] == 8
        assert config_for("op", "k", "c", SM) is mine
    assert config_for("op", "k", "c", SM)["BLOCK"] == 1
    caches.forget()


def test_parameters_go_where_they_belong() -> None:
    config = Config({"BLOCK": 64, "num_warps": 4, "waves_per_eu": 2, "maxnreg": 128, "split_k": 3})
    assert config.constants == {"BLOCK": 64}
    assert config.options("amd") == {"enable_fp_fusion": True, "num_warps": 4, "waves_per_eu": 2}
    assert config.options("nvidia") == {"enable_fp_fusion": True, "num_warps": 4, "maxnreg": 128}
    assert Config({"enable_fp_fusion": False}).options("amd") == {"enable_fp_fusion": False}
    assert (config.get("split_k", 1), config.get("other", 9)) == (3, 9)


@pytest.mark.parametrize(
    ("misspelled", "said"),
    [
        ("STAGS", "logsumexp/tuning.toml: the record walk/* has no STAGES, which the kernel walk_kernel needs"),
        ("tle", "the record walk/* has no tile, which the launch code needs. It has tle, STAGES, num_warps"),
    ],
)
def test_a_misspelled_name_of_a_record_is_an_error_that_names_it(misspelled: str, said: str) -> None:
    right = {"STAGS": "STAGES", "tle": "tile"}[misspelled]
    values = {
        misspelled if name == right else name: value
        for name, value in {"tile": 128, "STAGES": 1, "num_warps": 4}.items()
    }
    config = Config(values, record="logsumexp/tuning.toml: the record walk/*")
    with forced("logsumexp", "walk", config), select.prefer("walk"), pytest.raises(UnitError, match=re.escape(said)):
        logsumexp(torch.zeros(2, 40), 1)


def test_a_record_knows_where_it_stands() -> None:
    config = config_for("logsumexp", "walk", "*", by_name("gfx1151"))
    assert config.record == "logsumexp/tuning.toml: the record walk/*@any"


def test_own_records_come_before_shipped_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    _records(monkeypatch, ("k", "c", "gfx1151", "", 1))
    user.keep_record("op", "k", "c", "gfx1151", {"BLOCK": 2}, device="Radeon")
    found = config_for("op", "k", "c", GFX)
    assert found["BLOCK"] == 2
    assert found.source.startswith("run: Radeon, 20")
    assert config_for("op", "k", "c", GFX) is found  # one identity: launches go by it
    user.keep_record("op", "k", "c", "gfx1151", {"BLOCK": 3})
    assert config_for("op", "k", "c", GFX)["BLOCK"] == 3
    assert len(json.loads(user.path().read_text())["records"]) == 1
    caches.forget()


def test_own_records_are_for_the_triton_they_were_measured_with(monkeypatch: pytest.MonkeyPatch) -> None:
    user.keep_record("op", "k", "c", "gfx1151", {"BLOCK": 2})
    user.keep_choice("op", "c", "gfx1151", "tiles")
    assert user.user_records("op")
    assert user.measured_choice("op", "c", GFX) == "tiles"
    monkeypatch.setattr(user, "torch_version", lambda: "2.12.0")
    user.forget()
    assert user.user_records("op")
    assert user.measured_choice("op", "c", GFX) is None
    monkeypatch.setattr(user, "triton_version", lambda: "3.7.0")
    user.forget()
    assert user.user_records("op") == ()
    user.keep_record("op", "k", "c", "gfx1151", {"BLOCK": 4})
    assert len(json.loads(user.path().read_text())["records"]) == 2


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"schema": 99, "records": "of the future"}',
        '{"schema": "1"}',
        "\x00\xff",
        "[" * 100_000,
    ],
    ids=["cut", "list", "future", "word", "binary", "deep"],
)
def test_a_file_that_cannot_be_read_is_told_of_and_put_aside(
    text: str, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    user.path().write_text(text, encoding="utf-8")
    with caplog.at_level(logging.WARNING, "rocmend.kernels"):
        assert user.user_records("op") == ()
        assert user.measured_choice("op", "c", GFX) is None
        assert user.user_records("other") == ()
    assert len(caplog.records) == 1
    user.keep_record("op", "k", "c", "gfx1151", {"BLOCK": 2})
    assert (home / "kernel-tuning.aside-1.json").read_text(encoding="utf-8") == text
    assert user.user_records("op")


def test_rows_that_make_no_sense_are_left_out() -> None:
    good = {"op": "op", "kernel": "k", "class": "*", "target": "any", "triton": "3.6.0", "config": {"BLOCK": 1}}
    rows: list[Any] = [good, {**good, "config": {"BLOCK": [1]}}, {**good, "triton": 3}, {}, None, "row"]
    user.path().write_text(json.dumps({"schema": 1, "records": rows, "choices": [{"op": "op"}]}))
    assert len(user.user_records("op")) == 1
    assert user.measured_choice("op", "*", GFX) is None


def test_where_the_file_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert user.path() == tmp_path / "kernel-tuning.json"
    monkeypatch.delenv("ROCMEND_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert user.path() == Path("/data/rocmend/kernel-tuning.json")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert user.path() == Path("~/.local/share/rocmend/kernel-tuning.json").expanduser()


def test_candidates_begin_with_what_is_in_use() -> None:
    space = Space("k", "*", "any", {"BLOCK": (1, 2), "num_warps": (4, 8), "waves_per_eu": (0, 2), "maxnreg": (64,)})
    current: dict[str, Any] = {"BLOCK": 2, "num_warps": 4}
    amd = candidates(space, current, GFX, "3.9.0").configs
    assert amd[0] == current
    assert len(amd) == 2 * 2 * 2
    nvidia = candidates(space, current, SM, "3.9.0").configs
    assert len(nvidia) == 1 + 4
    assert all("waves_per_eu" not in one and one.get("maxnreg", 64) == 64 for one in nvidia)


PLAN: list[dict[str, Any]] = [
    {"event": "device", "target": "gfx1151", "name": "Radeon 8060S", "versions": {}},
    {
        "event": "group",
        "kernel": "k",
        "shape_class": "c",
        "timed": ["big"],
        "gates": ["small"],
        "current": {"BLOCK": 1},
        "candidates": [{"BLOCK": size} for size in range(1, 9)],
    },
    {
        "event": "class",
        "shape_class": "c",
        "timed": ["big"],
        "gates": ["small"],
        "implementations": ["library", "tiles", "torch"],
    },
    {"event": "end"},
]
TIMES = {1: 10.0, 2: 9.95, 3: 5.0, 6: 1.0}


def _printed(*events: Mapping[str, Any]) -> str:
    return "noise\n" + "".join(f"{MARK}{json.dumps(event)}\n" for event in events)


def _children(log: list[Any]) -> Callable[..., CommandResult]:
    """Stand in for the children: candidate 4 is wrong, 5 crashes its process, 7 hangs."""

    def child(_module: str, request: Mapping[str, Any], _limit: float, _device: str) -> CommandResult:
        log.append(request)
        if request["do"] == "plan":
            return CommandResult((), Ending.EXITED, 0, stdout=_printed(*PLAN))
        said: list[dict[str, Any]] = []
        for trial in request["trials"]:
            said.append({"event": "begin", "id": trial["id"]})
            size = trial.get("config", {}).get("BLOCK", 0)
            if size == 5:
                return CommandResult((), Ending.SIGNALLED, signal=11, stdout=_printed(*said), stderr="LLVM ERROR")
            if size == 7:
                return CommandResult((), Ending.EXITED, 1, stdout=_printed(*said), stderr="Timeout (0:01:00)!")
            verdict = "wrong-output" if size == 4 else "pass"
            if trial.get("implementation") == "library":
                verdict = "unsupported"
            time = TIMES.get(size, 20.0) if size else {"tiles": 2.0, "torch": 30.0}.get(trial["implementation"], 0.0)
            said.append(
                {
                    "event": "trial",
                    "id": trial["id"],
                    "verdict": verdict,
                    "reason": "",
                    "times_us": {"big": time},
                    "spread": 0.01,
                }
            )
        return CommandResult((), Ending.EXITED, 0, stdout=_printed(*said, {"event": "end"}))

    return child


def _stand_in(monkeypatch: pytest.MonkeyPatch, child: Callable[..., CommandResult]) -> None:
    monkeypatch.setattr(tune, "run_child", child)
    monkeypatch.setattr(propose, "run_child", child)


def _tuner(**settings: Any) -> tune.Tuner:
    given: dict[str, Any] = {
        "budget_s": 60.0,
        "trial_s": 60.0,
        "fresh": False,
        "tell": lambda _text: None,
        "model": False,
    }
    return tune.Tuner("op", "cuda", **given | settings)


def test_tuning_keeps_the_fastest_that_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[Any] = []
    _stand_in(monkeypatch, _children(log))
    found = _tuner().run(())
    group, choice = found.results
    assert (group.after, group.kept, group.tried, group.of) == ("BLOCK=6", True, 8, 8)
    assert group.gain == pytest.approx(10.0)
    assert {look: why.partition(":")[0] for look, why in group.dropped.items()} == {
        "BLOCK=4": "wrong-output",
        "BLOCK=5": "crash",
        "BLOCK=7": "hang",
    }
    (record,) = user.user_records("op")
    assert record.config["BLOCK"] == 6
    assert (choice.before, choice.after, choice.kept) == ("tiles", "tiles", True)
    assert user.measured_choice("op", "c", GFX) == "tiles"
    assert found.finished


def test_tuning_goes_on_where_it_was_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[Any] = []
    _stand_in(monkeypatch, _children(log))
    assert not _tuner(budget_s=-1.0).run(()).finished
    assert user.user_records("op") == ()
    assert _tuner().run(()).finished
    tried = len(log)
    assert _tuner().run(()).finished
    assert [request["do"] for request in log[tried:]] == ["plan"]
    assert _tuner(fresh=True).run(()).finished
    assert len(log) > tried + 3


def test_what_gains_less_than_its_spread_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    _stand_in(monkeypatch, _children([]))
    monkeypatch.setitem(TIMES, 6, 9.95)
    monkeypatch.setitem(TIMES, 3, 9.9)
    group, _ = _tuner().run(()).results
    assert (group.kept, group.after) == (False, "BLOCK=1")
    assert user.user_records("op") == ()


def test_with_no_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = CommandResult((), Ending.EXITED, 0, stdout=_printed({"event": "infra", "reason": "torch finds no GPU"}))
    _stand_in(monkeypatch, lambda *_: gone)
    with pytest.raises(NoDeviceError, match="no GPU"):
        _tuner().run(())
    _stand_in(monkeypatch, lambda *_: CommandResult((), Ending.EXITED, 1, stderr="no module torch"))
    with pytest.raises(NoDeviceError, match="no module torch"):
        _tuner().run(())


def test_what_the_model_finds_promising_is_tried_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """With time for one batch of trials: the record in use, then those that the model put first."""
    log: list[Any] = []
    _stand_in(monkeypatch, _children(log))
    monkeypatch.setattr(tune, "toolchain_for", lambda _target: None)
    asked: list[Any] = []

    def rank(wanted: Any, configs: Any, _toolchain: Any, **_options: Any) -> list[Ranked]:
        asked.append((wanted.target, wanted.product, wanted.cases))
        return [Ranked(config, 1.0) for config in sorted(configs, key=lambda one: -one["BLOCK"])]

    monkeypatch.setattr(tune, "rank", rank)
    assert _tuner(model=True).run(()).finished
    tried = [trial["config"]["BLOCK"] for request in log[1:] for trial in request["trials"] if "config" in trial]
    assert list(dict.fromkeys(tried)) == [1, 8, 7, 6, 5, 4, 3, 2]
    assert asked == [("gfx1151", "Radeon 8060S", ("big",))]


def test_a_gpu_that_the_model_does_not_know_is_tuned_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    _stand_in(monkeypatch, _children([]))
    monkeypatch.setitem(PLAN[0], "target", "gfx1103")
    told: list[str] = []
    assert _tuner(model=True, tell=told.append).run(()).finished
    assert any("not ordered by the cost model" in text for text in told)


def test_records_are_exported_as_toml() -> None:
    user.keep_record("op", "k", "c", "gfx1151", {"BLOCK": 2, "wgp_cu_mode": "cu", "EVEN": True}, device="Radeon 8060S")
    (record,) = tomllib.loads(export.toml(export.measured()))["record"]
    assert (record["kernel"], record["class"], record["target"]) == ("k", "c", "gfx1151")
    assert record["triton"] == ">=3.6,<3.7"
    assert record["config"] == {"BLOCK": 2, "wgp_cu_mode": "cu", "EVEN": True}
    kept = Record("k", "c", "gfx1151", "", Config(record["config"], record["source"]))
    assert record["source"].startswith("run: Radeon 8060S, ")
    assert lookup.provenance_problem("op", kept) == ""
    assert lookup.provenance_problem("op", kept._replace(config=Config({"BLOCK": 2})))


def test_proposals_say_that_a_model_made_them() -> None:
    one = propose.Proposal("k", "c", ("big",), 4, 4, {}, {"BLOCK": 1}, 9.0, {"BLOCK": 2}, 5.0, "memory", proposed=True)
    same = propose.Proposal(
        "k", "d", ("big",), 4, 4, {}, {"BLOCK": 1}, 9.0, {"BLOCK": 1}, 9.0, "memory", proposed=False
    )
    found = propose.Proposals("op", "gfx1151", "Radeon 8060S", "1", "3.9.0", (one, same), finished=True)
    (record,) = tomllib.loads(export.toml(export.proposed([found])))["record"]
    assert record["config"] == {"BLOCK": 2}
    assert record["source"].startswith("model 1 (gfx1151)")
    kept = Record("k", "c", "gfx1151", "", Config(record["config"], record["source"]))
    assert lookup.provenance_problem("op", kept) == ""


def test_a_record_names_several_classes_and_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[[record]]\nkernel = "k"\nclass = ["a", "b"]\ntarget = ["gfx9", "any"]\nconfig = { BLOCK = 64 }\n'
    (tmp_path / "tuning.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(lookup, "folders", lambda: {"op of lists": tmp_path})
    found = lookup.records.__wrapped__("op of lists")
    assert {record[1:3] for record in found} == {("a", "gfx9"), ("a", "any"), ("b", "gfx9"), ("b", "any")}
    assert {record.config["BLOCK"] for record in found} == {64}
