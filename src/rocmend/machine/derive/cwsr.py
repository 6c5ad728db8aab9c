"""The area that a compute queue's wavefronts are saved to when it is switched out (CWSR).

``size = align(CUs x (VGPR + SGPR + LDS + HWREG bytes), page) + control stack``, per XCC, with

* VGPR bytes a CU by target, SGPR 0x4000, LDS 0x10000, HWREG 0x1000;
* control stack ``align(40 + waves x 12 + 8, page)``, at most 0x7000 on gfx10, waves = 32 a CU (gfx10 and later).

Source: ``kfd_queue_ctx_save_restore_size`` and ``kfd_get_vgpr_size_per_cu`` in Linux
drivers/gpu/drm/amd/amdkfd/kfd_queue.c, with "bump minimum vgpr size for gfx1151" (commit b42f3bf9536c), without
which that target falls under the default.
https://git.kernel.org/pub/scm/linux/kernel/git/torvalds/linux.git/tree/drivers/gpu/drm/amd/amdkfd/kfd_queue.c
"""

from __future__ import annotations

from rocmend.machine.derive._inputs import gpu_keys, known, number
from rocmend.machine.facts import FactSink, Machine, derivation

VGPR_DEFAULT_BYTES = 0x40000
VGPR_BYTES = {
    **dict.fromkeys((90008, 90010, 90402, 90500), 0x80000),  # gfx908, gfx90a, gfx942, gfx950: AccVGPRs as well
    **dict.fromkeys((110000, 110001, 110501, 120000, 120001), 0x60000),  # 1.5 times the registers of their siblings
    **dict.fromkeys((120500, 120501), 0x80000),  # gfx1250, gfx1251
}
"""Vector-register bytes of a compute unit by gfx_target_version."""

SGPR_BYTES = 0x4000
LDS_BYTES = 0x10000
HWREG_BYTES = 0x1000
HEADER_BYTES = 40
PAGE_BYTES = 4096
NEWEST_KNOWN = 120501
"""Targets beyond this one are not in the kernel's table as read for this file."""


def _align(size: int) -> int:
    return -(-size // PAGE_BYTES) * PAGE_BYTES


def control_stack_bytes(version: int, compute_units: int) -> int | None:
    """Return the control stack's size, or None for gfx9, where it depends on the shader arrays too."""
    if version < 100100:
        return None
    waves = compute_units * (64 if version in {120500, 120501} else 32)
    size = _align(HEADER_BYTES + waves * 12 + 8)
    return min(size, 0x7000) if version // 10000 == 10 else size


def wave_state_bytes(version: int, compute_units: int, lds_bytes: int | None) -> int | None:
    """Return the bytes for registers and LDS of all wavefronts, or None where a figure is missing.

    Args:
        version: ``gfx_target_version``, e.g. 110501.
        compute_units: Compute units of one XCC.
        lds_bytes: LDS of a compute unit as the driver says; used by the targets whose LDS is not 64 KiB.
    """
    newer = version in {120500, 120501}
    lds: int | None = lds_bytes if newer or version == 90500 else LDS_BYTES
    if lds is None:
        return None
    sgpr, hwreg = (0x8000, 0x8000) if newer else (SGPR_BYTES, HWREG_BYTES)
    return _align(compute_units * (VGPR_BYTES.get(version, VGPR_DEFAULT_BYTES) + sgpr + lds + hwreg))


def required_bytes(
    version: int, compute_units: int, *, lds_bytes: int | None = None, control_stack: int | None = None
) -> int | None:
    """Return the save area that a target needs, or None where that cannot be computed.

    Args:
        version: ``gfx_target_version``.
        compute_units: Compute units of one XCC.
        lds_bytes: LDS of a compute unit.
        control_stack: The control stack's size as the driver says, used for gfx9.
    """
    if not 80001 <= version <= NEWEST_KNOWN or compute_units <= 0:
        return None
    state = wave_state_bytes(version, compute_units, lds_bytes)
    stack = control_stack_bytes(version, compute_units)
    stack = control_stack if stack is None else stack
    return None if state is None or stack is None else _align(state + stack)


@derivation(
    "cwsr",
    facts={
        "gpu.*.cwsr_required_bytes": "Save area that this GPU's wavefronts need; null where that cannot be computed.",
        "gpu.*.cwsr_sufficient": "Whether the driver's area is that large; null where the driver does not say.",
    },
    needs=(
        *("gpu.*.gfx_target_version", "gpu.*.compute_units", "gpu.*.num_xcc", "gpu.*.lds_bytes"),
        *("gpu.*.cwsr_size_bytes", "gpu.*.ctl_stack_size_bytes"),
    ),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Compare the area that each GPU needs with the one that the driver exposes."""
    for index in machine.indices("gpu"):
        required_key, sufficient_key = gpu_keys(index, "cwsr_required_bytes", "cwsr_sufficient")
        keys = gpu_keys(index, "gfx_target_version", "compute_units")
        values = known(machine, facts, (required_key, sufficient_key), *keys)
        if values is None:
            continue
        version, units = (int(number(value) or 0) for value in values)
        xcc = int(number(machine.value(f"gpu.{index}.num_xcc")) or 1)
        lds, stack = (machine.value(key) for key in gpu_keys(index, "lds_bytes", "ctl_stack_size_bytes"))
        required = required_bytes(version, units // xcc, lds_bytes=lds, control_stack=stack)
        source = ", ".join(gpu_keys(index, "gfx_target_version", "compute_units", "num_xcc"))
        facts.put(required_key, required, source=source)
        size = known(machine, facts, (sufficient_key,), f"gpu.{index}.cwsr_size_bytes")
        if size is not None:
            exposed = number(size[0])
            enough = None if exposed is None or required is None else exposed >= required
            facts.put(sufficient_key, enough, source=f"gpu.{index}.cwsr_size_bytes, {required_key}")
