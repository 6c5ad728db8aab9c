"""One word for how a tool ended."""

from __future__ import annotations

import re

from rocmend.core.supervise import CommandResult, Ending

_DENIED = re.compile(
    r"permission denied|not permitted|not a member of|is not member of|are you in the|requires? (?:root|sudo)"
    r"|unable to open /dev/kfd",
    re.IGNORECASE,
)
MAX_MESSAGE_CHARS = 300


def tool_status(result: CommandResult) -> tuple[str, str]:
    """Return ok, absent, timeout, denied or error, and what the tool said where it is not ok.

    Args:
        result: How the tool ended.
    """
    if result.ok:
        return "ok", ""
    if result.ending is Ending.NOT_FOUND:
        return "absent", ""
    if result.ending is Ending.TIMEOUT:
        stuck = "; it could not be killed: it waits inside the kernel" if result.unkillable else ""
        return "timeout", f"no answer within {result.time_ms / 1000:.0f} s{stuck}"
    said = " ".join(f"{result.stderr}\n{result.stdout}".split())[:MAX_MESSAGE_CHARS]
    if _DENIED.search(result.stderr) or _DENIED.search(result.stdout):
        return "denied", said
    how = {
        Ending.SIGNALLED: f"ended by signal {result.signal}",
        Ending.EXITED: f"exit status {result.exit_code}",
    }.get(result.ending, result.ending.value)
    return "error", f"{how}: {said}" if said else how
