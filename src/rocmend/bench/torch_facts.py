"""What torch and its device are, as a child process finds them. Standard library and torch alone."""

from __future__ import annotations

from typing import Any

from rocmend.runner.torch_device import begun, device_of


def facts(device: str = "auto") -> dict[str, Any]:
    """Return what ``begun`` says of torch and its device, and what is there besides, as JSON values.

    Args:
        device: ``auto``, ``cpu``, ``cuda`` or a device such as ``cuda:1``.

    Returns:
        ``error`` (empty where all is well), ``kind`` (``hip``, ``cuda``, ``cpu``), ``index``, ``free_bytes``,
        ``compute_units``, ``integrated``, ``peers`` (the other GPUs), and what ``begun`` returns.
    """
    found = begun(device)
    if found["error"]:
        return found
    import torch

    where = device_of(device)
    if where.type != "cuda":
        return {**found, "kind": where.type}
    index = torch.cuda.current_device() if where.index is None else where.index
    properties = torch.cuda.get_device_properties(index)
    return {
        **found,
        "kind": "hip" if torch.version.hip else "cuda",
        "index": index,
        "free_bytes": torch.cuda.mem_get_info(index)[0],
        "compute_units": properties.multi_processor_count,
        "integrated": bool(getattr(properties, "is_integrated", False)),
        "peers": [number for number in range(torch.cuda.device_count()) if number != index],
    }
