"""How the installed torch would serve each GPU, by the code that its libraries carry."""

from __future__ import annotations

from typing import Any

from rocmend.machine.derive._inputs import gpu_keys, known
from rocmend.machine.facts import FactSink, Machine, derivation

NAMES = ("torch_service", "torch_override", "torch_service_reason", "torch_service_cautions")
NO_CODE = (
    "it carries no device code at all. TheRock's builds keep it in packages of their own, one a target "
    "(amd-torch-device-gfx…): the one for this GPU is not installed."
)


@derivation(
    "torch_service",
    facts={
        "gpu.*.torch_service": "native, generic, override or none; null where torch is absent or no ROCm build.",
        "gpu.*.torch_override": "HSA_OVERRIDE_GFX_VERSION that makes it run inside the GPU's class; null for none.",
        "gpu.*.torch_service_reason": "Why.",
        "gpu.*.torch_service_cautions": "What speaks against relying on it, and overrides that were refused.",
    },
    needs=("gpu.*.gfx_target", "torch.backend", "torch.code_targets", "torch.components"),
)
def derive(machine: Machine, facts: FactSink) -> None:
    """Judge every GPU; an override that is set plays no part here."""
    for index in machine.indices("gpu"):
        outputs = gpu_keys(index, *NAMES)
        values = known(machine, facts, outputs, f"gpu.{index}.gfx_target", "torch.backend")
        if values is None:
            continue
        if values[1] != "rocm":
            nothing: tuple[Any, ...] = (None, None, "", [])
            for output, value in zip(outputs, nothing, strict=True):
                facts.put(output, value, source="torch.backend")
            continue
        code = known(machine, facts, outputs, "torch.code_targets")
        if code is not None:
            _judge(machine, facts, outputs, str(values[0]), code[0] if isinstance(code[0], list) else [])


def _judge(machine: Machine, facts: FactSink, outputs: list[str], gfx: str, code: list[Any]) -> None:
    from rocmend.codeobject.service import Verdict, service_for_targets
    from rocmend.core.gfx import find

    source = f"{outputs[0].rsplit('.', 1)[0]}.gfx_target, torch.code_targets, torch.components"
    if find(gfx) is None:
        for output in outputs:
            facts.gap(output, f"{gfx} is not in the gfx table", source=source)
        return
    service = service_for_targets(
        [str(name) for name in code], gfx, components=machine.value("torch.components") or None
    )
    missing = service.verdict is Verdict.NOT_APPLICABLE
    facts.put(outputs[0], Verdict.NONE.value if missing else service.verdict.value, source=source)
    facts.put(outputs[1], service.override or None, source=source)
    facts.put(outputs[2], NO_CODE if missing else service.reason, source=source)
    facts.put(outputs[3], list(service.cautions), source=source)
