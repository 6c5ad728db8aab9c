"""Kernel parameters of Talos nodes: written as text for a person to apply, never applied."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rocmend.core.errors import UsageError


def talos_patch(params: Sequence[str]) -> str:
    """Return machine configuration patches, as YAML, that give a Talos node kernel parameters.

    A node that boots by GRUB takes them from ``machine.install.extraKernelArgs`` at its next upgrade. A node that boots
    by systemd-boot ignores those: there they are part of its boot image, whose schematic is given as comments.

    Source: https://docs.siderolabs.com/talos/latest/platform-specific-installations/bare-metal-platforms/bootloader

    Args:
        params: Parameters as they stand on the kernel's command line, e.g. ``amdgpu.cwsr_enable=0``.

    Raises:
        UsageError: There are none, or one is not a single word.
    """
    if not params:
        raise UsageError("talos", "no kernel parameters are given.", next_step="Name at least one.")
    for param in params:
        if not param or any(char.isspace() or not char.isprintable() or char in "\"'\\" for char in param):
            raise UsageError(
                "talos", f"{param!r} is not a kernel parameter: a word without spaces, quotes or backslashes."
            )
    words = [json.dumps(param, ensure_ascii=False) for param in params]
    lines = [
        "# Nodes that boot by GRUB. Find out: talosctl get securitystate -o yaml (bootedWithUKI: false).",
        "# Apply:  talosctl patch machineconfig --nodes NODE --patch @this-file.yaml",
        "# The parameters take effect with the next upgrade, which may be to the same version:",
        "#         talosctl upgrade --nodes NODE --image INSTALLER",
        "# Check:  talosctl --nodes NODE read /proc/cmdline",
        "machine:",
        "  install:",
        "    extraKernelArgs:",
        *(f"      - {word}" for word in words),
        "",
        "# Nodes that boot by systemd-boot (bootedWithUKI: true; UEFI since Talos 1.10) ignore the above.",
        "# They need an installer made by the Image Factory from this schematic, and an upgrade to it:",
        "# customization:",
        "#   extraKernelArgs:",
        *(f"#     - {word}" for word in words),
    ]
    return "\n".join(lines) + "\n"
