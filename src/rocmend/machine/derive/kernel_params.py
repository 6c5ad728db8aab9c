"""Kernel parameters that the kernel ignores without a word, because they are misspelled.

A parameter of an unknown module, or one that a module does not have, is dropped in silence or with one line in the
log: the person believes that a workaround is active.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rocmend.core.suggest import misspelled
from rocmend.machine.derive._inputs import why_missing
from rocmend.machine.derive._module_parameters import AMDGPU, DISTINCT, MODULES, OPTIONS, TTM
from rocmend.machine.facts import FactSink, Machine, derivation


@derivation(
    "kernel_params",
    facts={
        "kernel.unknown_params": "Misspelled parameters: given, suggestion (empty where there is none), where, why.",
        "kernel.unknown_params_given": "The words themselves: 'aamdgpu.cwsr_enable=0'.",
        "kernel.unknown_params_text": "The same in one line: 'aamdgpu.cwsr_enable=0 (amdgpu.cwsr_enable=0?)'.",
    },
    needs=("kernel.params", "modprobe.options", "amdgpu.params"),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Check the command line and modprobe's options against the modules' own lists."""
    params, options = machine.value("kernel.params"), machine.value("modprobe.options")
    if not isinstance(params, dict):
        for key in ("kernel.unknown_params", "kernel.unknown_params_given", "kernel.unknown_params_text"):
            facts.gap(key, why_missing(machine, "kernel.params"), source="kernel.params")
        return
    loaded = machine.value("amdgpu.params")
    own = AMDGPU | (frozenset(map(str, loaded)) if isinstance(loaded, dict) else frozenset())
    modules = {**MODULES, "amdgpu": own}
    found: list[dict[str, str]] = []
    for where, given in (("kernel command line", params), ("modprobe.d", options if isinstance(options, dict) else {})):
        for key, value in given.items():
            problem = check(str(key), value, modules)
            if problem is not None:
                found.append({**problem, "where": where})
    source = "kernel.params, modprobe.options, amdgpu.params"
    facts.put("kernel.unknown_params", found, source=source)
    facts.put("kernel.unknown_params_given", " ".join(item["given"] for item in found), source=source)
    texts = (item["given"] + (f" ({item['suggestion']}?)" if item["suggestion"] else "") for item in found)
    facts.put("kernel.unknown_params_text", ", ".join(texts), source=source)


def check(key: str, value: Any, modules: dict[str, frozenset[str]]) -> dict[str, str] | None:
    """Return what is wrong with one parameter, or None where nothing is known to be.

    Args:
        key: ``amdgpu.cwsr_enable``; the kernel takes ``-`` for ``_``.
        value: Its value, or None for a bare word.
        modules: Module to parameters.
    """
    given = key if value is None else f"{key}={value}"
    name = key.replace("-", "_")
    if name in OPTIONS:
        return _check_words(name, given, "" if value is None else str(value))
    module, dot, parameter = name.partition(".")
    if not dot:
        suggestion = _misplaced(name, modules)
        why = "the kernel has no such parameter: a module's parameter needs the module's name and a dot before it"
        return _problem(given, suggestion, value, why) if suggestion else None
    if module in modules:
        return None if parameter in modules[module] else _no_such_parameter(module, parameter, value, given, modules)
    if module in {"amdkfd", "kfd"}:
        suggestion = f"amdgpu.{parameter}" if parameter in modules["amdgpu"] else ""
        return _problem(given, suggestion, value, "amdkfd has been part of the module amdgpu since Linux 4.20")
    near = "ttm" if parameter in TTM else misspelled(module, ["amdgpu", "amdttm"])
    if not near:
        return None
    return _problem(given, _repaired(near, parameter, modules), value, f"there is no module {module}")


def _no_such_parameter(
    module: str, parameter: str, value: Any, given: str, modules: dict[str, frozenset[str]]
) -> dict[str, str]:
    """Say what was meant: the parameter of another module, or one of a similar name."""
    other = next((item for item in ("amdgpu", "ttm") if parameter in modules[item]), None)
    suggestion = f"{other}.{parameter}" if other else _repaired(module, parameter, modules)
    return _problem(given, suggestion, value, f"the module {module} has no parameter {parameter}")


def _repaired(module: str, parameter: str, modules: dict[str, frozenset[str]]) -> str:
    near = misspelled(parameter, sorted(modules[module]))
    return f"{module}.{near}" if near else ""


def _misplaced(name: str, modules: dict[str, frozenset[str]]) -> str:
    """Return what a name without a dot was meant to be: ``amdgpu_noretry``, ``cwsr_enable``, ``pages_limit``."""
    for module, parameters in modules.items():
        rest = name.removeprefix(f"{module}_")
        if rest != name and rest in parameters:
            return f"{module}.{rest}"
    if name in DISTINCT:
        return f"amdgpu.{name}"
    if name in TTM:
        return f"ttm.{name}"
    return misspelled(name, sorted(OPTIONS), near=0.2)


def _check_words(name: str, given: str, value: str) -> dict[str, str] | None:
    """Check the words of an option: ``amd_iommu=pt`` is none, ``iommu=pt`` is."""
    unknown = [word for word in _words(value) if word not in OPTIONS[name]]
    if not unknown:
        return None
    why = f"{name} knows no word {unknown[0]}"
    other = next((option for option, words in OPTIONS.items() if all(word in words for word in unknown)), None)
    if other is not None:
        return {"given": given, "suggestion": f"{other}={','.join(unknown)}", "why": why}
    near = misspelled(unknown[0], sorted(OPTIONS[name]))
    return {"given": given, "suggestion": f"{name}={near}" if near else "", "why": why}


def _words(value: str) -> Iterator[str]:
    for word in value.split(","):
        if word.strip():
            yield word.strip().split("=", 1)[0]


def _problem(given: str, suggestion: str, value: Any, why: str) -> dict[str, str]:
    repaired = suggestion if not suggestion or value is None else f"{suggestion}={value}"
    return {"given": given, "suggestion": repaired, "why": why}
