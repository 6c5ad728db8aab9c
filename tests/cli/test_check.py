from __future__ import annotations

import html
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

Run = Callable[..., Any]


def test_leaves_a_report_and_points_to_it(rocmend: Run, machines: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    done = rocmend("check", "--machine", machines / "strix-halo", "-o", output)
    assert done.code == 1
    assert done.out.rstrip().endswith(f"Report: {output}")
    page = output.read_text()
    for part in ("Findings", "What to install", "What to set", "The machine", "How this was made"):
        assert f">{part}</h2>" in page
    assert "No operation was run on" in page


def test_a_captured_machine_runs_nothing_and_the_report_says_so(rocmend: Run, machines: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    rocmend("check", "--machine", machines / "strix-halo", "-o", output)
    assert "a captured machine runs nothing" in output.read_text()


@pytest.mark.cpu
@pytest.mark.slow
def test_this_machine_is_probed(rocmend: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("ROCMEND_HOME", str(tmp_path / "home"))
    output = tmp_path / "report.html"
    done = rocmend("check", "-o", output, "--json")
    probes = msgspec.json.decode(done.out)["data"]["probes"]
    assert {result["verdict"] for result in probes["results"]} == {"pass"}
    assert ">What works</h2>" in output.read_text()
    assert (tmp_path / "home" / "evidence.sqlite").exists()


def test_a_check_is_kept_with_its_report(rocmend: Run, machines: Path, tmp_path: Path) -> None:
    store, output = tmp_path / "kept.sqlite", tmp_path / "report.html"
    rocmend("check", "--machine", machines / "strix-halo", "-o", output, "--store", store)
    rows = msgspec.json.decode(rocmend("store", "ls", "--store", store, "--json").out)["data"]
    assert "check" in str(rows)
    assert "strix-halo" in str(rows)
    (identifier,) = [row["id"] for row in (rows["records"] if isinstance(rows, dict) else rows)]
    shown = rocmend("store", "show", identifier, "--store", store)
    assert "gfx1151-cwsr-save-area-too-small" in shown.out
    assert "report.html" in shown.out


def test_a_check_says_where_it_keeps_its_record(rocmend: Run, machines: Path, tmp_path: Path) -> None:
    asked = ("check", "--machine", machines / "strix-halo", "-o", tmp_path / "r.html")
    store = tmp_path / "kept.sqlite"
    assert f"records of checks are kept in {store}" in rocmend(*asked, "--store", store).err
    assert store.exists()
    assert "kept" not in rocmend(*asked, "--no-store").err


def test_an_unusable_store_costs_the_record_only(rocmend: Run, machines: Path, tmp_path: Path) -> None:
    (tmp_path / "kept.sqlite").write_text("no database")
    done = rocmend(
        "check", "--machine", machines / "strix-halo", "-o", tmp_path / "r.html", "--store", tmp_path / "kept.sqlite"
    )
    assert done.code == 1
    assert "the result is not kept" in done.err
    assert (tmp_path / "r.html").exists()


def test_without_probes_it_says_so(rocmend: Run, tmp_path: Path) -> None:
    done = rocmend("check", "--no-probe", "-o", tmp_path / "report.html", "--json")
    data = msgspec.json.decode(done.out)["data"]
    assert data["probes"] is None
    assert "--no-probe" in data["not_probed"]


def test_what_was_measured_is_in_the_report_and_what_has_no_figure_is_a_finding(machines: Path) -> None:
    from rocmend.bench.case import DEFAULT, Case
    from rocmend.bench.records import BenchRun, Measured
    from rocmend.bench.session import Prepared
    from rocmend.bench.stats import summarize
    from rocmend.cli.check import Check, run_check
    from rocmend.cli.views.check import check_report, check_summary
    from rocmend.core.verdict import Verdict
    from rocmend.kb.load import load_entries
    from rocmend.machine.collect import open_machine, snapshot
    from rocmend.report import html as page
    from rocmend.report import markdown

    machine = snapshot(open_machine(machines / "mi300x"), name="mi300x")
    case = Case("gemm/bfloat16/4096x4096x4096/nn", "gemm", {}, "TFLOPS", 2.0 * 4096**3)
    blocks = ((2e-4, 2.1e-4, 2e-4),) * 6

    def checked(verdict: Verdict) -> Check:
        summary = summarize(blocks) if verdict is Verdict.PASS else None
        found = Measured(case, verdict, "as asked", Prepared(verdict), blocks, summary, "2026-01-31", 1.0)
        run = BenchRun("bench-gemm-1", "gemm", "Matrix products", (DEFAULT,), (found,))
        return run_check(machine, load_entries(), bench=lambda _tried: (run,))

    good = checked(Verdict.PASS)
    assert ">How fast</h2>" in page.render(check_report(good, machine))
    assert "687" in markdown.render(check_summary(good, "r.html"))
    assert checked(Verdict.WRONG_OUTPUT).serious
    assert run_check(machine, load_entries(), bench=lambda _tried: "Not measured: as asked.").not_measured


def test_quick_and_full_exclude_each_other(rocmend: Run) -> None:
    done = rocmend("check", "--quick", "--full")
    assert (done.code, done.out) == (2, "")
    assert "--full" in done.err


def test_no_amd_gpu_and_a_target(rocmend: Run, machines: Path, tmp_path: Path) -> None:
    bare = rocmend("check", "--machine", machines / "no-amd-gpu", "-o", tmp_path / "a.html", "--json")
    asked = rocmend(
        "check", "--machine", machines / "no-amd-gpu", "--target", "gfx1151", "-o", tmp_path / "b.html", "--json"
    )
    assert msgspec.json.decode(bare.out)["data"]["targets"] == []
    assert msgspec.json.decode(asked.out)["data"]["targets"] == ["gfx1151"]
    assert "torch[device-gfx1151]" in (tmp_path / "b.html").read_text()


def test_wheels_are_inspected_for_the_machines_gpu(rocmend: Run, machines: Path, tmp_path: Path) -> None:
    library = tmp_path / "libempty.so"
    library.write_bytes(b"\x7fELF" + bytes(60))
    done = rocmend(
        "check", "--machine", machines / "strix-halo", "--wheel", library, "-o", tmp_path / "r.html", "--json"
    )
    (wheel,) = msgspec.json.decode(done.out)["data"]["wheels"]
    assert {target: found["verdict"] for target, found in wheel["services"].items()} == {"gfx1151": "not-applicable"}
    absent = rocmend(
        "check",
        "--machine",
        machines / "strix-halo",
        "--wheel",
        tmp_path / "no.whl",
        "-o",
        tmp_path / "s.html",
        "--json",
    )
    assert absent.code == 2
    assert msgspec.json.decode(absent.out)["errors"][0]["code"] == "usage"
    assert not (tmp_path / "s.html").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_place_is_an_error(rocmend: Run, machines: Path, tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    done = rocmend("check", "--machine", machines / "strix-halo", "-o", tmp_path / "r.html")
    assert done.code == 2
    assert "is not writable" in done.err


def test_a_device_as_the_place_stays_a_device(rocmend: Run, machines: Path) -> None:
    done = rocmend("check", "--machine", machines / "strix-halo", "-o", "/dev/full")
    assert done.code == 2
    assert "No space left on device" in done.err
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_a_file_in_the_way_is_an_error(rocmend: Run, machines: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = rocmend("check", "--machine", machines / "strix-halo", "-o", tmp_path / "file" / "r.html")
    assert done.code == 2
    assert done.err.startswith(f"rocmend: [{tmp_path}/file/r.html] the folder {tmp_path}/file does not exist.")


def test_what_a_step_makes_needless_is_set_until_then(installed: Run, tmp_path: Path) -> None:
    installed("check", "--machine", "strix-halo", "--no-store", "-o", str(tmp_path / "report.html"))
    text = html.unescape(re.sub(r"<[^>]+>", "", (tmp_path / "report.html").read_text()))
    assert re.search(r"only until[\s#]+step \d+ of the plan[^=]*export HSA_ENABLE_SDMA=0", text)
    assert "rocmend env --for pytorch --shell fish --machine strix-halo" in text


def test_levels_of_proof_and_why_nothing_was_tried_are_said(rocmend: Run, machines: Path, tmp_path: Path) -> None:
    done = rocmend("check", "--machine", machines / "no-amd-gpu", "-o", tmp_path / "r.html")
    said = " ".join(done.out.split())
    assert "a captured machine runs nothing" in said
    assert "Levels of proof that are possible here: " in said
    assert "amd (needs an AMD GPU and torch for ROCm)" in said
    assert "What can be proven here" in (tmp_path / "r.html").read_text()


def test_figures_that_are_stored_are_in_the_report(machines: Path) -> None:
    from rocmend.cli.check import Earlier, run_check
    from rocmend.cli.views.check import check_report
    from rocmend.kb.load import load_entries
    from rocmend.machine.collect import open_machine, snapshot
    from rocmend.report import markdown

    machine = snapshot(open_machine(machines / "mi300x"), name="mi300x")
    earlier = Earlier("bench-gemm-1", "Matrix products", "2026-01-31T10:00:00Z", "bf16: 687 TFLOPS at most.")
    found = run_check(machine, load_entries(), bench=lambda _tried: "Not measured: as asked.", earlier=[earlier])
    text = markdown.render(check_report(found, machine))
    assert "Matrix products, measured on 2026-01-31" in text
    assert "bf16: 687 TFLOPS at most." in text


def test_a_check_that_was_cut_short_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rocmend.cli import keeping
    from rocmend.core.errors import UsageError
    from rocmend.core.evidence import Evidence
    from rocmend.core.verdict import Verdict
    from rocmend.store.store import Store

    told: list[str] = []
    monkeypatch.setattr(keeping, "tell", told.append)
    monkeypatch.setattr(keeping, "command_line", lambda: "rocmend check --full --resume")
    with Store.open(tmp_path / "evidence.sqlite") as store:

        def kept(kind: str, group: str, command: str = "") -> None:
            detail = {"origin": {"command": command}}
            store.add(
                Evidence(kind, "x", "1", Verdict.PASS, "", "2026-01-31T10:00:00Z", 1.0, detail=detail, group=group)
            )

        kept("probe", "probe-20260131-100000-aaaa", "rocmend check --full")
        kept("probe", "probe-20260131-110000-bbbb", "rocmend check")
        cut = keeping.CutShort(store, resume=True)
        assert (cut.group, cut.since, cut.line) == (
            "probe-20260131-100000-aaaa",
            "20260131-100000",
            "rocmend check --full",
        )
        with pytest.raises(KeyboardInterrupt), cut:
            raise KeyboardInterrupt
        assert told == ["What was done is kept. To go on: rocmend check --full --resume"]
        kept("check", "probe-20260131-100000-aaaa")  # it came to its end
        with pytest.raises(UsageError, match="was cut short"):
            keeping.CutShort(store, resume=True)


@pytest.mark.cpu
@pytest.mark.slow
def test_a_quick_check_measures_a_little_on_a_cpu(
    rocmend: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("ROCMEND_HOME", str(tmp_path / "home"))
    done = rocmend("check", "--quick", "-o", tmp_path / "report.html", "--json")
    runs = msgspec.json.decode(done.out)["data"]["speeds"]
    assert {run["suite"] for run in runs} == {"gemm", "memory"}
    assert all(result["verdict"] == "pass" for run in runs for result in run["results"])
