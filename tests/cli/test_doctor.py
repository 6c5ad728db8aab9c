from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

Run = Callable[..., Any]


def test_findings_come_most_severe_first_with_evidence_remedy_and_source(rocmend: Run, machines: Path) -> None:
    done = rocmend("doctor", "--machine", machines / "strix-halo")
    assert done.code == 1
    lines = done.out.splitlines()
    ranks = {"ERROR": 0, "WARNING": 1, "ADVICE": 2, "INFO": 3}
    seen = [ranks[line.split(" ")[0].rstrip(",")] for line in lines if line.split(" ")[0].rstrip(",") in ranks]
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 2, 3}
    end = lines.index("  id: gfx1151-cwsr-save-area-too-small")
    start = max(number for number in range(end) if not lines[number])
    card = "\n".join(lines[start:end])
    assert "To do: steps 2 and 7." in card
    assert "13942784 (13.3 MiB)" in card
    verbose = rocmend("doctor", "-v", "--machine", machines / "strix-halo").out
    assert "read from /sys/class/kfd" in verbose
    assert "Sources: " in verbose


def test_prose_fits_80_columns(rocmend: Run, machines: Path) -> None:
    """Only what must stay whole may be longer: a command (indented) or an address."""
    for line in rocmend("doctor", "-v", "--machine", machines / "strix-halo").out.splitlines():
        assert len(line) <= 80 or line.startswith("    "), line


def test_a_healthy_machine_is_told_so(rocmend: Run, machines: Path) -> None:
    done = rocmend("doctor", "--machine", machines / "rx-7900-xtx")
    assert done.code == 0
    assert "checks passed" in done.out


def test_explain_needs_no_machine(rocmend: Run) -> None:
    done = rocmend("doctor", "--explain", "gfx1151-cwsr-save-area-too-small")
    assert done.code == 0
    assert "Recognised by" in done.out
    assert "19185664" in done.out.replace(" ", "").replace(",", "")


def test_a_model_that_does_not_fit_is_said(rocmend: Run, machines: Path) -> None:
    small = rocmend("doctor", "--machine", machines / "rx-5600-xt", "--model-size", "2GiB", "--json")
    large = rocmend("doctor", "--machine", machines / "rx-5600-xt", "--model-size", "60GiB", "--json")

    def ids(done: Any) -> set[str]:
        return {finding["entry_id"] for finding in msgspec.json.decode(done.out)["data"]["findings"]}

    assert ids(large) - ids(small)


def test_a_target_is_judged_where_there_is_no_gpu(rocmend: Run, machines: Path) -> None:
    done = rocmend("doctor", "--machine", machines / "no-amd-gpu", "--target", "gfx1151", "--for", "pytorch")
    assert "gfx1151" in done.out
    assert "there is no gfx1151 here" in done.out.replace("\n", " ")


def test_formats(rocmend: Run, machines: Path) -> None:
    machine = machines / "strix-halo"
    sarif = msgspec.json.decode(rocmend("doctor", "--machine", machine, "--format", "sarif").out)
    data = msgspec.json.decode(rocmend("doctor", "--machine", machine, "--json").out)["data"]
    lines = rocmend("doctor", "--machine", machine, "--format", "jsonl").out.splitlines()
    markdown = rocmend("doctor", "--machine", machine, "--format", "md").out
    assert len(sarif["runs"][0]["results"]) == len(data["findings"]) == len(lines)
    assert markdown.startswith("# Diagnosis of strix-halo\n")
    assert all(f"(`{finding['entry_id']}`)" in markdown for finding in data["findings"])
