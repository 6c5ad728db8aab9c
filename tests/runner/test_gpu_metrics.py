"""The throttle fields of amdgpu's ``gpu_metrics``, in the layouts of the kernel's header."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from rocmend.runner.gpu import GpuSampler
from rocmend.runner.gpu_metrics import Throttle, parse_throttle

TEMP_HOTSPOT, PPT0 = 1 << 36, 1 << 0


def metrics(size: int, revision: tuple[int, int], fields: dict[int, tuple[str, int]]) -> bytes:
    data = bytearray(size)
    struct.pack_into("<HBB", data, 0, size, *revision)
    for place, (form, value) in fields.items():
        struct.pack_into(f"<{form}", data, place, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("size", "revision", "place"), [(120, (1, 3), 112), (128, (2, 2), 120), (152, (2, 3), 120), (168, (2, 4), 120)]
)
def test_the_bits_that_do_not_depend_on_the_asic(size: int, revision: tuple[int, int], place: int) -> None:
    found = parse_throttle(metrics(size, revision, {place: ("Q", TEMP_HOTSPOT | PPT0)}))
    assert found is not None
    assert found.now == ("power limit", "temperature of the hotspot")
    assert parse_throttle(metrics(size, revision, {})) == Throttle()
    assert parse_throttle(metrics(size, revision, {place: ("Q", 2**64 - 1)})) is None


def test_counters_count_where_they_grow() -> None:
    before, after = (parse_throttle(metrics(264, (3, 0), {240: ("I", 7), 248: ("I", value)})) for value in (100, 130))
    assert before is not None
    assert after is not None
    assert (before.now, after.since(None), after.since(after)) == ((), (), ())
    assert after.since(before) == ("temperature",)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x08", metrics(120, (1, 3), {})[:60], metrics(64, (1, 3), {}), metrics(120, (9, 9), {}), b"\xff" * 200],
)
def test_what_is_cut_or_unknown_says_nothing(data: bytes) -> None:
    assert parse_throttle(data) is None


def test_a_gpu_is_read_closely(tmp_path: Path) -> None:
    device = tmp_path / "card1" / "device"
    monitor = device / "hwmon" / "hwmon4"
    monitor.mkdir(parents=True)
    (device / "gpu_busy_percent").write_text("97\n")
    (device / "pp_dpm_sclk").write_text("0: 600Mhz\n1: 2900Mhz *\n")
    (device / "pp_dpm_mclk").write_text("0: 500Mhz\n1: 1000Mhz *\n")
    (device / "gpu_metrics").write_bytes(metrics(128, (2, 2), {120: ("Q", TEMP_HOTSPOT)}))
    (monitor / "power1_average").write_text("55000000\n")
    (monitor / "temp1_input").write_text("61000\n")
    (monitor / "temp2_input").write_text("92500\n")
    sampler = GpuSampler(tmp_path)
    sample = sampler.sample(closely=True)
    assert sample is not None
    assert (sample.clock_mhz, sample.memory_clock_mhz, sample.power_w) == (2900, 1000, 55.0)
    assert (sample.temperature_c, sample.throttle) == (92.5, ("temperature of the hotspot",))
    (device / "gpu_metrics").unlink()
    sample = sampler.sample(closely=True)
    assert sample is not None
    assert sample.throttle == ()
