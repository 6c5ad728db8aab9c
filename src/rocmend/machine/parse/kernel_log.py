"""Classes of kernel-log lines that say something about a GPU's health.

A class is a row of the table below; every row's example must match its own pattern, which a test checks. Messages are
those of drivers/gpu/drm/amd and mm/oom_kill.c in Linux 5.15 to 7.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

MAX_CHARS = 16 << 20
"""Characters looked at; the kernel's ring buffer holds far less."""

MAX_LINE_CHARS = 2000


class LogClass(msgspec.Struct, frozen=True):
    """A kind of line.

    Attributes:
        id: Its name, as in ``dmesg.<id>``.
        words: Every such line holds one of these, in lower case: they are looked for first, being cheap.
        pattern: Regular expression searched for, without regard to case.
        meaning: What such a line says.
        example: A line of the kind.
    """

    id: str
    words: tuple[str, ...]
    pattern: str
    meaning: str
    example: str


CLASSES = (
    LogClass(
        "mes_hang",
        ("mes",),
        r"\bMES(?:\(\d+\))? (?:failed to respond to msg=|ring buffer is full|might be in unrecoverable)",
        "The MES scheduler firmware does not answer the driver.",
        "amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=SUSPEND",
    ),
    LogClass(
        "page_fault",
        ("page fault (", "vm fault (", "gpu fault detected"),
        r"\[\w*hub[\d.]*\](?: [\w-]+)? page fault \(|\bVM fault \(0x|GPU fault detected: \d+ 0x",
        "A program on the GPU touched memory that is not mapped.",
        "amdgpu 0000:03:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:40 vmid:8 pasid:32770)",
    ),
    LogClass(
        "ring_timeout",
        ("timeout",),
        r"\bring [\w.]+ timeout\b",
        "A job on one of the GPU's rings did not finish in time.",
        "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring comp_1.2.0 timeout, signaled seq=41, emitted seq=43",
    ),
    LogClass(
        "reset_begin",
        ("gpu reset begin",),
        r"\bGPU reset begin",
        "The driver begins to reset the GPU.",
        "amdgpu: GPU reset begin!",
    ),
    LogClass(
        "reset_mode1",
        ("mode1 reset", "mode-1 reset"),
        r"\bmode-?1 reset\b(?! failed)",
        "The whole GPU was reset (MODE1).",
        "amdgpu 0000:03:00.0: amdgpu: MODE1 reset",
    ),
    LogClass(
        "reset_mode2",
        ("mode2 reset", "mode-2 reset"),
        r"\bmode-?2 reset\b(?! failed)",
        "The compute and graphics engines were reset (MODE2).",
        "amdgpu 0000:c5:00.0: amdgpu: MODE2 reset",
    ),
    LogClass(
        "reset_other",
        ("baco reset", "mode0 reset", "mode3 reset", "link reset", "config reset", "soft reset", "reset succeeded"),
        r"\b(?:BACO|MODE0|MODE3|link|pci config|soft) reset\b(?! failed)|\b[Rr]ing [\w.]+ reset succeeded",
        "Another kind of reset: BACO, PCI configuration, one queue.",
        "amdgpu 0000:03:00.0: amdgpu: BACO reset",
    ),
    LogClass(
        "reset_failed",
        ("failed", "gpu reset end"),
        r"\bGPU reset\(\d+\) failed|GPU reset end with ret = -|\b(?:mode-?[12]|ASIC|BACO) reset failed"
        r"|GPU Recovery Failed|\bring [\w.]+ reset failed",
        "A reset failed; only a reboot brings the GPU back.",
        "amdgpu 0000:03:00.0: amdgpu: GPU reset end with ret = -110",
    ),
    LogClass(
        "vram_lost",
        ("vram is lost",),
        r"\bVRAM is lost due to GPU reset",
        "A reset lost device memory.",
        "VRAM is lost due to GPU reset!",
    ),
    LogClass(
        "gpu_hang",
        ("fence wait loop", "unrecoverable state", "preemption", "queue", "wedged", "hws hang"),
        r"qcm fence wait loop timeout|cp might be in an unrecoverable state|queue preemption time ?out"
        r"|Failed to (?:evict|suspend|quiesce|remove) (?:process )?queues?\b|\bdevice wedged\b|\bHWS hang",
        "The compute queues could not be stopped: the GPU hangs.",
        "amdgpu: qcm fence wait loop timeout expired",
    ),
    LogClass(
        "queue_evicted",
        ("freeing queue",),
        r"Freeing queue vital buffer",
        "A process freed memory that its running queue needs; the queue was taken away.",
        "amdgpu: Freeing queue vital buffer 0x7a1000000000, queue evicted",
    ),
    LogClass(
        "sdma_error",
        ("sdma",),
        r"\bring sdma[\w.]* (?:timeout|test failed)|IP block <sdma\w+> failed|\bsdma\w* (?:hang|hung)\b",
        "A copy engine (SDMA) does not work.",
        "amdgpu 0000:03:00.0: [drm:amdgpu_ring_test_helper [amdgpu]] *ERROR* ring sdma1 test failed (-110)",
    ),
    LogClass(
        "ecc_error",
        ("hardware error", "uncorrectable", "poison"),
        r"\b[1-9]\d* (?:new )?(?:un)?correctable hardware errors? detected|\bUncorrectable error\b.{0,80}\bamdgpu"
        r"|amdgpu.{0,80}\bpoison (?:is )?consum|RAS: .{0,60}(?:uncorrectable|poison)",
        "The GPU's memory or logic reported an ECC error.",
        "amdgpu 0000:c1:00.0: amdgpu: 2 uncorrectable hardware errors detected in total in umc block",
    ),
    LogClass(
        "svm_error",
        ("svm", "mmu notifier", "resident system memory"),
        r"\bSVM mapping failed|\bsvm_\w+.{0,120}\b(?:fail|error|ret -)|Failed to register MMU notifier"
        r"|exceeds resident system memory limit",
        "Shared virtual memory could not be mapped.",
        "amdgpu: SVM mapping failed, exceeds resident system memory limit",
    ),
    LogClass(
        "gpu_oom",
        ("command submission", "[ttm]", "failed to allocate"),
        r"Not enough memory for command submission|\[TTM\] (?:Buffer eviction failed|Out of )"
        r"|amdgpu.{0,80}\bfailed to allocate (?:memory|bo|buffer)",
        "The driver found no memory for a GPU buffer.",
        "[drm:amdgpu_cs_ioctl [amdgpu]] *ERROR* Not enough memory for command submission!",
    ),
    LogClass(
        "oom_kill",
        ("out of memory",),
        r"\b(?:Out of memory|Memory cgroup out of memory): Kill(?:ed)? process",
        "The kernel ended a process because memory ran out.",
        "Out of memory: Killed process 4127 (python3) total-vm:98304000kB, anon-rss:61440000kB",
    ),
    LogClass(
        "firmware_missing",
        ("firmware load", "failed to load"),
        r"Direct firmware load for amdgpu/\S+ failed|amdgpu.{0,80}failed to load (?:firmware|ucode|gpu_info)",
        "A firmware file that the driver asked for is not installed (some it can do without).",
        "amdgpu 0000:03:00.0: Direct firmware load for amdgpu/gc_11_5_1_pfp.bin failed with error -2",
    ),
    LogClass(
        "amdgpu_init_failed",
        ("gpu init", "probe", "device_ip_init"),
        r"Fatal error during GPU init|amdgpu: probe of \S+ failed|probe with driver amdgpu failed"
        r"|amdgpu_device_ip_init failed",
        "The driver gave the GPU up when it started.",
        "amdgpu 0000:03:00.0: amdgpu: Fatal error during GPU init",
    ),
    LogClass(
        "no_atomics",
        ("atomic",),
        r"PCIE atomic ops is not supported|PCI rejects atomics",
        "The slot or the platform lacks PCIe atomics (an APU prints this too, and there it means nothing).",
        "kfd kfd: amdgpu: skipped device 1002:73bf, PCI rejects atomics 730<0",
    ),
    LogClass(
        "smu_error",
        ("smu:", "power gate", "gfxoff"),
        r"\bSMU: (?:I'm not done|No response|response:0x)|Failed to power gate \w+!|Failed to disable gfxoff",
        "The power-management firmware (SMU) does not answer.",
        "amdgpu 0000:c5:00.0: amdgpu: SMU: I'm not done with your previous command: SMN_C2PMSG_66:0x00000032",
    ),
    LogClass(
        "pcie_error",
        ("bus error", "aer"),
        r"PCIe Bus Error: severity=|\bAER: (?:Un|C)orrect(?:ed|able)|pcie?port.{0,60}\bAER\b",
        "The PCIe link has errors.",
        "pcieport 0000:00:01.1: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)",
    ),
    LogClass(
        "iommu_fault",
        ("page_fault", "amd-vi", "dmar"),
        r"IO_PAGE_FAULT|AMD-Vi: Completion-Wait loop timed out|DMAR:.{0,40}\bfault",
        "A device touched memory that the IOMMU does not grant it.",
        "AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:03:00.0 domain=0x001b address=0xd0000000 flags=0x0020]",
    ),
    LogClass(
        "unknown_parameter",
        ("unknown parameter",),
        r"\b(?:amdgpu|amdttm|ttm): unknown parameter '",
        "A module parameter is misspelled or gone.",
        "amdgpu: unknown parameter 'cwsr_enabled' ignored",
    ),
    LogClass(
        "gttsize_deprecated",
        ("gttsize",),
        r"gttsize via module parameter is deprecated",
        "amdgpu.gttsize is set; ttm.pages_limit took its place.",
        "amdgpu 0000:c5:00.0: amdgpu: [drm] Configuring gttsize via module parameter is deprecated",
    ),
)

_MONOTONIC = re.compile(r"^(?:<\d{1,3}>)?\[[ \t]{0,10}(\d{1,10}\.\d{1,9})\]")
_STAMP = re.compile(
    r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.,+:Z-]{0,20}|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?)\s"
)
_BOOT = re.compile(r"\bLinux version \d")
_RELEVANT = (
    r"amdgpu|amdkfd|\bkfd\b|\bdrm\b|\bttm\b|amdxdna|AMD-Vi|\biommu\b|DMAR|out of memory|\boom|pcieport|PCIe Bus Error"
    r"|\bAER\b|Linux version|Command line|\bVRAM\b|\bGTT\b|\bEDAC\b|\bSVM\b|MMU notifier"
)


class Seen(msgspec.Struct, frozen=True):
    """The lines of one class.

    Attributes:
        count: How many.
        first: The first one.
        first_time: Its time as printed: seconds since the start, or a date; empty where none is printed.
        last_time: The last one's.
    """

    count: int
    first: str
    first_time: str
    last_time: str


def classify(text: str) -> dict[str, Seen]:
    """Return what classes of lines a kernel log holds, from the output of dmesg or journalctl or a log file.

    A line can be of several classes (a timeout of an SDMA ring is a ring timeout too).
    """
    data = text[:MAX_CHARS].encode(errors="replace")
    lower = data.lower()  # of bytes: ASCII only, so that offsets stay
    found: dict[str, Seen] = {}
    for item in CLASSES:
        starts = {start for word in item.words for start in _line_starts(lower, word.encode())}
        if not starts:
            continue  # most logs have none of most classes, so most patterns are never compiled
        pattern = _compiled(item)
        lines = [data[start : _line_end(data, start)] for start in sorted(starts)]
        hits = [line.decode(errors="replace") for line in lines if pattern.search(line)]
        if hits:
            found[item.id] = Seen(len(hits), hits[0], line_time(hits[0]), line_time(hits[-1]))
    return found


def _compiled(item: LogClass) -> re.Pattern[bytes]:
    return re.compile(item.pattern.encode(), re.IGNORECASE)  # the re module keeps what it compiled


def _line_starts(data: bytes, word: bytes) -> Iterator[int]:
    """Yield where each line begins that holds ``word``."""
    at = data.find(word)
    while at >= 0:
        yield data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        at = data.find(word, end) if end >= 0 else -1


def _line_end(data: bytes, start: int) -> int:
    end = data.find(b"\n", start, start + MAX_LINE_CHARS)
    return end if end >= 0 else start + MAX_LINE_CHARS


def line_time(line: str) -> str:
    """Return a line's time as printed, or an empty string."""
    match = _MONOTONIC.match(line) or _STAMP.match(line)
    return match[1] if match else ""


def last_boot(text: str) -> str:
    """Return the part of a log file since the last start of the kernel (all of it where no start is in it)."""
    start = 0
    for match in _BOOT.finditer(text):
        start = text.rfind("\n", 0, match.start()) + 1
    return text[start:]


def relevant_lines(text: str) -> str:
    """Return the lines that concern GPUs, memory or PCI: what a capture keeps of a kernel log.

    A line of any class is among them, so that classifying what is left gives the same result.
    """
    relevant = re.compile(_RELEVANT, re.IGNORECASE)
    patterns = [_compiled(item) for item in CLASSES]
    return "\n".join(
        line
        for line in text.split("\n")
        if not line
        or relevant.search(line[:MAX_LINE_CHARS])
        or any(pattern.search(line[:MAX_LINE_CHARS].encode(errors="replace")) for pattern in patterns)
    )
