from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocmend.cli.quantities import WHEN
from rocmend.core.errors import UsageError
from rocmend.core.evidence import PhaseSpan, Silence
from rocmend.core.verdict import Verdict
from rocmend.store.store import Store

Make = Callable[..., Any]


@pytest.fixture
def filled(tmp_path: Path, evidence: Make, machine: Make) -> list[str]:
    """Fill the default store with four records, of which these are the ids."""
    snapshot = machine("tower", gpu__0__name="Radeon RX 5600 XT", kernel__release="6.17")
    timeline = (PhaseSpan("start", 0, 100), PhaseSpan("load", 100, 9000, "loading \x1b[31m tensors", slow=True))
    with Store.open(tmp_path / "home" / "evidence.sqlite") as store:
        return [
            store.add(evidence(gfx_target="gfx1010", identity="1"), machine=snapshot),
            store.add(
                evidence(
                    kind="trial",
                    subject="no-sdma",
                    verdict=Verdict.HANG,
                    reason="silent after phase load",
                    started_at="2026-03-02T00:00:00Z",
                    identity="1",
                    group="sdma",
                    timeline=timeline,
                    last_phase="load",
                    silence=Silence.SPINNING,
                    settings={"env": {"HSA_ENABLE_SDMA": "0"}},
                    detail={"max_error": float("nan"), "trace": "line 1\nline 2"},
                ),
                machine=snapshot,
                artifacts={"output.log": b"\xff\x00log\n"},
            ),
            store.add(evidence(verdict=Verdict.CRASH, started_at="2026-03-03T00:00:00Z", group="sdma")),
            store.add(evidence(subject="softmax", started_at="2026-03-04T00:00:00Z")),
        ]


def listed(done: Any) -> list[str]:
    return [record["id"] for record in msgspec.json.decode(done.out)["data"]]


def test_a_store_that_was_never_made_is_empty(rocmend: Make, tmp_path: Path) -> None:
    done = rocmend("store", "ls")
    assert (done.code, done.err) == (0, "")
    assert "The store is empty." in done.out
    assert msgspec.json.decode(rocmend("store", "ls", "--groups", "--json").out)["data"] == []
    for words in (["gc"], ["gc", "--yes", "--verify"], ["rm", "--older-than", "1d"], ["rm", "--group", "probe-1"]):
        assert rocmend("store", *words).code == 0
    assert rocmend("store", "rm", "2026").code == 2  # as in any store without that record
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("arguments", [["ls"], ["show", "2026"], ["rm", "2026", "--yes"], ["gc"]], ids=" ".join)
def test_one_that_was_named_has_to_be_there(rocmend: Make, tmp_path: Path, arguments: list[str]) -> None:
    done = rocmend("store", *arguments, "--store", tmp_path / "none")
    assert done.code == 2
    assert "there is no store at" in done.err
    assert not (tmp_path / "none").exists()


def test_ls_shows_the_newest_first(rocmend: Make, filled: list[str]) -> None:
    done = rocmend("store", "ls")
    assert done.code == 0
    assert re.findall(r"^(\d{8}-\d{6}-\w{4})", done.out, re.MULTILINE) == [item[:20] for item in reversed(filled)]
    assert "4 records: 2 pass, 1 hang, 1 crash." in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_ls_narrows(rocmend: Make, filled: list[str]) -> None:
    def ls(*arguments: str) -> list[int]:
        return [filled.index(record) for record in listed(rocmend("store", "ls", "--json", *arguments))]

    assert ls() == [3, 2, 1, 0]
    assert ls("--kind", "trial") == [1]
    assert ls("--verdict", "hang", "--verdict", "crash") == [2, 1]
    assert ls("--gfx", "gfx1010") == [0]
    assert ls("--subject", "softmax") == [3]
    assert ls("--group", "sdma") == [2, 1]
    assert ls("--since", "2026-03-03") == [3, 2]
    assert ls("--limit", "1") == [3]
    assert ls("--limit", "0") == [3, 2, 1, 0]


def test_ls_says_that_there_are_more(rocmend: Make, filled: list[str]) -> None:
    assert "The newest 2 records: 1 pass, 1 crash; there are more" in rocmend("store", "ls", "--limit", "2").out
    assert "there are more" not in rocmend("store", "ls", "--limit", str(len(filled))).out


def test_ls_as_lines(rocmend: Make, filled: list[str]) -> None:
    lines = rocmend("store", "ls", "--format", "jsonl", "--limit", "3").out.splitlines()
    assert [msgspec.json.decode(line)["id"] for line in lines] == filled[:0:-1]


@pytest.mark.usefixtures("filled")
def test_ls_groups(rocmend: Make, evidence: Make, tmp_path: Path) -> None:
    (group,) = msgspec.json.decode(rocmend("store", "ls", "--groups", "--json").out)["data"]
    assert (group["group"], group["verdicts"]) == ("sdma", {"hang": 1, "crash": 1})
    assert "1 hang, 1 crash" in rocmend("store", "ls", "--groups").out
    with Store.open(tmp_path / "home" / "evidence.sqlite") as store:
        store.add(evidence(group="probe-2", started_at="2026-03-05T00:00:00Z"))
    shown = rocmend("store", "ls", "--groups", "--limit", "1").out
    assert ("probe-2" in shown, "sdma" in shown, "--limit 0" in shown) == (True, False, True)


def test_show_tells_all(rocmend: Make, filled: list[str]) -> None:
    out = rocmend("store", "show", filled[1][:15]).out
    for text in (
        "hang: silent after phase load",
        "load (spinning)",
        "tower: Radeon RX 5600 XT",
        "1 pass, 1 hang",
        "(known to be slow) 8.9 s",
        "HSA_ENABLE_SDMA=0",
        "max_error  nan",
        "  line 1\n  line 2\n",
        "output.log",
        filled[1],
    ):
        assert text in out, text
    assert "\x1b" not in out
    assert "\\x1b[31m" in " ".join(out.split())


def test_show_as_json(rocmend: Make, filled: list[str]) -> None:
    data = msgspec.json.decode(rocmend("store", "show", filled[1], "--json").out)["data"]
    assert data["id"] == filled[1]
    assert data["evidence"]["verdict"] == "hang"
    assert data["repeats"] == {"hang": 1, "pass": 1}


def test_show_the_machine(rocmend: Make, filled: list[str]) -> None:
    assert "Radeon RX 5600 XT" in rocmend("store", "show", filled[0], "--facts").out
    done = rocmend("store", "show", filled[3], "--facts")
    assert done.code == 2
    assert "no machine snapshot was kept" in done.err


def test_show_writes_an_artifact_as_it_is(filled: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rocmend", "store", "show", filled[1], "--artifact", "output.log"]
    environment = {**os.environ, "ROCMEND_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert done.stdout == b"\xff\x00log\n"


def test_show_names_the_artifacts_that_there_are(rocmend: Make, filled: list[str]) -> None:
    done = rocmend("store", "show", filled[1], "--artifact", "dmesg")
    assert done.code == 2
    assert "It has output.log." in done.err


def test_rm_does_not_remove_without_being_told_to(rocmend: Make, filled: list[str]) -> None:
    done = rocmend("store", "rm", filled[0])
    assert done.code == 2
    assert "there is no terminal to confirm on" in done.err
    dry = msgspec.json.decode(rocmend("store", "rm", "--group", "sdma", "--dry-run", "--json").out)["data"]
    assert dry == {"chosen": [filled[2], filled[1]], "removed": 0, "dry_run": True}
    assert "2 records would be removed" in rocmend("store", "rm", "--group", "sdma", "--dry-run").out
    assert len(listed(rocmend("store", "ls", "--json"))) == 4


def test_rm_removes_what_is_chosen(rocmend: Make, filled: list[str]) -> None:
    def left() -> list[int]:
        return sorted(filled.index(record) for record in listed(rocmend("store", "ls", "--json")))

    assert "1 record removed." in rocmend("store", "rm", filled[0][:15], "--yes").out
    assert left() == [1, 2, 3]
    assert rocmend("store", "rm", "--group", "sdma", "--older-than", "2026-03-03", "--yes").code == 0
    assert left() == [2, 3]
    assert "nothing to remove" in rocmend("store", "rm", "--older-than", "2026-03-03", "--yes").out
    assert rocmend("store", "rm", filled[2], filled[3], filled[2], "--yes").code == 0
    assert left() == []
    report = msgspec.json.decode(rocmend("store", "gc", "--all", "--yes", "--json").out)["data"]["collected"]
    assert (report["machines"], report["artifacts"]) == (1, 1)


@pytest.mark.parametrize(
    "arguments",
    [[], ["2026", "--group", "x"], ["--older-than", "long"], ["--older-than", "99999999999d"], ["20269", "--yes"]],
    ids=" ".join,
)
@pytest.mark.usefixtures("filled")
def test_rm_refuses_what_is_not_clear(rocmend: Make, arguments: list[str]) -> None:
    assert rocmend("store", "rm", *arguments).code == 2
    assert len(listed(rocmend("store", "ls", "--json"))) == 4


@pytest.mark.parametrize(("answer", "left"), [(b"y\n", 3), (b"n\n", 4), (b"\n", 4)])
def test_rm_asks_on_a_terminal(filled: list[str], tmp_path: Path, answer: bytes, left: int) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "ROCMEND_HOME": str(tmp_path / "home")}
    with subprocess.Popen(
        [sys.executable, "-m", "rocmend", "store", "rm", filled[0]],
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        env=environment,
    ) as process:
        os.close(theirs)
        os.write(ours, answer)
        out, _ = process.communicate(timeout=30)
        asked = os.read(ours, 10_000)
    os.close(ours)
    assert b"Remove 1 record from" in asked
    assert process.returncode == 0
    assert (b"Nothing was removed" in out) == (left == 4)
    with Store.open(tmp_path / "home") as store:
        assert len(list(store.query())) == left


def test_gc_counts_and_verifies(rocmend: Make, filled: list[str], tmp_path: Path) -> None:
    assert "in the store is intact" in rocmend("store", "gc", "--verify").out
    with Store.open(tmp_path / "home") as store:
        (artifact,) = store.get(filled[1]).evidence.artifacts
    (tmp_path / "home" / "artifacts" / artifact.sha256[:2] / artifact.sha256[2:]).write_bytes(b"changed")
    done = rocmend("store", "gc", "--verify")
    assert done.code == 1
    assert "1 thing damaged" in done.out
    dry = msgspec.json.decode(rocmend("store", "gc", "--dry-run", "--json").out)["data"]
    assert (dry["dry_run"], dry["damage"], dry["collected"]["artifacts"]) == (True, None, 0)


def test_errors_reach_the_reader_of_json(rocmend: Make, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database\n")
    done = rocmend("store", "ls", "--store", tmp_path / "text", "--json")
    (error,) = msgspec.json.decode(done.out)["errors"]
    assert (done.code, error["code"]) == (2, "bad-data")


@pytest.mark.parametrize("text", ["", "d", "-1d", "1y", "7", "next week", "2026-02-30", "٣x"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="neither an age nor a date"):
        WHEN.convert(text, None, None)


def test_times_without_a_zone_are_utc() -> None:
    assert WHEN.convert("2026-03-01", None, None).isoformat() == "2026-03-01T00:00:00+00:00"
    assert WHEN.convert("2026-03-01T01:00:00+02:00", None, None).isoformat() == "2026-02-28T23:00:00+00:00"
    ages = [WHEN.convert(text, None, None) for text in ("2w", "14d", "336h", "20160m")]
    assert (max(ages) - min(ages)).total_seconds() < 5


def test_looking_does_not_load_what_it_does_not_need() -> None:
    heavy = {"zstandard", "rich", "jinja2", "rocmend.machine.facts"}
    program = "import sys, rocmend.store.store; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert "rocmend.store.store" in done.stdout.split()
    assert heavy & set(done.stdout.split()) == set()
