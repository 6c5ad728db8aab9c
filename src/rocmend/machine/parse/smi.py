"""JSON of rocm-smi and amd-smi, whose keys change from release to release.

Sources: https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html; rocm_smi.py in
https://github.com/ROCm/rocm_smi_lib. amd-smi 26 and later wrap the list of GPUs in ``gpu_data``.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from rocmend.core.documents import MALFORMED
from rocmend.core.errors import DataError

MAX_CHARS = 8 << 20
MAX_CARDS = 1024

Card = dict[str, Any]

_ROCM_SMI_KEYS = {
    "device name": "name",
    "card series": "series",
    "device id": "device_id",
    "card model": "model",
    "device rev": "revision",
    "card sku": "sku",
    "gfx version": "gfx",
    "node id": "node",
    "vbios version": "vbios",
    "performance level": "performance_level",
    "gpu use (%)": "busy_percent",
    "gpu memory allocated (vram%)": "vram_percent",
    "vram total memory (b)": "vram_total_bytes",
    "vram total used memory (b)": "vram_used_bytes",
    "current socket graphics package power (w)": "power_watts",
    "average graphics package power (w)": "power_watts",
    "temperature (sensor edge) (c)": "temperature_c",
    "temperature (sensor junction) (c)": "hotspot_c",
    "pci bus": "slot",
    "memory partition": "memory_partition",
    "compute partition": "compute_partition",
    "mes firmware version": "mes",
}
_AMD_SMI_PATHS = {
    "name": "asic.market_name",
    "device_id": "asic.device_id",
    "revision": "asic.rev_id",
    "gfx": "asic.target_graphics_version",
    "compute_units": "asic.num_compute_units",
    "slot": "bus.bdf",
    "vbios": "vbios.part_number",
    "driver": "driver.version",
    "vram_type": "vram.type",
    "vram_total_bytes": "vram.size",
    "memory_width_bits": "vram.bit_width",
    "bandwidth_gb_s": "vram.max_bandwidth",
    "compute_partition": "partition.compute_partition",
    "memory_partition": "partition.memory_partition",
    "power_watts": "power.socket_power",
    "busy_percent": "usage.gfx_activity",
    "temperature_c": "temperature.edge",
    "hotspot_c": "temperature.hotspot",
    "vram_used_bytes": "mem_usage.used_vram",
    "sclk_mhz": "clock.gfx_0.clk",
}
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_NUMERIC = {
    *("busy_percent", "vram_percent", "vram_total_bytes", "vram_used_bytes", "power_watts", "temperature_c"),
    *("hotspot_c", "compute_units", "node", "memory_width_bits", "bandwidth_gb_s", "sclk_mhz"),
}


def decode(text: str, tool: str) -> Any:
    """Return the JSON in a tool's output; warnings before and after it are passed over.

    Raises:
        DataError: There is none.
    """
    text = text[:MAX_CHARS]
    for match in re.finditer(r"^[ \t]*[\[{]", text, re.MULTILINE):
        body = text[match.start() :]
        end = max(body.rfind("}"), body.rfind("]")) + 1
        try:
            return msgspec.json.decode(body[:end].encode(errors="replace"))
        except MALFORMED:
            continue
    raise DataError(tool, "expected JSON, found none.", next_step=f"Run `{tool} --json` by hand and look at it.")


def rocm_smi_cards(data: Any) -> tuple[list[Card], str | None]:
    """Return the cards of ``rocm-smi … --json`` and the driver's version; keys that are not known are left out.

    Args:
        data: Decoded JSON: ``{"card0": {…}, "system": {…}}``.
    """
    cards: list[Card] = []
    driver: str | None = None
    for name, values in data.items() if isinstance(data, dict) else ():
        if not isinstance(values, dict):
            continue
        if name == "system":
            found = values.get("Driver version")
            driver = found if isinstance(found, str) else None
        elif re.fullmatch(r"card\d{1,4}", name) and len(cards) < MAX_CARDS:
            known = {_ROCM_SMI_KEYS.get(str(key).strip().lower()): value for key, value in values.items()}
            cards.append({"index": int(name[4:]), "tool": "rocm-smi"} | _clean(known))
    return cards, driver


def amd_smi_cards(*documents: Any) -> list[Card]:
    """Return the GPUs of ``amd-smi static --json`` and ``amd-smi metric --json``, put together by index."""
    cards: dict[int, Card] = {}
    for data in documents:
        rows = data.get("gpu_data") if isinstance(data, dict) else data
        for row in rows if isinstance(rows, list) else ():
            index = row.get("gpu") if isinstance(row, dict) else None
            if not isinstance(index, int) or isinstance(index, bool) or len(cards) >= MAX_CARDS:
                continue
            known: dict[str | None, Any] = {name: _at(row, path) for name, path in _AMD_SMI_PATHS.items()}
            cards.setdefault(index, {"index": index, "tool": "amd-smi"}).update(_clean(known))
    return [cards[index] for index in sorted(cards)]


def _at(row: Any, path: str) -> Any:
    for part in path.split("."):
        row = row.get(part) if isinstance(row, dict) else None
    return row


def _clean(values: dict[str | None, Any]) -> Card:
    """Keep known keys with a value: numbers as numbers in base units, text stripped, ``N/A`` left out."""
    card: Card = {}
    for name, value in values.items():
        plain = _plain(value, numeric=name in _NUMERIC)
        if name is not None and plain is not None:
            card.setdefault(name, plain.lower() if name == "slot" and isinstance(plain, str) else plain)
    return card


def _plain(value: Any, *, numeric: bool) -> str | int | float | None:
    scale = 1
    if isinstance(value, dict):  # {"value": 16368, "unit": "MB"}
        scale = _UNITS.get(str(value.get("unit", "")), 1)
        value = value.get("value")
    if isinstance(value, int | float) and not isinstance(value, bool):
        number: int | float = value
        return number * scale
    if not isinstance(value, str):
        return None
    text: str = value.strip()[:200]
    if not text or text.upper() == "N/A":
        return None
    return _number(text, scale) if numeric else text


def _number(text: str, scale: int) -> int | float | None:
    """Return the number in ``16368``, ``25.5`` or ``16368 MB``."""
    match = re.fullmatch(r"(-?\d{1,15}(?:\.\d{1,9})?)(?:[ ]?([KMG]?B|W|C|MHz|%|GB/s))?", text, re.ASCII)
    if match is None:
        return None
    number = float(match[1]) if "." in match[1] else int(match[1])
    return number * _UNITS.get(match[2] or "", scale)
