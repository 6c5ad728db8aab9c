"""How the installed torch would serve each GPU, by the code that its libraries carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.machine.derive._inputs import gpu_keys, known
from rocmend.machine.facts import FactSink, Machine, derivation

if TYPE_CHECKING:
    from rocmend.codeobject.service import Service

NAMES = ("torch_service", "torch_override", "torch_service_reason", "torch_service_cautions", "torch_cards")
SERVED = ("native", "generic")
NO_CODE = (
    "it carries no device code at all. TheRock's builds keep it in packages of their own, one a target "
    "(amd-torch-device-gfx…): the one for this GPU is not installed."
)

BREAKS_OTHER = (
    "there is no code for it, only for a relative; HSA_OVERRIDE_GFX_VERSION would apply to every GPU, and break the "
    "one that torch has code for"
)


@derivation(
    "torch_service",
    facts={
        "gpu.*.torch_service": "native, generic, override or none; null where torch is absent or no ROCm build.",
        "gpu.*.torch_override": "HSA_OVERRIDE_GFX_VERSION that makes it run inside the GPU's class; null for none, and "
        "where torch has code for another GPU, which the variable would break.",
        "gpu.*.torch_service_reason": "Why.",
        "gpu.*.torch_service_cautions": "What speaks against relying on it, and overrides that were refused.",
        "gpu.*.torch_cards": "Of processor graphics that torch has no code for: the cards that it has code for, as "
        "ROCR_VISIBLE_DEVICES takes them (0,1); null for none, and for any other GPU.",
    },
    needs=("gpu.*.gfx_target", "gpu.*.is_apu", "torch.backend", "torch.code_targets", "torch.components"),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Judge every GPU; an override that is set plays no part here."""
    services: dict[int, Service] = {}
    for index in machine.indices("gpu"):
        outputs = gpu_keys(index, *NAMES)
        values = known(machine, facts, outputs, f"gpu.{index}.gfx_target", "torch.backend")
        if values is None:
            continue
        if values[1] != "rocm":
            nothing: tuple[Any, ...] = (None, None, "", [], None)
            for output, value in zip(outputs, nothing, strict=True):
                facts.put(output, value, source="torch.backend")
            continue
        code = known(machine, facts, outputs, "torch.code_targets")
        if code is not None:
            service = _judged(machine, str(values[0]), code[0] if isinstance(code[0], list) else [])
            if service is not None:
                services[index] = service
            else:
                for output in outputs:
                    facts.gap(output, f"{values[0]} is not in the gfx table", source=f"gpu.{index}.gfx_target")
    served = [index for index, service in services.items() if _verdict(service) in SERVED]
    cards = ",".join(str(index) for index in served if machine.value(f"gpu.{index}.is_apu") is False)
    for index, service in services.items():
        spare = index not in served and machine.value(f"gpu.{index}.is_apu") is True
        source = f"gpu.{index}.gfx_target, torch.code_targets, torch.components"
        facts.put(f"gpu.{index}.torch_service", _verdict(service), source=source)
        facts.put(f"gpu.{index}.torch_override", None if served else service.override or None, source=source)
        reason = BREAKS_OTHER if served and service.override else service.reason
        reason = NO_CODE if service.verdict.value == "not-applicable" else reason
        facts.put(f"gpu.{index}.torch_service_reason", reason, source=source)
        facts.put(f"gpu.{index}.torch_service_cautions", list(service.cautions), source=source)
        facts.put(
            f"gpu.{index}.torch_cards", (cards or None) if spare else None, source="gpu.*.is_apu, torch.code_targets"
        )


def _judged(machine: Machine, gfx: str, code: list[Any]) -> Service | None:
    from rocmend.codeobject.service import service_for_targets
    from rocmend.core.gfx import find

    if find(gfx) is None:
        return None
    return service_for_targets([str(name) for name in code], gfx, components=machine.value("torch.components") or None)


def _verdict(service: Service) -> str:
    """Return the verdict; a build without any device code has none for this GPU either."""
    return "none" if service.verdict.value == "not-applicable" else service.verdict.value
