"""The suite's own machinery: that it sees what is wrong, and that a case that ends its process is told of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.core.supervise import CommandResult
from rocmend.core.verdict import Verdict
from rocmend.core.watch import Ending
from rocmend.kernels import allocate, registry
from rocmend.kernels.suite import Call, Case, Maker, supervise
from rocmend.kernels.suite.case import Draw
from rocmend.kernels.suite.run import run_case
from rocmend.kernels.suite.supervise import MARK, NoDeviceError, check_op, evidence_of

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

CPU = torch.device("cpu")


def _case(**settings: Any) -> Case:
    def make(m: Any) -> Call:
        return Call((m.normal(4, 8), m.normal(8), 1e-5))

    return replace(Case("case", make, "float32", "tiny"), **settings)


def _op(function: Callable[..., Any]) -> Any:
    op = registry.get("rms_norm")
    name = f"{__name__}:{function.__name__}"
    return replace(op, functions={"f": name})


def test_a_maker_that_is_given_draws_makes_the_same() -> None:
    def drawn(m: Maker) -> list[Any]:
        small, large = m.normal(3), m.normal(600, 700, dtype="bfloat16", scale=2.0)
        return [small, large, m.integers(0, 9, 300000), m.edges(40, dtype="float32"), m.normal(400, 700), m.normal(5)]

    draws: list[Draw] = []
    wanted = drawn(Maker(CPU, 3))
    for _ in range(2):
        found = drawn(Maker(CPU, 3, draws))
        for one, other in zip(found, wanted, strict=True):
            assert one.dtype == other.dtype
            assert torch.equal(one.nan_to_num(9.0), other.nan_to_num(9.0))
        found[1].zero_()  # what a call does to its arguments is not kept
    assert len(draws) == 3


def right(x: Any, weight: Any, eps: float) -> Any:
    return (x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)) * weight


def wrong(x: Any, weight: Any, eps: float) -> Any:
    return right(x, weight, eps) * 1.001


def unwritten(x: Any, weight: Any, eps: float) -> Any:
    out = allocate.empty_like(x)
    out[:-1] = right(x, weight, eps)[:-1]
    return out


_calls: list[int] = []


def changing(x: Any, weight: Any, eps: float) -> Any:
    _calls.append(1)
    out = right(x, weight, eps)
    return torch.nextafter(out, torch.full_like(out, 9.0)) if len(_calls) % 2 else out


def two(x: Any, weight: Any, eps: float) -> Any:
    return right(x, weight, eps), x


@pytest.mark.parametrize(
    ("function", "said"),
    [(wrong, "are outside"), (unwritten, "got nan"), (changing, "two runs differ"), (two, "2 outputs, expected 1")],
)
def test_what_is_wrong_is_seen(function: Callable[..., Any], said: str) -> None:
    result = run_case(_op(function), _case(), CPU)
    assert not result.ok
    assert said in result.detail


def test_what_is_right_passes() -> None:
    assert run_case(_op(right), _case(), CPU).ok


def test_outputs_without_nan_are_poisoned_too() -> None:
    with allocate.poisoned():
        assert allocate.empty((3,), dtype=torch.int32, device=CPU).tolist() == [-1431655766] * 3
        assert allocate.empty_like(torch.zeros(2, dtype=torch.bool)).tolist() == [True, True]
        assert allocate.empty_like(torch.zeros(2, 3).t()).stride() == (2, 1)
        assert allocate.empty_like(torch.zeros(2), dtype=torch.float16).isnan().all()


ABOUT = {"event": "device", "target": "gfx1151", "vendor": "amd", "name": "Radeon 8060S", "versions": {"torch": "2"}}


def _done(*events: Mapping[str, Any], ending: Ending = Ending.EXITED, **settings: Any) -> CommandResult:
    text = "".join(f"{MARK}{json.dumps(event)}\n" for event in events)
    return CommandResult((), ending, stdout=text, **settings)


def _passed(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    case = {"event": "case", "case": name, "verdict": "pass", "detail": "", "worst": 0.5, "ms": 1.0}
    return {"event": "begin", "case": name}, case


def test_a_case_that_hangs_or_crashes_takes_nothing_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def child(_module: str, request: Mapping[str, Any], _limit: float, _device: str) -> CommandResult:
        asked.append(list(request["done"]))
        begin_b, begin_d = {"event": "begin", "case": "b"}, {"event": "begin", "case": "d"}
        if len(asked) == 1:
            return _done(ABOUT, *_passed("a"), begin_b, ending=Ending.SIGNALLED, signal=6, stderr="abort")
        if len(asked) == 2:
            return _done(ABOUT, *_passed("c"), begin_d, exit_code=1, stderr="Timeout (0:03:00)!")
        return _done(ABOUT, *_passed("e"), {"event": "end"})

    monkeypatch.setattr(supervise, "run_child", child)
    run = check_op("op", "cuda", ("tiny",))
    assert asked == [[], ["a", "b"], ["a", "b", "c", "d"]]
    assert (run.passed, run.count, run.rung, run.verdict) == (3, 5, "amd", Verdict.HANG)
    assert [(one.case, one.verdict) for one in run.not_passed] == [("b", Verdict.CRASH), ("d", Verdict.HANG)]
    evidence = evidence_of(run, "group")
    assert (evidence.subject, evidence.gfx_target, evidence.detail["rung"]) == ("op", "gfx1151", "amd")
    assert evidence.reason.startswith("b: signal 6")


def test_a_child_that_ends_at_its_start_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "run_child", lambda *_: _done(ending=Ending.SIGNALLED, signal=11))
    run = check_op("op", "cuda", ("tiny",))
    assert (run.verdict, run.passed, run.count) == (Verdict.CRASH, 0, 1)


def test_processes_share_small_cases_and_large_ones_come_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[tuple[str, ...], tuple[int, int], list[str]]] = []

    def child(_module: str, request: Mapping[str, Any], _limit: float, _device: str) -> CommandResult:
        share, shares = request["share"]
        asked.append((tuple(request["sizes"]), (share, shares), list(request["done"])))
        if request["sizes"] == ["large"]:
            return _done(ABOUT, *_passed("large"), {"event": "end"})
        if share == 1 and not request["done"]:
            return _done(ABOUT, {"event": "begin", "case": "b1"}, ending=Ending.SIGNALLED, signal=6, stderr="abort")
        return _done(ABOUT, *_passed(f"{'c' if share == 1 else 'a'}{share}"), {"event": "end"})

    monkeypatch.setattr(supervise, "run_child", child)
    run = check_op("op", "cuda", ("tiny", "large", "small"), jobs=3)
    few = ("tiny", "small")
    assert sorted(asked[:-1]) == [(few, (0, 3), []), (few, (1, 3), []), (few, (1, 3), ["b1"]), (few, (2, 3), [])]
    assert asked[-1] == (("large",), (0, 1), [])
    assert (run.passed, run.count, run.sizes) == (4, 5, ("tiny", "large", "small"))
    assert [(one.case, one.verdict) for one in run.not_passed] == [("b1", Verdict.CRASH)]


@pytest.mark.slow
def test_shares_of_real_children_are_all_cases() -> None:
    alone, shared = check_op("softmax", "cpu", ("tiny",)), check_op("softmax", "cpu", ("tiny",), jobs=2)
    assert alone.verdict is shared.verdict is Verdict.PASS
    assert shared.count == alone.count > 1


def test_with_nothing_to_run_on_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = _done({"event": "infra", "reason": "torch finds no GPU here"})
    monkeypatch.setattr(supervise, "run_child", lambda *_: gone)
    with pytest.raises(NoDeviceError, match="no GPU"):
        check_op("op", "cuda", ("tiny",))


@pytest.mark.slow
def test_a_real_child_in_the_interpreter() -> None:
    run = check_op("rms_norm", "cpu", ("tiny",))
    assert run.count > 10
    assert (run.rung, run.target) == ("reference", "cpu")
    assert set(run.versions) == {"torch", "triton"}


@pytest.mark.slow
def test_a_case_beyond_its_time_is_a_hang() -> None:
    run = check_op("rms_norm", "cpu", ("small",), case_s=0.001)
    assert run.verdict is Verdict.HANG


@pytest.mark.parametrize(("stalled_s", "verdict"), [(0.0, Verdict.HANG), (6.0, Verdict.INFRA)])
def test_a_case_that_ran_out_of_time_while_we_were_stopped_is_no_hang(stalled_s: float, verdict: Verdict) -> None:
    done = CommandResult(("python",), Ending.EXITED, 1, stderr="Timeout (0:00:10)!\n", stalled_s=stalled_s)
    assert supervise._how_it_ended(done, 10.0)[0] is verdict
