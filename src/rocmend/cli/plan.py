"""A plan with what other rooms know put in: the install commands that ``rocmend wheel choose`` prints."""

from __future__ import annotations

import msgspec

from rocmend.doctor.records import Diagnosis, Step
from rocmend.kb.load import Knowledge
from rocmend.machine.facts import Machine
from rocmend.setup.choose import choose, gpu_targets

_CHOOSE = "rocmend wheel choose"


def with_installs(
    diagnosis: Diagnosis, machine: Machine, knowledge: Knowledge, workload: str | None = None
) -> Diagnosis:
    """Return a diagnosis whose plan has the best install command for its GPU in place of ``rocmend wheel choose``.

    Args:
        diagnosis: As doctor made it.
        machine: The facts.
        knowledge: The entries, which say how to install.
        workload: What the machine is for.
    """
    targets = gpu_targets(machine)
    if not targets:
        return diagnosis

    def filled(step: Step) -> Step:
        asked = [line for line in step.commands if line == _CHOOSE or line.startswith(f"{_CHOOSE} ")]
        if not asked or asked[0].removeprefix(_CHOOSE).strip().startswith("-"):
            return step
        package = asked[0].removeprefix(_CHOOSE).strip() or "torch"
        serving = choose(machine, knowledge, package, targets[0], workload).serving
        if not serving:
            return step
        best = serving[0]
        commands = tuple(
            part for line in step.commands for part in (best.command.splitlines() if line == asked[0] else [line])
        )
        know = f"Know: {best.caution.rstrip('.')}." if best.caution else ""
        text = " ".join(filter(None, (step.text, know, f"Other ways: `{_CHOOSE} {package}`.")))
        return msgspec.structs.replace(step, commands=commands, text=text)

    plan = diagnosis.plan
    made = {name: tuple(filled(step) for step in getattr(plan, name)) for name in ("steps", "optional")}
    return msgspec.structs.replace(diagnosis, plan=msgspec.structs.replace(plan, **made))
