"""What AMD's own management tools say: amd-smi and the older rocm-smi. Either may be absent, and either may hang."""

from __future__ import annotations

from typing import Any

from rocmend.core.errors import DataError
from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.smi import amd_smi_cards, decode, rocm_smi_cards
from rocmend.machine.root import Root
from rocmend.machine.toolstatus import tool_status

AMD_SMI_STATIC = ("amd-smi", "static", "--json")
AMD_SMI_METRIC = ("amd-smi", "metric", "--json")
ROCM_SMI = ("rocm-smi", "--showallinfo", "--json")
TIME_LIMIT_S = 8.0


@collector(
    "smi",
    facts={
        "amd_smi.status": "How `amd-smi static` ended: ok, absent, timeout, error, denied.",
        "amd_smi.message": "What it said where it did not end well; empty otherwise.",
        "rocm_smi.status": "How rocm-smi ended: ok, absent, timeout, error, denied.",
        "rocm_smi.message": "What it said where it did not end well; empty otherwise.",
        "rocm_smi.driver_version": "Version of the driver as rocm-smi prints it; null where it prints none.",
        "smi.cards": "GPUs as amd-smi sees them, else as rocm-smi does: index, tool, name, slot, gfx, memory, clocks …",
    },
    time_limit_s=30.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Run amd-smi, then rocm-smi; a tool that hung once is not asked again."""
    static, status = _ask(root, facts, "amd_smi", AMD_SMI_STATIC)
    metric = _decoded(root, AMD_SMI_METRIC) if status == "ok" else None
    cards = amd_smi_cards(static, metric)
    source = "; ".join(" ".join(argv) for argv in (AMD_SMI_STATIC, AMD_SMI_METRIC))
    older, older_status = _ask(root, facts, "rocm_smi", ROCM_SMI)
    older_cards, driver = rocm_smi_cards(older)
    if older_status == "ok":
        facts.put("rocm_smi.driver_version", driver, source=" ".join(ROCM_SMI))
    else:
        facts.gap("rocm_smi.driver_version", f"rocm-smi: {older_status}", source=" ".join(ROCM_SMI))
    if cards:
        facts.put("smi.cards", cards, source=source)
    elif older_cards or "ok" in {status, older_status}:
        facts.put("smi.cards", older_cards, source=" ".join(ROCM_SMI))
    else:
        facts.gap("smi.cards", f"amd-smi: {status}; rocm-smi: {older_status}", source=source)


def _ask(root: Root, facts: FactSink, prefix: str, argv: tuple[str, ...]) -> tuple[Any, str]:
    """Run a tool, state how it ended, and return its JSON (None without one) and its status."""
    result = root.run(argv, time_limit_s=TIME_LIMIT_S)
    status, message = tool_status(result)
    data = None
    if status == "ok":
        try:
            data = decode(result.stdout, argv[0])
        except DataError as error:
            status, message = "error", error.message
    facts.put(f"{prefix}.status", status, source=" ".join(argv), raw=message)
    facts.put(f"{prefix}.message", message, source=" ".join(argv))
    return data, status


def _decoded(root: Root, argv: tuple[str, ...]) -> Any:
    result = root.run(argv, time_limit_s=TIME_LIMIT_S)
    try:
        return decode(result.stdout, argv[0]) if result.ok else None
    except DataError:
        return None
