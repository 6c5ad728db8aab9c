"""Vulkan drivers, from their manifests."""

from __future__ import annotations

import msgspec

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.packages import upstream_version
from rocmend.machine.parse.vulkan import AMD_DRIVERS
from rocmend.machine.root import Root
from rocmend.machine.software.packages import installed_packages
from rocmend.machine.software.vulkan import drivers, selected, switchable_layer

MESA_PACKAGES = ("mesa-vulkan-drivers", "vulkan-radeon", "mesa")


@collector(
    "vulkan",
    facts={
        "vulkan.icds": "Drivers for 64-bit programs in the loader's order: name, file, library, driver, api_version.",
        "vulkan.problems": "Manifests that the loader cannot use: file and reason.",
        "vulkan.drivers": "Distinct drivers: radv, amdvlk, amdgpu-pro, lavapipe, nvidia, intel, dozen, other.",
        "vulkan.amd_drivers": "Those of them that drive AMD hardware.",
        "vulkan.selected": "AMD driver that a program would get; null where there is none.",
        "vulkan.selected_by": "What decides: a variable, AMDVLK's layer, order, only one, no AMD driver.",
        "vulkan.switchable_layer": "Manifest of AMDVLK's switchable-graphics layer where it is active, else null.",
        "vulkan.mesa_version": "Mesa's version as its package says; null where no package tells.",
        "vulkan.amdvlk_version": "AMDVLK's version as its package says; null where no package tells.",
    },
)
def collect(root: Root, facts: FactSink) -> None:
    """List the drivers as the loader would, and say which AMD driver comes first and why."""
    found, problems, chosen_by = drivers(root)
    source = ", ".join(icd.file for icd in found) or chosen_by or "/etc/vulkan/icd.d, /usr/share/vulkan/icd.d"
    facts.put("vulkan.icds", [msgspec.structs.asdict(icd) for icd in found], source=source)
    facts.put("vulkan.problems", [msgspec.structs.asdict(item) for item in problems], source=source)
    distinct = list(dict.fromkeys(icd.driver for icd in found))
    facts.put("vulkan.drivers", distinct, source=source)
    facts.put("vulkan.amd_drivers", [name for name in distinct if name in AMD_DRIVERS], source=source)
    layer = switchable_layer(root)
    facts.put(
        "vulkan.switchable_layer", layer.file if layer else None, source=layer.file if layer else "implicit_layer.d"
    )
    driver, by = selected(found, chosen_by, layer, root.environ().get("AMD_VULKAN_ICD", ""))
    facts.put("vulkan.selected", driver, source=source)
    facts.put("vulkan.selected_by", by, source=source)
    packages, database = installed_packages(root)
    mesa = next((packages[name] for name in MESA_PACKAGES if name in packages), None)
    facts.put("vulkan.mesa_version", upstream_version(mesa) if mesa else None, source=database or "package database")
    amdvlk = packages.get("amdvlk")
    facts.put(
        "vulkan.amdvlk_version", upstream_version(amdvlk) if amdvlk else None, source=database or "package database"
    )
