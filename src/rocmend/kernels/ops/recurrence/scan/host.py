"""Launch the Triton kernels."""

from __future__ import annotations

import torch
import triton.language as tl

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import axes
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.recurrence.scan.kernel import scan_kernel, tiles_kernel, wholes_kernel
from rocmend.kernels.tuning import config_for

_ACC = {torch.float32: tl.float32, torch.float64: tl.float64, torch.int32: tl.int32, torch.int64: tl.int64}

_OF_WHOLES = ("OP", "REVERSE", "FLIP", "ACC")
_GRID = 65535  # programs along the second axis of a grid


def _computed(dtype: torch.dtype) -> torch.dtype:
    """Return the type that elements are computed in."""
    if dtype == torch.float64:
        return dtype
    if dtype.is_floating_point:
        return torch.float32
    return torch.int64 if dtype.itemsize == 8 else torch.int32


def run(x: torch.Tensor, axis: int, *, op: str, reverse: bool, inclusive: bool, dtype: torch.dtype) -> torch.Tensor:
    """Scan along an axis; see ``function.cumsum``."""
    x = x.contiguous()
    out = allocate.empty(x.shape, dtype=dtype, device=x.device)
    if x.numel() == 0:
        return out
    computed = _computed(dtype)
    compares = op in ("max", "min")
    flip = 8 * x.element_size() if compares and axes.kind(x.dtype) == "unsigned" else 0
    half = 1 << (8 * x.element_size() - 1)
    narrow = compares and not dtype.is_floating_point and x.element_size() < 4
    limits = (-half, half - 1) if narrow else (0, 0)
    if x.dtype == torch.bool and flip:
        limits = (-half, 1 - half)
    constants = {
        "OP": op, "REVERSE": reverse, "EXCLUSIVE": not inclusive, "FLIP": flip, "LOW": limits[0], "HIGH": limits[1],
        "ACC": _ACC[computed],
    }  # fmt: skip
    data = x if x.dtype.is_floating_point else x.view(torch.uint8) if x.dtype == torch.bool else axes.raw(x)
    if op == "logsumexp" and not x.dtype.is_floating_point:
        data = x.to(torch.float32)
    to = out if out.dtype.is_floating_point else axes.raw(out)
    sizes = axes.split(x.shape, axis)
    if not _tiles(data, to, sizes, computed, constants):
        _pieces(data, to, sizes, computed, constants)
    return out


def _tiles(
    data: torch.Tensor, out: torch.Tensor, sizes: axes.Split, computed: torch.dtype, constants: dict[str, object]
) -> bool:
    """Scan long rows in two launches: what tiles come to, then the tiles; False where that is not for such rows."""
    outer, n, inner = sizes
    target = executor.target_for(data.device)
    # Measured on NVIDIA alone; on AMD pieces of rows are walked over.
    if inner != 1 or computed.itemsize != 4 or target.vendor == "amd":
        return False
    config = config_for("scan", "tiles", "*", target)
    tiles = cdiv(n, config["LINES"] * config["LANES"])
    if outer * n < config["elements"] or outer > _GRID or not config["least"] <= tiles <= config["most"]:
        return False
    # Elements of 16 bits are read twice, and wholes of 32 bits beside: many of them take longer so than in pieces.
    most = config.get("narrow_elements", 0)
    if most and data.element_size() < computed.itemsize and outer * n > most:
        return False
    wholes = allocate.empty((outer, tiles), dtype=computed, device=data.device)
    grid = (tiles, outer)
    launch(wholes_kernel, grid, (data, wholes, n), {name: constants[name] for name in _OF_WHOLES}, config)
    launch(tiles_kernel, grid, (data, wholes, out, n), constants, config)
    return True


def _pieces(
    data: torch.Tensor, out: torch.Tensor, sizes: axes.Split, computed: torch.dtype, constants: dict[str, object]
) -> None:
    outer, n, inner = sizes
    config = config_for("scan", "scan", "row" if inner == 1 else "column", executor.target_for(data.device))
    lanes = 1 if inner == 1 else min(config["lanes"], next_power_of_2(inner))
    block = max(2, min(config["tile"] // lanes, next_power_of_2(n)))
    groups = outer * cdiv(inner, lanes)
    # Enough programs to fill the GPU: a long axis is cut where there are few neighbours.
    wanted = max(1, config["programs"] // groups)
    piece = cdiv(max(cdiv(n, wanted), block * config["walk"]), block) * block
    pieces = cdiv(n, piece)
    tiles = {"BLOCK": block, "INNER": lanes}
    before = None
    if pieces > 1:
        wholes = allocate.empty((outer, pieces, inner), dtype=computed, device=data.device)
        before = allocate.empty((outer, pieces, inner), dtype=computed, device=data.device)
        launch(
            scan_kernel, (groups * pieces,), (data, None, wholes, n, inner, pieces, piece),
            {**constants, **tiles, "WHOLE": True}, config,
        )  # fmt: skip
        plain = {"EXCLUSIVE": True, "REVERSE": False, "FLIP": 0, "LOW": 0, "HIGH": 0}
        _pieces(wholes, before, axes.Split(outer, pieces, inner), computed, {**constants, **plain})
    launch(
        scan_kernel, (groups * pieces,), (data, before, out, n, inner, pieces, piece),
        {**constants, **tiles, "WHOLE": False}, config,
    )  # fmt: skip
