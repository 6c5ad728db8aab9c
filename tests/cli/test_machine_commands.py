"""``machine show`` and ``machine diff``, through the installed command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocmend.core.examples import MACHINES


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rocmend", "machine", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def data(*words: str | Path) -> tuple[int, Any]:
    done = run(*words, "--json")
    return done.returncode, msgspec.json.decode(done.stdout)["data"]


def test_a_pattern_lists_what_fits_in_json_too() -> None:
    _, begins = data("show", "gpu.0.pci", "--machine", "mi300x")
    assert set(begins["facts"]) == {f"gpu.0.pci_{name}" for name in ("slot", "device_id", "revision")}
    _, fits = data("show", "gpu.*.firmware", "--machine", "mi300x")
    assert set(fits["facts"]) == {f"gpu.{index}.firmware" for index in range(8)}
    _, gap = data("show", "gpu.0.name", "--machine", "no-amd-gpu", "--target", "gfx1151")
    assert (gap["facts"], list(gap["gaps"])) == ({}, ["gpu.*"])


def test_what_no_fact_is_called_is_an_error_with_the_nearest() -> None:
    done = run("show", "torch.verison", "--machine", "mi300x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean torch.version" in done.stderr
    assert run("show", "zzz*", "--machine", "mi300x").returncode == 2


def test_two_machines_differ_in_facts_by_topic_and_in_findings() -> None:
    code, found = data("diff", "strix-halo", "strix-halo-healthy")
    assert code == 1
    facts = {fact["key"]: (fact["topic"], fact["first"], fact["second"]) for fact in found["facts"]}
    assert facts["gpu.0.mes_version"] == ("firmware", 0x83, 0x80)
    assert facts["kernel.version"] == ("kernel", "6.14.0", "7.0.0")
    assert facts["packages[numpy]"] == ("packages", "2.1.2", "2.4.1")
    assert facts["env.HSA_OVERRIDE_GFX_VERSION"] == ("environment", "11.0.0", None)
    assert "other" not in {topic for topic, _, _ in facts.values()}
    assert "firmware-mes-0x83" in {item["entry_id"] for item in found["vanished"]}
    assert not {item["entry_id"] for item in found["appeared"]} & {item["entry_id"] for item in found["vanished"]}


@pytest.mark.parametrize("width", ["60", "80", "110"])
def test_each_fact_that_differs_is_followed_by_its_old_and_new_value(
    width: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    shown = run("diff", "strix-halo", "strix-halo-healthy").stdout
    for key, old, new in (
        ("gpu.0.cwsr_sufficient", "no", "yes"),
        ("kernel.abi", "1013", "22"),
        ("firmware.package", "linux-firmware", "linux-firmware-amd-graphics"),
        ("packages[numpy]", "2.1.2", "2.4.1"),
        ("packages[accelerate]", "1.1.1", "—"),
    ):
        assert f"\n{key}\n  strix-halo: {old}\n  strix-halo-healthy: {new}\n" in shown


@pytest.mark.slow
def test_clocks_loads_and_counts_are_noise(tmp_path: Path) -> None:
    shutil.copytree(MACHINES / "strix-halo", tmp_path / "later")
    (clock,) = (tmp_path / "later" / "root" / "sys").rglob("pp_dpm_sclk")
    clock.write_text(clock.read_text().replace("600Mhz", "700Mhz"))
    memory = tmp_path / "later" / "root" / "proc" / "meminfo"
    kept = [line for line in memory.read_text().splitlines() if "MemAvailable" not in line]
    memory.write_text("\n".join((*kept, "MemAvailable: 9999 kB\n")))
    code, found = data("diff", "strix-halo", tmp_path / "later")
    assert (code, found["facts"]) == (0, [])
    code, found = data("diff", "strix-halo", tmp_path / "later", "--all")
    assert code == 1
    assert {"gpu.0.sclk_mhz", "memory.available_bytes"} <= {fact["key"] for fact in found["facts"]}


def test_lost_lanes_are_a_difference(tmp_path: Path) -> None:
    shutil.copytree(MACHINES / "strix-halo", tmp_path / "later")
    (width,) = (tmp_path / "later" / "root" / "sys").rglob("current_link_width")
    width.write_text("8\n")
    code, found = data("diff", "strix-halo", tmp_path / "later")
    assert code == 1
    assert {fact["key"]: (fact["first"], fact["second"]) for fact in found["facts"]}["gpu.0.link_width"] == (16, 8)


def test_the_same_machine_differs_in_nothing() -> None:
    done = run("diff", "mi300x", "mi300x")
    assert done.returncode == 0
    assert "No fact differs" in done.stdout
    assert run("diff", "mi300x", "mi301").returncode == 2


def test_a_capture_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    whole = MACHINES / "strix-halo"
    for name in ("root", "tree.json", "environ.json", "measurements.json"):
        machine = tmp_path / f"without-{name}"
        shutil.copytree(whole, machine, ignore=lambda folder, _, name=name: {name} if folder == str(whole) else set())
        done = run("show", "--machine", machine)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"is incomplete: {name}{'/' * (name == 'root')} is missing" in done.stderr
    for name in ("environ.json", "user.json", "commands/x.json"):
        machine = tmp_path / f"damaged-{Path(name).stem}"
        shutil.copytree(whole, machine)
        (machine / name).write_bytes(b"\x91\x00\xff")
        done = run("diff", machine, "strix-halo")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{name}] is no JSON" in done.stderr
