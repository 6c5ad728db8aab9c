"""What is routed in this process, through which paths, and why."""

from __future__ import annotations

from rocmend.fallbacks import attend, conv


def explain() -> str:
    """Return, as text, what ``safe_conv`` and ``safe_attention`` do in this process and what their choices rest on."""
    lines: list[str] = []
    for name, handles in (("safe_conv", conv.SafeConv.active), ("safe_attention", attend.SafeAttention.active)):
        lines.extend(f"{name} is in force on {one.device_type} devices, mode {one.mode}" for one in handles)
        if not handles:
            lines.append(f"{name} is not in force")
    choices = (*conv.choices.all(), *attend.choices.all())
    lines.extend(str(choice) for choice in choices)
    if not choices:
        lines.append("nothing was chosen by trying yet")
    return "\n".join(lines)
