"""What sensors say while blocks run is kept with the result, and what falsifies figures is flagged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rocmend.bench.case import Case
from rocmend.bench.conditions import conditions
from rocmend.bench.measure import Effort, measure
from rocmend.bench.session import Block, Prepared, Session, Subject
from rocmend.bench.telemetry import Reading, Smi, Telemetry, parse_smi, summarized
from rocmend.core.verdict import Verdict


class _Steady(Session):
    def __init__(self, watch: Telemetry) -> None:
        self.watch = watch

    def prepare(self, case: Case) -> Prepared:
        del case
        return Prepared(Verdict.PASS, subject=Subject("gfx1151"))

    def block(self, case: Case, time_s: float, least: int = 1) -> Block:
        del case, time_s, least
        self.watch.read()
        return Block((1.0,))

    def close(self) -> None:
        """Hold nothing."""


def test_readings_of_the_blocks_are_kept_with_the_case() -> None:
    clocks: Iterator[dict[str, Any]] = iter(
        [{"clock_mhz": clock, "power_w": 50.0, "throttle": ("temperature",)} for clock in (2900.0, 2850.0, 2300.0)]
    )
    watch = Telemetry([lambda: next(clocks)])
    made = measure(Case("made/a", "made", {}, "ms"), {"a": _Steady(watch)}, Effort(0.0, 3, 3), watch=watch)
    found = made["a"].telemetry
    assert found["clock_mhz"] == {"mean": 2683.3, "low": 2300.0, "high": 2900.0}
    assert found["power_w"]["mean"] == 50.0
    assert found["throttle"] == {"temperature": 1.0}
    assert found["notes"] == [
        "the clock fell by 21 % between blocks: 2,900 to 2,300 MHz",
        "throttled by temperature in 100 % of the readings",
    ]


def test_a_clock_that_rises_or_stays_is_not_flagged() -> None:
    for clocks in ((2000.0, 2900.0, 2800.0), (2900.0, 2900.0), (2900.0,)):
        blocks = [[Reading(float(n), clock_mhz=clock)] for n, clock in enumerate(clocks)]
        assert "notes" not in summarized(blocks, gpu=True)
    assert summarized([[], []], gpu=True) == {}


def test_a_gpu_s_clock_says_nothing_about_a_run_on_the_cpu() -> None:
    blocks = [[Reading(0.0, clock_mhz=clock, cpu_clock_mhz=4000.0, throttle=("power limit",))] for clock in (9.0, 1.0)]
    assert summarized(blocks, gpu=False) == {"cpu_clock_mhz": {"mean": 4000.0, "low": 4000.0, "high": 4000.0}}


def test_a_run_that_waited_for_the_processor_is_flagged() -> None:
    found = summarized([[], []], gpu=False, waited=(0.3, 0.1))
    assert found == {"waited": 0.2, "notes": ["waited for the processor in 20 % of the time: this machine is busy"]}
    assert summarized([[], []], gpu=False, waited=(0.01, 0.0)) == {}


def test_a_sensor_that_fails_leaves_the_others() -> None:
    def broken() -> dict[str, Any]:
        raise OSError("the driver is gone")

    watch = Telemetry([broken, lambda: {"power_w": 1.0}])
    begin = time.monotonic()
    watch.read()
    assert [one.power_w for one in watch.between(begin, time.monotonic())] == [1.0]


@pytest.mark.parametrize(
    ("line", "clock", "throttle"),
    [
        ("97, 1755, 2619, 692.10, 64, 0x0000000000000004", 1755.0, ("power limit",)),
        ("97, 1755, 2619, 692.10, 64, 0x0000000000000060", 1755.0, ("temperature",)),
        ("0, 345, 2619, [N/A], 30, 0x0000000000000001", 345.0, ()),
        ("[N/A], [N/A], [N/A], [N/A], [N/A], [N/A]", None, ()),
    ],
)
def test_a_line_of_nvidia_smi(line: str, clock: float | None, throttle: tuple[str, ...]) -> None:
    found = parse_smi(line)[1]
    assert (found["clock_mhz"], found["throttle"]) == (clock, throttle)


def test_a_line_that_is_none_says_nothing() -> None:
    assert parse_smi("NVIDIA-SMI has failed\n") == (-1.0, {})


def test_the_busiest_gpu_of_nvidia_smi_is_read(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '3, 345, 2619, 70, 30, 0x1'\necho '99, 1755, 2619, 690, 64, 0x4'\n")
    program.chmod(0o755)
    smi = Smi(str(program))
    smi.thread.join(timeout=30)
    assert smi.read()["clock_mhz"] == 1755.0
    smi.close()
    broken = Smi(str(tmp_path / "nothing"))
    assert broken.read() == {}
    broken.close()


def _write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_what_may_falsify_figures_is_said_before(tmp_path: Path) -> None:
    root = _write(
        tmp_path,
        {
            "sys/class/power_supply/AC/type": "Mains\n",
            "sys/class/power_supply/AC/online": "0\n",
            "sys/class/power_supply/BAT0/type": "Battery\n",
            "sys/firmware/acpi/platform_profile": "low-power\n",
            "sys/class/drm/card1/device/power_dpm_force_performance_level": "low\n",
            "sys/class/drm/card1/device/gpu_busy_percent": "64\n",
            "sys/class/kfd/kfd/proc/4711/pasid": "1\n",
            "proc/4711/comm": "python3\n",
        },
    )
    assert conditions(gpu=True, root=root, watch_s=0.0) == (
        "this machine runs on its battery, which limits its power",
        "the power profile of this machine is low-power, not performance or balanced",
        "the performance level of card1 is set to low, not auto",
        "card1 was 64 % busy before the run",
        "1 other process had a GPU open before the run: python3",
    )
    assert len(conditions(gpu=False, root=root, watch_s=0.0)) == 2


def test_a_machine_in_order_has_no_notes(tmp_path: Path) -> None:
    root = _write(
        tmp_path,
        {
            "sys/class/power_supply/AC/type": "Mains\n",
            "sys/class/power_supply/AC/online": "1\n",
            "sys/class/power_supply/mouse/status": "Discharging\n",
            "sys/class/power_supply/mouse/scope": "Device\n",
            "sys/firmware/acpi/platform_profile": "balanced\n",
            "sys/class/drm/card1/device/power_dpm_force_performance_level": "auto\n",
            "sys/class/drm/card1/device/gpu_busy_percent": "1\n",
            "proc/stat": "cpu  10 0 10 900 0 0 0 0 0 0\n",
        },
    )
    assert conditions(gpu=True, root=root, watch_s=0.0) == ()
    assert conditions(gpu=True, root=tmp_path / "nothing", watch_s=0.0) == ()


def test_a_busy_processor_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = _write(tmp_path, {"proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0\n"})

    def pass_time(_seconds: float) -> None:
        (root / "proc/stat").write_text("cpu  150 0 130 820 0 0 0 0 0 0\n")

    monkeypatch.setattr("rocmend.bench.conditions.time.sleep", pass_time)
    assert conditions(gpu=False, root=root) == ("the processor was 80 % busy before the run",)
