"""How a plan is laid out."""

from __future__ import annotations

from collections.abc import Iterable

from rocmend.core.records import Phase, Risk
from rocmend.core.units import count_text, listed
from rocmend.doctor import records
from rocmend.doctor.records import Alternative, Decide, Diagnosis, Plan
from rocmend.report.document import Block, Card, Code, Option, Section, Step, Steps, Text, Tone

TITLE = "Do this, in order"
NOTHING_TO_DO = "Nothing needs to be done"
UNDECIDED = "Undecided: the GPU"
_UNSEEN = (
    "No GPU could be seen, so the GPU, PyTorch on it and its memory are undecided. `rocminfo` shows whether ROCm "
    "reaches it, `rocmend probe` whether operations run on it; `rocmend check --target 'RX 7900 XTX'` says what is "
    "known of a GPU that you name."
)


def plan_blocks(diagnosis: Diagnosis) -> list[Block]:
    """Lay out what to do: the steps in order, what to look at, and what is optional."""
    plan = diagnosis.plan
    blocks: list[Block] = []
    if diagnosis.nothing_to_do:
        left = " What could not be decided is listed below." if diagnosis.undecided else ""
        blocks.append(Section(NOTHING_TO_DO, (Text(f"There are only optional steps.{left}", Tone.GOOD),)))
    if diagnosis.gpu_unseen and not plan.steps:
        blocks.append(Section(UNDECIDED, (Text(_UNSEEN, Tone.WARNING),)))
    if plan.steps:
        blocks.append(Section(TITLE, (Steps(tuple(_step(step, plan) for step in plan.steps)),)))
    if plan.investigate:
        title = "If it still fails, investigate" if plan.steps else "Look into"
        blocks.append(Section(title, (Steps(tuple(_step(step, plan) for step in plan.investigate)),)))
    if plan.optional:
        blocks.append(Section("Optional", (Steps(tuple(_step(step, plan) for step in plan.optional)),)))
    return blocks


def decide_blocks(plan: Plan) -> list[Block]:
    """Lay out what could not be decided, and what would decide it."""
    if not plan.decide:
        return []
    return [Section("Could not be decided", tuple(_decide(one) for one in plan.decide))]


def _decide(one: Decide) -> Card:
    count = count_text(len(one.entries), "question")
    facts = ", ".join(f"`{key}`" for key in one.keys)
    told = one.reason or ("" if one.how else facts)
    why = f"{count} open{f': {told}' if told else ''}".rstrip(".")
    blocks: tuple[Block, ...] = (Text(f"To decide: {one.how}"),) if one.how else ()
    if one.command:
        blocks += (Code(one.command, "bash"),)
    left = ", ".join(f"`{entry}`" for entry in one.entries)
    details = [Text(f"{name}: {names}", Tone.MUTED) for name, names in (("Facts", facts), ("Findings", left)) if names]
    return Card(why, Tone.MUTED, blocks=blocks, details=tuple(details), details_title="What is not known")


def steps_text(entry_id: str, plan: Plan) -> str:
    """Return where a plan deals with a finding: ``step 2``, ``steps 1 and 3``, ``investigate``."""
    numbers = [step.number for step in plan.steps if entry_id in step.settles]
    if numbers:
        return steps_named(numbers)
    if any(entry_id in step.settles for step in plan.optional):
        return "optional"
    return "investigate" if any(entry_id in step.settles for step in plan.investigate) else ""


def _step(step: records.Step, plan: Plan) -> Step:
    title = step.title
    if step.phase is Phase.REBOOT and step.after:
        them = "them" if len(step.after) > 1 else "it"
        title = f"{title} once, for {steps_named(step.after)}; then `rocmend doctor` checks {them}"
    return Step(
        number=step.number,
        title=title.replace("`", ""),
        text=step.text,
        commands=step.commands,
        needs=_needs(step, plan),
        risk=_risk(step),
        check=in_lines(step.check),
        check_when=_when(step, plan),
        expect=step.expect,
        undo=step.undo,
        settles=step.settles,
        serves=step.serves,
        by_hand=step.by_hand,
        options=tuple(map(_option, step.alternatives)),
    )


def _needs(step: records.Step, plan: Plan) -> tuple[str, ...]:
    """Return what a step needs; the reboot of the plan serves what is optional too."""
    if step.phase is Phase.REBOOT:
        return tuple(need for need in step.needs if need != "reboot")
    reboot = reboot_of(plan)
    shared = {"reboot": f"reboot of step {reboot}"} if reboot and not step.number else {}
    return tuple(shared.get(need, need) for need in step.needs)


def reboot_of(plan: Plan) -> int:
    """Return the number of the step that reboots; 0 where there is none."""
    return next((step.number for step in plan.steps if step.phase is Phase.REBOOT), 0)


def _when(step: records.Step, plan: Plan) -> str:
    reboot = reboot_of(plan)
    return f"After the reboot (step {reboot})" if "reboot" in step.needs and step.number and reboot else "Then"


def steps_named(numbers: Iterable[int]) -> str:
    """Return ``step 2``, ``steps 2 and 5``, ``steps 2 to 5``."""
    told = list(numbers)
    if len(told) == 1:
        return f"step {told[0]}"
    if len(told) > 2 and told == list(range(told[0], told[-1] + 1)):
        return f"steps {told[0]} to {told[-1]}"
    return f"steps {listed([str(number) for number in told])}"


def _risk(item: records.Step | Alternative) -> str:
    if item.risk is Risk.NONE:
        return item.risk_note
    return f"{item.risk}: {item.risk_note}" if item.risk_note else f"{item.risk}."


def _option(item: Alternative) -> Option:
    label = "Until then" if item.interim else "Or"
    return Option(label, item.title, item.text, item.commands, item.needs, _risk(item), item.undo)


_LONG = 100
_BREAKS = (
    (" && { ", " &&\n{ "),
    (" && ! ", " &&\n    ! "),
    ("; do ", "; do\n    "),
    ("; done", "\ndone"),
    ("); cat ", ")\n    cat "),
    (" 2>/dev/null | ", " 2>/dev/null |\n        "),
    (" } $1 == ", " }\n    $1 == "),
    (" } t == ", " }\n    t == "),
    (" } END { ", " }\n    END { "),
    (" }' /", " }' \\\n    /"),
)
"""Where a line of shell can be broken, and stays the same program."""


def in_lines(check: str) -> str:
    """Return a long check in several lines."""
    if len(check) > _LONG:
        for there, broken in _BREAKS:
            check = check.replace(there, broken)
    return check
