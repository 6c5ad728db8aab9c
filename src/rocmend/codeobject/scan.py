"""A quick scan of an installed package's folder: which targets it holds code for, by names, headers and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocmend.codeobject.isa import SPIRV
from rocmend.codeobject.limits import Limits
from rocmend.codeobject.model import Component
from rocmend.codeobject.survey import Survey, is_generic
from rocmend.codeobject.walk import take_file, walk

QUICK = Limits(deep=False)


def scan_targets(path: Path) -> dict[str, Any]:
    """Find the AMD targets that the libraries of a folder hold code for.

    Reads section tables and bundle tables by seeking: of ten gigabytes of libraries, a few megabytes. Imports nothing.

    Args:
        path: A folder, e.g. ``site-packages/torch``.

    Returns:
        A JSON object: ``targets`` (specific, with settings), ``generic`` (name to version of the generic code),
        ``components`` (name to ``{"targets": {target: objects}, "units": fat binaries, "files": n}``, where some of it
        is damaged also ``damaged`` (files), ``damage`` and ``damaged_targets``), ``backends``,
        ``versions`` (kind to version), ``external`` (ROCm libraries needed from outside), ``packs`` (where device code
        is looked for outside the libraries), ``files``, ``bytes``, ``problems``. Lists are sorted.
    """
    survey = Survey(path.name)
    for found in walk(path, survey, QUICK):
        take_file(found, survey, QUICK)
    return summarise(survey)


def summarise(survey: Survey) -> dict[str, Any]:
    """Return a survey as the JSON object that ``scan_targets`` documents."""
    targets = survey.targets()
    generic: dict[str, int] = {}
    for file in survey.files:
        for use in file.targets:
            if is_generic(use.target):
                generic[use.target] = max(generic.get(use.target, 0), use.generic_version)
    components = {
        f"{component.name} {component.variant}".strip(): {
            "targets": {use.target: use.objects for use in component.targets if use.objects},
            "units": component.units,
            "files": component.files,
            **({"variant": component.variant} if component.variant else {}),
            **_damage(component),
        }
        for component in survey.components()
    }
    return {
        "targets": [target for target in targets if not is_generic(target) and target != SPIRV],
        "generic": dict(sorted(generic.items())),
        "components": components,
        "backends": list(survey.backends()),
        "versions": {what: found for what in ("rocm", "hip", "cuda") if (found := survey.best_version(what))},
        "external": list(survey.external()),
        "packs": sorted({pack for file in survey.files for pack in file.packs}),
        "files": survey.seen_files,
        "bytes": survey.seen_bytes,
        "problems": [f"{problem.path}: {problem.message}" for problem in survey.problems],
    }


def _damage(component: Component) -> dict[str, Any]:
    """Return what of a component cannot be relied on; nothing where all of it is whole."""
    damaged = {use.target: {"objects": use.damaged, "damage": use.damage} for use in component.targets if use.damaged}
    found: dict[str, Any] = {"damaged_targets": damaged} if damaged else {}
    if component.damaged:
        found |= {"damaged": component.damaged, "damage": component.damage}
    return found
