"""What the kernel log says about the GPU's health, in this boot."""

from __future__ import annotations

import re

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.kernel_log import CLASSES, classify, last_boot, last_reset
from rocmend.machine.root import ReadError, Root

DMESG = ("dmesg",)
JOURNAL = ("journalctl", "--dmesg", "--boot", "--no-pager", "--output=short-monotonic")
LOG_FILE = "/var/log/kern.log"
MAX_LOG_BYTES = 8 << 20


@collector(
    "dmesg",
    facts={
        "dmesg.readable": "The kernel log of this boot could be read.",
        **{f"dmesg.{item.id}": f"Number of lines: {item.meaning}" for item in CLASSES},
        "dmesg.last_reset": "How the GPU's last reset went: recovered, failed, unfinished; null where there was none.",
        "dmesg.classes": "Number of lines by class, of those classes that occur.",
        "dmesg.times": "Time of the first and last line by class, as printed.",
    },
    time_limit_s=10.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Read the log by dmesg, the journal or the log file, whichever is allowed, and count its classes."""
    log, source, refusals = read_log(root)
    if log is None:
        told = "; ".join(refusals)
        denied = re.search(r"not permitted|permission denied", told, re.IGNORECASE)
        why = f"the kernel log cannot be read {'without root' if denied else f'({told})'}"
        facts.put("dmesg.readable", False, source=told)
        for key in (*(f"dmesg.{item.id}" for item in CLASSES), "dmesg.last_reset", "dmesg.classes", "dmesg.times"):
            facts.gap(key, why, source="dmesg")
        return
    found = classify(log)
    facts.put("dmesg.readable", True, source=source)
    for item in CLASSES:
        seen = found.get(item.id)
        facts.put(f"dmesg.{item.id}", seen.count if seen else 0, source=source, raw=seen.first if seen else "")
    facts.put("dmesg.last_reset", last_reset(log), source=source)
    facts.put("dmesg.classes", {name: seen.count for name, seen in found.items()}, source=source)
    times = {name: {"first": seen.first_time, "last": seen.last_time} for name, seen in found.items()}
    facts.put("dmesg.times", times, source=source)


def read_log(root: Root) -> tuple[str | None, str, list[str]]:
    """Return the kernel log (None where nothing may be read), where it was read, and what was refused."""
    refusals: list[str] = []
    for argv, limit in ((DMESG, 3.0), (JOURNAL, 4.0)):
        result = root.run(argv, time_limit_s=limit)
        if result.ok and result.stdout.strip() and "-- No entries --" not in result.stdout[:200]:
            return result.stdout, " ".join(argv), refusals
        first = result.stderr.strip().partition("\n")[0][:120]
        refusals.append(f"{argv[0]}: {first or result.ending.value}")
    try:
        text = root.read_or_none(LOG_FILE, max_bytes=MAX_LOG_BYTES)
    except ReadError as error:
        refusals.append(f"{LOG_FILE}: {error.message}")
        text = None
    return (None if text is None else last_boot(text)), LOG_FILE, refusals
