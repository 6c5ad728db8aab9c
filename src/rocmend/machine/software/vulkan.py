"""Which Vulkan drivers the loader would find, and which of AMD's it would put first.

Source: https://github.com/KhronosGroup/Vulkan-Loader/blob/main/docs/LoaderDriverInterface.md (search order and
variables); https://github.com/GPUOpen-Drivers/AMDVLK (AMD_VULKAN_ICD and the switchable-graphics layer).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

import msgspec

from rocmend.core.errors import DataError
from rocmend.machine.parse.vulkan import AMD_DRIVERS, Icd, Layer, parse_icd, parse_layers
from rocmend.machine.root import Root
from rocmend.machine.software.reading import is_dir, names, text

SWITCHABLE = "VK_LAYER_AMD_switchable_graphics"


class Problem(msgspec.Struct, frozen=True):
    """A manifest that the loader would not be able to use."""

    file: str
    reason: str


def search_folders(variables: Mapping[str, str], below: str) -> list[str]:
    """Return the folders in which the loader looks, in its order.

    Args:
        variables: The environment.
        below: ``vulkan/icd.d`` or ``vulkan/implicit_layer.d``.
    """
    home = variables.get("HOME", "").rstrip("/")
    config_home = variables.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    data_home = variables.get("XDG_DATA_HOME") or (f"{home}/.local/share" if home else "")
    folders = [
        config_home,
        *(variables.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":"),
        "/usr/local/etc",
        "/etc",
        data_home,
        *(variables.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":"),
    ]
    return list(dict.fromkeys(f"{folder.rstrip('/')}/{below}" for folder in folders if folder.startswith("/")))


def manifests(root: Root) -> tuple[list[str], str]:
    """Return the driver manifests that the loader would read, in its order, and the variable that chose them.

    ``VK_DRIVER_FILES`` (older name ``VK_ICD_FILENAMES``) replaces the search; ``VK_ADD_DRIVER_FILES`` goes before it.
    Both take files and folders.
    """
    variables = root.environ()
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        if given := variables.get(variable):
            return list(dict.fromkeys(_expand(root, given))), variable
    found = list(_expand(root, variables.get("VK_ADD_DRIVER_FILES", "")))
    for folder in search_folders(variables, "vulkan/icd.d"):
        found += _in_folder(root, folder)
    return list(dict.fromkeys(found)), ""


def _expand(root: Root, given: str) -> Iterator[str]:
    for entry in given.split(":"):
        if entry.startswith("/"):
            yield from _in_folder(root, entry) if is_dir(root, entry) else (entry,)


def _in_folder(root: Root, folder: str) -> list[str]:
    """List a folder's manifests by name; the loader takes them in the file system's order, which is arbitrary."""
    return [f"{folder.rstrip('/')}/{name}" for name in names(root, folder) if name.endswith(".json")]


def drivers(root: Root) -> tuple[list[Icd], list[Problem], str]:
    """Return the drivers of 64-bit programs in the loader's order, unusable manifests, and the choosing variable.

    ``VK_LOADER_DRIVERS_SELECT`` and ``VK_LOADER_DRIVERS_DISABLE`` hold patterns of manifest file names.
    """
    variables = root.environ()
    files, chosen_by = manifests(root)
    select, disable = (
        [part for part in variables.get(name, "").split(",") if part]
        for name in ("VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE")
    )
    found: list[Icd] = []
    problems: list[Problem] = []
    for file in files:
        name = file.rsplit("/", 1)[-1]
        if (select and not _any_match(name, select)) or _any_match(name, disable):
            continue
        content = text(root, file)
        if content is None:
            problems.append(Problem(file, "is not there or cannot be read."))
            continue
        try:
            icd = parse_icd(content, file)
        except DataError as error:
            problems.append(Problem(file, error.message))
            continue
        if icd.bits == 64:
            found.append(icd)
    return found, problems, chosen_by or ("VK_LOADER_DRIVERS_SELECT" if select else "")


def _any_match(name: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.strip().lower()) for pattern in patterns)


def switchable_layer(root: Root) -> Layer | None:
    """Return AMDVLK's switchable-graphics layer where it is installed for 64-bit programs and not switched off."""
    variables = root.environ()
    disabled = [part.strip() for part in variables.get("VK_LOADER_LAYERS_DISABLE", "").split(",") if part.strip()]
    for folder in search_folders(variables, "vulkan/implicit_layer.d"):
        for file in _in_folder(root, folder):
            content = text(root, file) or ""
            try:
                layers = parse_layers(content, file) if SWITCHABLE in content else []
            except DataError:
                continue
            for layer in layers:
                off = (layer.disabled_by and layer.disabled_by in variables) or _any_match(layer.name, disabled)
                if layer.name.startswith(SWITCHABLE) and not layer.name.endswith("_32") and not off:
                    return layer
    return None


def selected(found: list[Icd], chosen_by: str, layer: Layer | None, asked: str) -> tuple[str | None, str]:
    """Return which AMD driver a program that takes the first device would get, and what decides that.

    Args:
        found: The drivers, in the loader's order.
        chosen_by: The variable that restricted them, or empty.
        layer: AMDVLK's layer where it is active: of several AMD drivers it leaves one.
        asked: Value of AMD_VULKAN_ICD, which that layer reads (RADV or AMDVLK) and the loader itself does not.
    """
    amd = list(dict.fromkeys(icd.driver for icd in found if icd.driver in AMD_DRIVERS))
    if not amd:
        return None, chosen_by or "no AMD driver"
    if len(amd) == 1:
        return amd[0], chosen_by or "only one"
    if layer is not None:
        if asked.upper() == "RADV" and "radv" in amd:
            return "radv", "AMD_VULKAN_ICD"
        own = next((driver for driver in amd if driver != "radv"), amd[0])
        return own, "AMD_VULKAN_ICD" if asked.upper() == "AMDVLK" else SWITCHABLE
    return amd[0], chosen_by or "order"
