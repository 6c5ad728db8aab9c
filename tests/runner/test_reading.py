"""Reading processes, GPUs, control groups and the kernel log."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.runner.events import Sample
from rocmend.runner.gpu import GpuSampler
from rocmend.runner.kernel import KernelLog, OomCounter, killed_process, parse_record
from rocmend.runner.samples import TreeSampler, parse_stat, wait_channel

STAT = "17 (a) b (c) S 1 17 17 0 -1 4194304 5 0 0 0 250 50 100 0 20 0 3 0 777 8192 64 0 0 0"


def test_a_stat_line_with_brackets_in_the_name() -> None:
    process = parse_stat(17, STAT.encode())
    assert process is not None
    assert (process.state, process.parent, process.threads, process.began) == ("S", 1, 3, 777)
    assert process.cpu_s == 400 / os.sysconf("SC_CLK_TCK")
    assert process.rss_bytes == 64 * os.sysconf("SC_PAGE_SIZE")


@given(st.one_of(st.binary(max_size=300), st.integers(0, len(STAT)).map(lambda cut: STAT[:cut].encode())))
def test_any_stat_line_can_be_read(data: bytes) -> None:
    parse_stat(1, data)


def sample_of(source: str, seconds: float = 0.6) -> Sample:
    with subprocess.Popen([sys.executable, "-c", source]) as child:
        try:
            time.sleep(0.4)
            sampler = TreeSampler(child.pid, include_root=True)
            sampler.sample()
            time.sleep(seconds)
            sample = sampler.sample()
            assert sample is not None
            return sample
        finally:
            child.kill()


def test_a_spinning_process_wants_a_processor() -> None:
    sample = sample_of("while True: pass")
    assert sample.cpu_rate is not None
    assert sample.cpu_rate + (sample.cpu_wait_rate or 0.0) > 0.8
    assert sample.state == "R"


def test_a_waiting_process_uses_none() -> None:
    sample = sample_of("import time; time.sleep(60)")
    assert sample.cpu_rate == 0.0
    assert sample.state == "S"
    assert (sample.processes, sample.threads) == (1, 1)
    assert (sample.rss_bytes or 0) > 1 << 20


def test_a_process_that_is_gone_has_no_sample() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
    assert TreeSampler(child.pid).sample() is None
    assert wait_channel(child.pid) == ""


def test_the_busiest_gpu_is_read(tmp_path: Path) -> None:
    for card, busy, power in (("card0", "3\n", "9000000\n"), ("card1", "97\n", "120500000\n"), ("card2", "x", "")):
        device = tmp_path / card / "device"
        monitor = device / "hwmon" / "hwmon4"
        monitor.mkdir(parents=True)
        (device / "gpu_busy_percent").write_text(busy)
        (monitor / "power1_average").write_text(power)
        (monitor / "freq1_input").write_text("2400000000\n")
    sample = GpuSampler(tmp_path).sample()
    assert sample is not None
    assert (sample.busy_percent, sample.power_w, sample.clock_mhz) == (97.0, 120.5, 2400.0)


def test_no_gpu_no_sample(tmp_path: Path) -> None:
    assert GpuSampler(tmp_path).sample() is None
    assert GpuSampler(tmp_path / "absent").sample() is None


def test_kernel_records() -> None:
    record = b"3,1234,99887766,-;amdgpu 0000:03:00.0: amdgpu: MODE2 reset\n SUBSYSTEM=pci\n DEVICE=+pci:0000:03:00.0\n"
    assert parse_record(record) == "amdgpu 0000:03:00.0: amdgpu: MODE2 reset"
    assert killed_process("Out of memory: Killed process 4711 (python3) total-vm:1kB") == 4711
    assert killed_process("Memory cgroup out of memory: Killed process 8 (x)") == 8
    assert killed_process("oom-kill:constraint=CONSTRAINT_NONE") is None


@given(st.binary(max_size=200))
def test_any_kernel_record_can_be_read(data: bytes) -> None:
    killed_process(parse_record(data))


def test_a_log_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    log = KernelLog(str(tmp_path / "absent"))
    assert not log.readable
    assert log.new_lines() == []
    log.close()
    log.close()


@pytest.mark.skipif(not os.access("/dev/kmsg", os.W_OK), reason="the kernel log cannot be written here")
def test_only_new_lines_of_the_kernel_log_are_told() -> None:
    line = "rocmend test line, not from a driver: amdgpu: Freeing queue vital buffer 0x1000, queue evicted"
    Path("/dev/kmsg").write_text(f"<7>{line} (old)\n")
    log = KernelLog()
    Path("/dev/kmsg").write_text(f"<7>{line} (new)\n")
    Path("/dev/kmsg").write_text("<7>rocmend test line of no class\n")
    found = [item for item in log.new_lines() if "rocmend test" in item.text]
    log.close()
    assert [(item.classes, item.text) for item in found] == [(("queue_evicted",), f"{line} (new)")]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_kills_are_counted_from_now(tmp_path: Path, version: str) -> None:
    own = tmp_path / "cgroup"
    own.write_text("0::/work\n" if version == "v2" else "4:memory:/work\n0::/\n")
    name = "work/memory.events" if version == "v2" else "memory/work/memory.oom_control"
    events = tmp_path / name
    events.parent.mkdir(parents=True)
    events.write_text("oom 3\noom_kill 3\n")
    counter = OomCounter(tmp_path, own)
    assert counter.kills() == 0
    events.write_text("oom 5\noom_kill 5\n")
    assert counter.kills() == 2
    events.unlink()
    assert counter.kills() == 0
