"""What ``vulkaninfo --summary`` sees; on its own, because it talks to the drivers and can hang."""

from __future__ import annotations

import msgspec

from rocmend.core.supervise import Ending
from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.vulkan import parse_summary
from rocmend.machine.root import Root

COMMAND = ("vulkaninfo", "--summary")
TIME_LIMIT_S = 4.0


@collector(
    "vulkaninfo",
    facts={
        "vulkaninfo.status": "ok, absent, timeout, denied or error.",
        "vulkaninfo.devices": "Devices in the order programs see them: name, type, driver, driver_info, api_version.",
    },
    time_limit_s=6.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Run the tool under a time limit."""
    result = root.run(COMMAND, time_limit_s=TIME_LIMIT_S)
    source = " ".join(COMMAND)
    status = {
        Ending.NOT_FOUND: "absent",
        Ending.NOT_EXECUTABLE: "denied",
        Ending.TIMEOUT: "timeout",
    }.get(result.ending, "ok" if result.ok else "error")
    facts.put("vulkaninfo.status", status, source=source, raw=result.stderr.strip()[:300])
    if status == "ok":
        devices = [msgspec.structs.asdict(device) for device in parse_summary(result.stdout)]
        facts.put("vulkaninfo.devices", devices, source=source, raw=result.stdout)
    else:
        facts.gap("vulkaninfo.devices", f"vulkaninfo: {status}", source=source)
