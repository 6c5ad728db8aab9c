"""What the kernel log of the boot before this one says: a GPU that took the machine down left its traces there."""

from __future__ import annotations

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.kernel_log import classify
from rocmend.machine.root import Root

JOURNAL = ("journalctl", "--dmesg", "--boot=-1", "--no-pager", "--output=short-iso")
FOLDER = "/var/log/journal"


@collector(
    "previous_boot",
    facts={
        "previous_boot.classes": "Number of kernel-log lines by class (as dmesg.classes) in the boot before this one."
    },
    time_limit_s=6.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Ask the journal, where it is kept across boots and may be read."""
    source = " ".join(JOURNAL)
    if not root.exists(FOLDER):
        facts.gap("previous_boot.classes", "no journal is kept across boots", source=FOLDER)
        return
    result = root.run(JOURNAL, time_limit_s=4.0)
    if not result.ok or "-- No entries --" in result.stdout[:200] or not result.stdout.strip():
        reason = result.stderr.strip().partition("\n")[0][:120] or result.ending.value
        facts.gap("previous_boot.classes", f"the journal has none to show: {reason}", source=source)
        return
    found = classify(result.stdout)
    raw = next((seen.first for seen in found.values()), "")
    facts.put("previous_boot.classes", {name: seen.count for name, seen in found.items()}, source=source, raw=raw)
