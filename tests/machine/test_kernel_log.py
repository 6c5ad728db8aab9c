"""Each class of kernel-log line is recognised by its own example, in every form of log, and harmless lines by none."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.machine.parse.kernel_log import (
    CLASSES,
    LogClass,
    classify,
    last_boot,
    last_reset,
    line_time,
    relevant_lines,
)

HARMLESS = Path(__file__).with_name("healthy_boot.log").read_text()
"""Boot lines of machines that have no fault, many of them from public threads."""


@pytest.mark.parametrize("item", CLASSES, ids=lambda item: item.id)
def test_example_is_of_its_class(item: LogClass) -> None:
    for example in item.examples:
        for line in (
            example,
            f"[ 1922.162071] {example}",
            f"Nov 05 08:56:22.546687 host kernel: {example}",
            f"2026-11-05T08:56:22+0100 host kernel: {example}",
            f"<3>[  5.0] {example}",
            example.upper(),
        ):
            assert item.id in classify(line), line
        assert item.id in classify(relevant_lines(example + "\n"))
    assert item.examples
    assert item.meaning


def test_ids_are_unique_and_the_catalogue_is_covered() -> None:
    ids = [item.id for item in CLASSES]
    assert len(set(ids)) == len(ids)
    catalogue = (
        "mes_hang page_fault ring_timeout reset_mode1 reset_mode2 reset_other reset_failed oom_kill firmware_missing "
        "amdgpu_init_failed no_atomics gpu_hang sdma_error ecc_error svm_error vram_lost queue_evicted gpu_oom "
        "smu_error pcie_error iommu_fault unknown_parameter gttsize_deprecated reset_begin"
    )
    assert set(catalogue.split()) <= set(ids)


def test_harmless_lines_are_of_no_class() -> None:
    assert classify(HARMLESS) == {}


VARIANTS = [
    ("mes_hang", "amdgpu 0000:03:00.0: MES(1) failed to respond to msg=MISC (WAIT_REG_MEM)"),
    ("mes_hang", "amdgpu: MES ring buffer is full."),
    ("pcie_error", "pcieport 0000:00:01.1: AER: Corrected error message received from 0000:01:00.0"),
    (
        "pcie_error",
        "pcieport 0000:00:01.1: AER: Multiple Uncorrectable (Fatal) error message received from 0000:01:00.0",
    ),
    ("pcie_error", "amdgpu 0000:03:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"),
    ("page_fault", "amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:157 vmid:8 pasid:32781)"),
    ("page_fault", "amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:9 pasid:32771)"),
    ("page_fault", "amdgpu 0000:01:00.0: GPU fault detected: 146 0x0000480c for process x pid 1"),
    ("ring_timeout", "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, but soft recovered"),
    ("reset_mode1", "amdgpu: GPU mode1 reset"),
    ("reset_mode1", "amdgpu: GPU smu mode1 reset"),
    ("reset_other", "amdgpu 0000:01:00.0: amdgpu: PCI reset"),
    ("ring_reset", "amdgpu: Ring gfx_0.0.0 reset succeeded"),
    ("reset_recovered", "amdgpu 0000:04:00.0: [drm] device wedged, but no recovery needed"),
    ("reset_recovered", "amdgpu 0000:c5:00.0: amdgpu: GPU reset succeeded, trying to resume"),
    ("gpu_hang", "amdgpu 0000:04:00.0: [drm] device wedged, needs recovery"),
    ("reset_failed", "amdgpu 0000:03:00.0: GPU reset(1) failed"),
    ("reset_failed", "amdgpu: GPU mode1 reset failed"),
    ("gpu_hang", "amdgpu: The cp might be in an unrecoverable state due to an unsuccessful queues preemption"),
    ("reset_recovered", "[drm] device wedged, but recovered through reset"),
    ("reset_recovered", "amdgpu 0000:03:00.0: amdgpu: GPU reset(1) succeeded!"),
    ("ring_reset_failed", "amdgpu 0000:c5:00.0: amdgpu: Ring gfx_0.0.0 reset failed"),
    ("sdma_fault", "amdgpu 0000:0e:00.0: amdgpu: \t Faulty UTCL2 client ID: SDMA0 (0xd)"),
    (
        "mes_hang",
        "[drm:mes_v11_0_submit_pkt_and_poll_completion [amdgpu]] *ERROR* MES failed to response msg=14",
    ),
    ("sdma_error", "*ERROR* ring sdma0 timeout, signaled seq=13670, emitted seq=13672"),
    ("ecc_error", "amdgpu: 3 new correctable hardware errors detected in umc block"),
    ("oom_kill", "Memory cgroup out of memory: Killed process 4 (python)"),
    ("firmware_missing", "amdgpu 0000:03:00.0: Direct firmware load for amdgpu/gc_12_0_1_mes.bin failed with error -2"),
    ("amdgpu_init_failed", "amdgpu 0000:03:00.0: probe with driver amdgpu failed with error -22"),
    ("amdgpu_init_failed", "amdgpu: probe of 0000:03:00.0 failed with error -2"),
    ("no_atomics", "amdgpu 0000:03:00.0: amdgpu: PCIE atomic ops is not supported"),
    ("svm_error", "amdgpu: init_user_pages: Failed to register MMU notifier: -19"),
    ("smu_error", "amdgpu: Failed to power gate VPE!"),
]


NEAR_MISSES = [
    "xe 0000:03:00.0: [drm] device wedged, needs recovery",
    "i915 0000:00:02.0: [drm] device wedged, but recovered through reset",
    "[drm:intel_gt_reset [i915]] *ERROR* GPU reset(1) failed",
    "celery: Failed to remove queue default",
    "rabbitmq[88]: Failed to evict process queues",
    "i915 0000:00:02.0: [drm] *ERROR* ring rcs0 timeout",
    "radeon 0000:01:00.0: ring 0 stalled for more than 10000msec",
    "kvm_amd: svm_set_cr4 failed",
    "svm_train: error rate 0.2",
    "bench: exceeds resident system memory limit",
    "r8169 0000:06:00.0: link reset",
    "usb 2-1: link reset complete",
    "ata3: SATA link reset done",
    "iwlwifi 0000:05:00.0: soft reset",
    "vfio-pci 0000:0c:00.0: BACO reset",
    "vfio-pci 0000:0c:00.0: AMD_NAVI14: mode1 reset succeeded",
    "amdgpu 0000:0b:00.0: amdgpu: mode1 reset is supported",
    "nvidia-modeset: GPU reset(2) failed",
    "xe 0000:03:00.0: [drm] GPU reset begin",
    "nouveau 0000:01:00.0: fifo: ring gr reset failed",
    "radeon 0000:01:00.0: GPU fault detected: 146 0x0000480c",
    "radeon 0000:01:00.0: Fatal error during GPU init",
    "[drm:radeon_cs_ioctl [radeon]] *ERROR* Not enough memory for command submission!",
    "[drm:atom_op_jump [radeon]] *ERROR* hw_init of IP block <x> failed",
    "imx-sdma 20ec000.dma-controller: sdma hung",
    "mce: [Hardware Error]: RAS: uncorrectable error on CPU 3",
    "EDAC MC0: 1 new correctable hardware errors detected",
    "mlx5_core 0000:41:00.0: SMU: No response",
    'amdgpu 0000:c5:00.0: amdgpu: failed to load firmware "amdgpu/isp_4_1_1.bin" optional',
    "iwlwifi 0000:05:00.0: Direct firmware load for iwlwifi-ty-a0.ucode failed with error -2",
    "pcieport 0000:00:01.1: AER: enabled with IRQ 26",
    "python[9]: train: Out of memory: shrinking the batch",
    "snd_hda_intel 0000:0b:00.1: failed to remove hardware queue",
]


@pytest.mark.parametrize("line", NEAR_MISSES)
def test_lines_of_other_drivers_and_programs_are_of_no_class(line: str) -> None:
    for printed in (line, f"[ 1922.162071] {line}", f"Nov 05 08:56:22 host kernel: {line}"):
        assert classify(printed) == {}


@pytest.mark.parametrize(("name", "line"), VARIANTS)
def test_variants_of_drivers_old_and_new(name: str, line: str) -> None:
    assert name in classify(line)


RESETS = [
    (
        # https://github.com/ROCm/legacy-rocm-build/issues/6273
        """\
[127035.492298] amdgpu 0000:c5:00.0: amdgpu: Ring gfx_0.0.0 reset failed
[127035.492304] amdgpu 0000:c5:00.0: amdgpu: GPU reset begin!
[127037.563935] amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE
[127037.776773] amdgpu 0000:c5:00.0: amdgpu: MODE2 reset
[127037.807536] amdgpu 0000:c5:00.0: amdgpu: GPU reset succeeded, trying to resume
""",
        "recovered",
        {"reset_failed", "gpu_hang"},
    ),
    (
        # https://github.com/pop-os/cosmic-epoch/issues/3764
        """\
Aug 09 11:36:30.614131 kernel: amdgpu 0000:0c:00.0: Ring gfx_0.0.0 reset failed
Aug 09 11:36:30.614608 kernel: amdgpu 0000:0c:00.0: GPU reset begin!. Source:  1
Aug 09 11:36:30.797116 kernel: amdgpu 0000:0c:00.0: BACO reset
Aug 09 11:36:33.817132 kernel: amdgpu 0000:0c:00.0: GPU reset succeeded, trying to resume
""",
        "recovered",
        {"reset_failed", "gpu_hang"},
    ),
    (
        # https://github.com/ROCm/legacy-rocm-build/issues/5999
        """\
amdgpu 0000:04:00.0: amdgpu: Ring gfx_0.0.0 reset succeeded
amdgpu 0000:04:00.0: [drm] device wedged, but recovered through reset
""",
        "recovered",
        {"reset_failed", "gpu_hang"},
    ),
    (
        # https://github.com/ROCm/legacy-rocm-build/issues/2820
        """\
[284169.428828] amdgpu: MES might be in unrecoverable state, issue a GPU reset
[284169.428855] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!
[284169.548848] [drm:mes_v11_0_submit_pkt_and_poll_completion [amdgpu]] *ERROR* MES failed to response msg=14
""",
        "unfinished",
        {"reset_failed", "reset_recovered"},
    ),
    (
        # https://github.com/ROCm/legacy-rocm-build/issues/2804
        """\
[  649.100000] amdgpu 0000:0b:00.0: amdgpu: GPU reset begin!
[  649.500000] amdgpu 0000:0b:00.0: amdgpu: MODE1 reset
[  649.968330] [drm] VRAM is lost due to GPU reset!
[  650.160703] [drm:amdgpu_device_fw_loading [amdgpu]] *ERROR* resume of IP block <psp> failed -62
[  650.160935] amdgpu 0000:0b:00.0: amdgpu: GPU reset(1) failed
""",
        "failed",
        {"reset_recovered"},
    ),
    # the driver says which reset it tries before it tries it
    ("amdgpu 0000:0b:00.0: GPU reset begin!\namdgpu 0000:0b:00.0: amdgpu: MODE1 reset\n", "unfinished", set()),
    ("amdgpu 0000:0b:00.0: GPU reset begin!\namdgpu 0000:0b:00.0: amdgpu: PCI reset\n", "unfinished", set()),
    ("amdgpu 0000:0b:00.0: GPU reset begin!\namdgpu 0000:0b:00.0: GPU reset end with ret = 0\n", "recovered", set()),
    ("amdgpu 0000:0b:00.0: GPU reset begin!\namdgpu 0000:0b:00.0: GPU reset end with ret = -62\n", "failed", set()),
    ("amdgpu 0000:0b:00.0: amdgpu: MODE2 reset\n", None, {"reset_begin"}),  # at hibernation
    ("amdgpu 0000:0b:00.0: GPU reset begin!\n[drm] device wedged, but no recovery needed\n", "recovered", {"gpu_hang"}),
    (
        # filtered by "drm": https://github.com/xCollateral/VulkanMod/issues/213
        "[drm:amdgpu_job_timedout [amdgpu]] GPU reset begin!\n[drm] PCIE GART of 1024M enabled.\n",
        "recovered",
        {"reset_failed"},
    ),
    (
        # https://github.com/ROCm/legacy-rocm-build/issues/6018
        """\
[74126.1] amdgpu 0000:c5:00.0: amdgpu: GPU reset begin!
[74127.3] amdgpu 0000:c5:00.0: amdgpu: MODE2 reset
[74128.026595] amdgpu 0000:c5:00.0: amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0
""",
        "recovered",
        {"reset_failed"},
    ),
    (
        "amdgpu: GPU reset begin!\nLinux version 6.17.0\n[drm] PCIE GART of 512M enabled.\n",
        "unfinished",
        set(),
    ),
    (
        # other devices' lines
        """\
amdgpu 0000:0b:00.0: amdgpu: GPU reset(1) failed
ata3: SATA link reset done
mt7921e 0000:05:00.0: chip soft reset
r8169 0000:06:00.0 enp6s0: link reset
amdgpu 0000:0b:00.0: amdgpu: mode1 reset is supported
nvidia-modeset: GPU reset(2) succeeded
""",
        "failed",
        {"reset_other", "reset_mode1", "reset_recovered"},
    ),
]


@pytest.mark.parametrize(("log", "state", "absent"), RESETS, ids=range(len(RESETS)))
def test_how_the_last_reset_went(log: str, state: str, absent: set[str]) -> None:
    assert last_reset(log) == state
    assert not absent & set(classify(log))


A, B = "0000:03:00.0", "0000:43:00.0"


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        ((f"{A}: begin", f"{B}: begin", f"{B}: succeeded"), "unfinished"),
        ((f"{A}: begin", f"{B}: succeeded"), "unfinished"),
        ((f"{A}: begin", f"{B}: begin", f"{B}: succeeded", f"{A}: succeeded"), "recovered"),
        ((f"{A}: begin", f"{B}: begin", "succeeded", f"{A}: succeeded"), "recovered"),
        ((f"{A}: begin", f"{B}: begin", "succeeded"), "unfinished"),
        ((f"{A}: begin", "succeeded"), "recovered"),
        (("begin", f"{A}: succeeded"), "recovered"),
        ((f"{A}: begin", f"{A}: failed", f"{B}: begin", f"{B}: succeeded"), "failed"),
        ((f"{A}: begin", f"{B}: ring gfx_0.0.0 uses VM inv eng 0 on hub 0"), "unfinished"),
        ((f"{A}: begin", f"{A}: ring gfx_0.0.0 uses VM inv eng 0 on hub 0"), "recovered"),
    ],
)
def test_each_card_has_its_own_last_reset(lines: tuple[str, ...], state: str) -> None:
    words = {
        "begin": "GPU reset begin!",
        "succeeded": "GPU reset succeeded, trying to resume",
        "failed": "GPU reset end with ret = -110",
    }
    log = "\n".join(
        f"amdgpu {device}{colon}amdgpu: {words.get(said, said)}"
        for device, colon, said in (line.rpartition(": ") for line in lines)
    )
    assert last_reset(log) == state


def test_a_log_without_resets_says_so() -> None:
    assert last_reset(HARMLESS) is None


def test_counts_and_times() -> None:
    log = (
        "[   10.5] amdgpu: MES failed to respond to msg=SUSPEND\n"
        "[   11.0] amdgpu: GPU mode1 reset failed\n"
        "[   99.25] amdgpu: MES failed to respond to msg=REMOVE_QUEUE"
    )
    found = classify(log)
    assert set(found) == {"mes_hang", "reset_failed"}  # a failed reset is no reset
    seen = found["mes_hang"]
    assert (seen.count, seen.first_time, seen.last_time) == (2, "10.5", "99.25")
    assert seen.first.endswith("msg=SUSPEND")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[ 1922.162071] x", "1922.162071"),
        ("<6>[    0.000000] x", "0.000000"),
        ("Nov  5 08:56:22 host kernel: x", "Nov  5 08:56:22"),
        ("Aug 05 08:56:24.669800 host kernel: x", "Aug 05 08:56:24.669800"),
        ("2026-11-05T08:56:22+0100 host kernel: x", "2026-11-05T08:56:22+0100"),
        ("2026-11-05T08:56:22.123456+01:00 host kernel: x", "2026-11-05T08:56:22.123456+01:00"),
        ("no time at all", ""),
        ("", ""),
    ],
)
def test_times(line: str, expected: str) -> None:
    assert line_time(line) == expected


def test_only_the_last_boot_of_a_log_file_counts() -> None:
    log = (
        "Nov 01 10:00:00 host kernel: Linux version 6.17.0\nNov 01 10:10:00 host kernel: GPU reset begin!\n"
        "Nov 02 10:00:00 host kernel: Linux version 6.17.0\nNov 02 10:10:00 host kernel: fine\n"
    )
    assert last_boot(log).startswith("Nov 02 10:00:00")
    assert classify(last_boot(log)) == {}
    assert last_boot("no start in it") == "no start in it"


def test_irrelevant_lines_are_dropped() -> None:
    log = "[ 1.0] wlan0: authenticate with 3c:7c:3f:1a:2b:3c\n[ 2.0] amdgpu: GPU reset begin!\n[ 3.0] usb 1-1: Serial\n"
    assert relevant_lines(log) == "[ 2.0] amdgpu: GPU reset begin!\n"


def test_a_large_log_takes_little_time() -> None:
    line = "[ 1927.068795] systemd[1]: queue of timeout, reset failed for sdma and mes, aer out of memory? no\n"
    start = time.process_time()
    classify(line * 40_000)
    classify("x" * 8_000_000)
    classify("mes" * 2_000_000)
    assert time.process_time() - start < 10


pieces = st.sampled_from([line for item in CLASSES for line in item.examples] + HARMLESS.splitlines()) | st.text(
    max_size=80
)


@given(st.lists(pieces, max_size=20).map("\n".join))
def test_any_log_is_survived_and_trimming_changes_nothing(log: str) -> None:
    whole = {name: seen.count for name, seen in classify(log).items()}
    kept = {name: seen.count for name, seen in classify(relevant_lines(log)).items()}
    assert whole == kept
    last_boot(log)


@given(
    st.sampled_from(CLASSES),
    st.text(st.characters(exclude_characters="\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029"), max_size=40),
)
def test_a_class_is_found_behind_any_prefix(item: LogClass, prefix: str) -> None:
    assert item.id in classify(f"{prefix} {item.examples[0]}")
