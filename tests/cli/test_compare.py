"""``rocmend compare`` on files, as a script or CI calls it."""

from __future__ import annotations

import json
import math
import random
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from rocmend.bench.case import DEFAULT, Case
from rocmend.bench.compare import run_data
from rocmend.bench.records import UNHEALTHY, BenchRun, Measured, evidence_of
from rocmend.bench.session import Prepared, Subject
from rocmend.bench.stats import summarize
from rocmend.core.verdict import Verdict
from rocmend.store.store import Store

from .conftest import Done

Run = Callable[..., Done]


@pytest.fixture
def runs(tmp_path: Path) -> Callable[[float], Path]:
    """Write a run in a file: three cases, the last of which takes so many seconds; 0 for a wrong result."""

    def write(seconds: float) -> Path:
        results = []
        for name, each in (("a", 1.0), ("b", 2.0), ("c", seconds)):
            verdict = Verdict.PASS if each else Verdict.WRONG_OUTPUT
            subject = Subject("gfx1151", "cuda:0", "Radeon 8060S", {"torch": f"2.{seconds:.0f}"})
            prepared = Prepared(verdict, "" if each else "error 0.5", 0.1, subject=subject)
            blocks = tuple((each * (1 + 0.002 * (n % 3)),) * 3 for n in range(8)) if each else ()
            summary = summarize(blocks) if blocks else None
            case = Case(f"gemm/{name}", "gemm", {}, "TFLOPS", 4e12)
            results.append(Measured(case, verdict, prepared.reason, prepared, blocks, summary, f"{seconds}", 1.0))
        run = BenchRun("bench-gemm-1", "gemm", "Products", (DEFAULT,), tuple(results))
        path = tmp_path / f"run-{seconds}.json"
        path.write_bytes(msgspec.json.encode({"command": "bench gemm", "data": run_data(run)}))
        return path

    return write


def test_slower_than_the_limit_is_a_finding(installed: Run, runs: Callable[[float], Path]) -> None:
    before, after = str(runs(1.0)), str(runs(1.2))
    done = installed("compare", before, after, "--json")
    data = json.loads(done.out)["data"]
    assert done.code == 1, done.err
    assert [change["comparison"]["difference"] for change in data["changes"]] == [
        "no difference shown",
        "no difference shown",
        "slower",
    ]
    assert [change.get("beyond", False) for change in data["changes"]] == [False, False, True]
    assert installed("compare", before, after, "--fail", "30%").code == 0
    assert installed("compare", after, before).code == 0
    assert installed("compare", before, before).code == 0


@pytest.fixture
def equal(tmp_path: Path) -> tuple[str, str]:
    """Two files with 40 cases that differ by their noise of 10 % alone."""
    draw = random.Random(13)  # noqa: S311  it draws samples
    paths = []
    for side in "ab":
        results = []
        for number in range(40):
            blocks = tuple((math.exp(draw.gauss(0, 0.1)),) * 3 for _ in range(6))
            prepared = Prepared(Verdict.PASS, subject=Subject("gfx1151", "cuda:0", "Radeon 8060S"))
            case = Case(f"gemm/{number}", "gemm", {}, "TFLOPS", 4e12)
            results.append(Measured(case, Verdict.PASS, "", prepared, blocks, summarize(blocks), side, 1.0))
        path = tmp_path / f"{side}.json"
        run = BenchRun(f"bench-gemm-{side}", "gemm", "Products", (DEFAULT,), tuple(results))
        path.write_bytes(msgspec.json.encode({"command": "bench gemm", "data": run_data(run)}))
        paths.append(str(path))
    return paths[0], paths[1]


def test_of_40_equal_cases_none_is_called_faster(installed: Run, equal: tuple[str, str]) -> None:
    done = installed("compare", *equal, "--json")
    changes = json.loads(done.out)["data"]["changes"]
    beyond = [one["comparison"] for one in changes if one["comparison"]["low"] > 1.02]
    assert (done.code, len(beyond)) == (0, 2), done.err  # by their intervals alone these are faster
    assert {one["comparison"]["difference"] for one in changes} == {"no difference shown"}
    shown = " ".join(installed("compare", *equal).out.split())
    assert "no difference shown in 40" in shown
    assert "by itself; among 40 comparisons chance can explain it" in shown


def test_the_throttled_side_is_named_and_what_neither_supports_is_left_out(
    installed: Run, runs: Callable[[float], Path], tmp_path: Path
) -> None:
    whole = json.loads(runs(1.0).read_text())
    paths = []
    for name, share in (("a", 0.0), ("b", 0.9)):
        rows = json.loads(json.dumps(whole["data"]["results"]))
        for row in rows:
            row["telemetry"] = {"throttle": {"temperature": share}}
            row["started_at"] = name
        rows[2] |= {"verdict": "unsupported", "reason": "no fp8 here", "blocks": [], "summary": None}
        paths.append(str(tmp_path / f"{name}.json"))
        Path(paths[-1]).write_text(json.dumps({"data": {**whole["data"], "results": rows}}))
    shown = " ".join(installed("compare", *paths).out.split())
    assert "B was throttled by temperature in 90 % of the readings, A in 0 %" in shown
    assert "B against A, 2 cases: incomparable in 2." in shown
    assert "Supported by neither: gemm/c." in shown
    data = json.loads(installed("compare", *paths, "--json").out)["data"]
    assert (len(data["changes"]), data["neither"]) == (2, ["gemm/c"])


def test_two_definitions_of_a_network_are_not_one_case(installed: Run, tmp_path: Path) -> None:
    paths = []
    for number, definition in enumerate(("torchvision 0.24", "torchvision 0.25", "rocmend")):
        blocks = tuple((1.0 + 0.1 * number + 0.001 * n,) * 3 for n in range(8))
        prepared = Prepared(Verdict.PASS, subject=Subject("gfx1151"), detail={"definition": definition})
        case = Case("nn/resnet-50/inference/float16/b32", "nn", {"batch": 32}, "img/s", 32.0)
        one = Measured(case, Verdict.PASS, "", prepared, blocks, summarize(blocks), f"{number}", 1.0)
        paths.append(tmp_path / f"{number}.json")
        run = BenchRun(f"bench-nn-{number}", "nn", "Networks", (DEFAULT,), (one,))
        paths[-1].write_bytes(msgspec.json.encode({"command": "bench nn", "data": run_data(run)}))
    later, own = (json.loads(installed("compare", paths[0], path, "--json").out)["data"] for path in paths[1:])
    assert later["changes"][0]["comparison"]["difference"] == "slower"
    assert ["definition", "torchvision 0.24", "torchvision 0.25"] in later["differs"]
    made = own["changes"][0]["comparison"]
    assert made == {
        "difference": "incomparable",
        "reason": "different definitions: definition torchvision, then rocmend",
    }


def test_it_reads_as_an_answer_and_a_table(installed: Run, runs: Callable[[float], Path], tmp_path: Path) -> None:
    done = installed("compare", runs(1.0).name, runs(1.2).name, cwd=tmp_path)
    said = " ".join(done.out.split())
    assert "B against A, 3 cases: slower in 1, no difference shown in 2;" in said
    assert "1 case slower by more than 5 %." in said
    assert "0.833x" in said
    assert max(map(len, done.out.splitlines())) <= 80


def test_junit_names_the_slow_and_the_lost(installed: Run, runs: Callable[[float], Path]) -> None:
    for seconds, kind in ((1.2, "slow"), (0.0, "wrong-output")):
        done = installed("compare", str(runs(1.0)), str(runs(seconds)), "--format", "junit")
        assert done.code == 1
        (failure,) = ET.fromstring(done.out).iter("failure")  # noqa: S314  it is our own
        assert failure.get("type") == kind


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("last", "last"), "there is no store"),
        (("a.json", "b.json"), "no such file"),
        ((__file__, "b.json"), "holds no run of a benchmark: it is no JSON"),
        (("last", "last", "--fail", "much"), "Write e.g. 5%"),
    ],
)
def test_what_is_not_there_is_a_usage_error(installed: Run, words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = installed("compare", *words, ROCMEND_HOME=str(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_figures_of_a_machine_that_fell_ill_are_marked(installed: Run, runs: Callable[[float], Path]) -> None:
    good, ill = runs(1.0), runs(2.0)
    whole = json.loads(ill.read_text())
    for item in whole["data"]["results"]:
        item["telemetry"] = {"notes": [f"{UNHEALTHY}: ring gfx timeout"]}
    ill.write_text(json.dumps(whole))
    done = installed("compare", good, ill, "--format", "md")
    assert "The machine of B was not healthy." in done.out
    assert "| 3.992 → 3.992\\* |" in done.out
    assert "- B (" in done.out
    assert f"{UNHEALTHY}: ring gfx timeout" in done.out
    assert "not healthy" not in installed("compare", good, good).out
    junit = ET.fromstring(installed("compare", good, ill, "--format", "junit").out)  # noqa: S314  our own
    assert "ring gfx timeout" in ET.tostring(junit, encoding="unicode")


@pytest.fixture
def three(tmp_path: Path) -> tuple[str, ...]:
    """A store with two runs of products, and one of networks that came last; the options that name it."""
    path = tmp_path / "evidence.sqlite"
    with Store.open(path) as store:
        for suite, hour in (("gemm", 1), ("gemm", 2), ("nn", 3)):
            blocks = tuple((1.0 + 0.001 * n,) * 3 for n in range(8))
            prepared = Prepared(Verdict.PASS, subject=Subject("gfx1151", "cuda:0", "Radeon 8060S"))
            case = Case(f"{suite}/a", suite, {"dtype": "float32", "m": 1, "n": 1, "k": 1, "batch": 1}, "TFLOPS", 4e12)
            one = Measured(case, Verdict.PASS, "", prepared, blocks, summarize(blocks), f"2026-01-0{hour}", 1.0)
            store.add(evidence_of(one, f"bench-{suite}-20260101-0{hour}0000-aaaa"))
    return "--store", str(path)


def test_runs_are_counted_by_benchmark_and_named_by_a_beginning(installed: Run, three: tuple[str, ...]) -> None:
    done = installed("compare", "gemm~1", "gemm", *three, "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)["data"]
    assert (data["run_a"], data["run_b"]) == ("bench-gemm-20260101-010000-aaaa", "bench-gemm-20260101-020000-aaaa")
    assert installed("compare", "bench-gemm-20260101-01", "gemm", *three).code == 0
    for words, said in (
        (("last~1", "last"), "there is no last~1: the store has 1 run of `rocmend bench nn`"),
        (("gemm", "last"), "gemm (bench-gemm-20260101-020000-aaaa), bench gemm, and last (bench-nn-20260101-030000"),
        (("gemm", "last~-1"), "'last~-1' is no run. Write last~1"),
        (("bench-gemm", "last"), "several runs begin with 'bench-gemm'"),
        (("bench-gemm-2026-02", "last"), "rocmend store ls --groups"),
    ):
        refused = installed("compare", *words, *three)
        assert (refused.code, refused.out) == (2, "")
        assert said in " ".join(refused.err.split())


def test_a_report_is_of_what_there_is(installed: Run, three: tuple[str, ...], runs: Callable[[float], Path]) -> None:
    done = installed("report", "llama", "gemm~1", *three, "--json")
    assert done.code == 0, done.err
    assert "There is no run of `rocmend bench llama` yet" in done.err
    assert "bench-gemm-20260101-010000-aaaa" in done.out
    refused = installed("report", "llama", *three)
    assert (refused.code, "rocmend bench llama --help" in refused.err) == (2, True)
    refused = installed("report", str(runs(1.0)), *three)
    assert (refused.code, "`rocmend compare` takes files" in " ".join(refused.err.split())) == (2, True)


def test_a_comparison_of_nothing_fails_in_junit_too_and_says_whose_machine_was_busy(
    installed: Run, runs: Callable[[float], Path], tmp_path: Path
) -> None:
    before = runs(1.0)
    whole = json.loads(before.read_text())
    for row in whole["data"]["results"]:
        row["waited"] = [0.9] * 8
    busy = tmp_path / "busy.json"
    busy.write_text(json.dumps(whole))
    done = installed("compare", str(before), str(busy), "--format", "junit")
    suite = ET.fromstring(done.out).find("testsuite")  # noqa: S314  it is our own
    assert suite is not None
    assert (done.code, suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (1, "0", "1", "3")
    error = suite.find(".//error")
    assert error is not None
    assert "no case could be compared: B: this machine was busy" in error.get("message", "")
    assert "B: this machine was busy: 90 % of the time" in installed("compare", str(before), str(busy)).out


def test_what_two_busy_machines_have_in_common_is_said_once(
    installed: Run, runs: Callable[[float], Path], tmp_path: Path
) -> None:
    whole = json.loads(runs(1.0).read_text())
    for side in ("a", "b"):
        for number, row in enumerate(whole["data"]["results"]):
            row["waited"] = [0.88 + 0.01 * number + 0.02 * (side == "b")] * 8
        (tmp_path / f"{side}.json").write_text(json.dumps(whole))
    shown = " ".join(installed("compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")).out.split())
    assert "Both runs: this machine was busy: 88 to 92 % of the time" in shown
    assert "run again on an idle machine" in shown
    assert shown.count("was busy") == 1
