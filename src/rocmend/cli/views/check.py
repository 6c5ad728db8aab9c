"""How a check is laid out: the report, and the few lines that point to it."""

from __future__ import annotations

from typing import Any

from rocmend import __version__
from rocmend.cli.check import Check, InspectedWheel
from rocmend.cli.views.choices import best_way, choice_card
from rocmend.cli.views.diagnosis import (
    finding_card,
    folded,
    machine_rows,
    overview,
    todo_blocks,
    undecided_blocks,
    verdict,
)
from rocmend.cli.views.machine import value_text
from rocmend.cli.views.plan import plan_blocks
from rocmend.cli.views.wheel import service_card
from rocmend.core.records import Severity
from rocmend.core.units import size_text, time_text
from rocmend.machine.facts import Machine
from rocmend.report.document import Block, Card, Cell, Code, Document, Link, Links, Pairs, Section, Text, Tone, table
from rocmend.setup.shells import write

LABELS = {
    "os.name": "System",
    "kernel.release": "Kernel",
    "host.kind": "Runs as",
    "cpu.model": "Processor",
    "memory.total_bytes": "Memory",
    "amdgpu.origin": "amdgpu driver",
    "amdgpu.version": "amdgpu version",
    "rocm.version": "ROCm",
    "rocm.path": "ROCm path",
    "python.version": "Python",
    "python.prefix": "Python environment",
    "torch.version": "PyTorch",
    "torch.backend": "PyTorch built for",
    "torch.gfx_targets": "PyTorch has code for",
    "triton.version": "Triton",
    "vulkan.selected": "Vulkan driver",
    "kernel.cmdline": "Kernel command line",
}
"""What the facts at the head of a report are called."""
_LEVEL_TONES = {True: Tone.GOOD, False: Tone.MUTED}
_SHOWN_CHOICES = 4
_MANY_PROBES = 50
_VERSION = f"rocmend {__version__}"


def glance_text(key: str, value: Any) -> str:
    """Return a fact's value as the head of a report has it: sizes in units alone."""
    return size_text(value) if key.endswith("_bytes") and isinstance(value, int) else value_text(key, value)


def check_report(check: Check, machine: Machine) -> Document:
    """Lay out the whole report: the verdicts, what to do, the findings; the rest is folded."""
    summary, tone = verdict(check.diagnosis)
    serious = [item for item in check.diagnosis.findings if item.severity is not Severity.INFO]
    notes = tuple(
        finding_card(item, check.diagnosis) for item in check.diagnosis.findings if item.severity is Severity.INFO
    )
    nothing = Text("Nothing that needs doing was found.", Tone.GOOD)
    blocks: list[Block] = [overview(check.areas, check.diagnosis), *todo_blocks(check.diagnosis, machine)]
    if serious or not check.diagnosis.hypothetical_target:
        blocks.append(Section("Findings", tuple(finding_card(item, check.diagnosis) for item in serious) or (nothing,)))
    install = Section("What to install", _install(check), folded=not check.diagnosis.hypothetical_target)
    if check.diagnosis.hypothetical_target:
        blocks += [install, Section("What to set", _settings(check)), *undecided_blocks(check.diagnosis)]
    if notes:
        blocks.append(Section("Good to know", notes, folded=True))
    if check.wheels:
        cards = tuple(card for wheel in check.wheels for card in _wheel_cards(wheel))
        blocks.append(Section("Inspected wheels", cards))
    if check.project is not None:
        from rocmend.cli.views.port_check import project_line, project_section

        blocks.append(project_section(check.project))
        told, project_tone = project_line(check.project)
        summary = f"{summary} {told}"
        tone = project_tone if tone in {Tone.GOOD, Tone.INFO, Tone.ADVICE, Tone.PLAIN} else tone
    blocks.append(Section("What works", _probes(check), folded=check.probes is None))
    if not any(level.possible for level in check.levels if level.name == "amd"):
        blocks.append(Section("What can be proven here", _levels(check), folded=True))
    if check.speeds or check.earlier or check.not_measured:
        blocks.append(Section("How fast", _speeds(check), folded=not (check.speeds or check.earlier)))
    if not check.diagnosis.hypothetical_target:
        blocks.append(install)
        blocks.append(Section("What to set", _settings(check), folded=True))
    if check.facts:
        blocks.append(Section("The machine", (_machine(check),), folded=True))
    if not check.diagnosis.hypothetical_target:
        blocks += [folded(block) for block in undecided_blocks(check.diagnosis)]
    blocks.append(Section("How this was made", (_made(check),), folded=True))
    about = "answers for the target alone" if check.diagnosis.hypothetical_target else f"facts of {_read_at(check)}"
    footer = (
        "`rocmend doctor -v` shows each step's reason, risk, check and undo, `--explain ID` explains a finding. "
        f"Nothing on the machine was changed. {_VERSION}, {about}."
    )
    return Document(_title(check), summary, tone, tuple(blocks), footer)


def check_summary(check: Check, report: str) -> Document:
    """Lay out the summary for the terminal: the verdict, what to do, a line a finding, where the report is."""
    summary, tone = verdict(check.diagnosis)
    lines = tuple(finding_card(item, check.diagnosis) for item in check.diagnosis.findings)
    cards: tuple[Block, ...] = (*plan_blocks(check.diagnosis), *((Section("What was found", lines),) if lines else ()))
    wheels = tuple(card for wheel in check.wheels for card in _wheel_cards(wheel))
    probes: tuple[Block, ...] = ()
    if check.probes is not None:
        from rocmend.cli.views.probe import run_summary

        text, probe_tone = run_summary(check.probes)
        probes = (Text(text, probe_tone),)
    elif check.not_probed:
        probes = (Text(check.not_probed, Tone.MUTED),)
    if said := _levels_line(check):
        probes += (Text(said, Tone.MUTED),)
    if check.speeds:
        from rocmend.cli.views.bench import run_summary as speed_summary

        probes += tuple(Text(*speed_summary(run)) for run in check.speeds)
    project: tuple[Block, ...] = ()
    if check.project is not None:
        from rocmend.cli.views.port_check import project_summary

        project = (project_summary(check.project),)
    known: tuple[Block, ...] = ()
    if check.diagnosis.hypothetical_target:
        known = (*_in_short(check), *undecided_blocks(check.diagnosis))
    pointer = (Links("Report", (Link("", report),)),) if report else ()
    return Document(_title(check), summary, tone, (*cards, *known, *wheels, *probes, *project, *pointer))


def _read_at(check: Check) -> str:
    """Return when the facts were read: ``2026-11-28 20:13 UTC``."""
    day, _, clock = check.diagnosis.captured_at.partition("T")
    return f"{day} {clock[:5]} UTC" if clock.endswith(("+00:00", "Z")) else check.diagnosis.captured_at


def _title(check: Check) -> str:
    if check.diagnosis.hypothetical_target:
        return check.diagnosis.about
    unseen = "no AMD GPU" if check.diagnosis.no_amd_gpu else "GPU not visible"
    return f"{check.machine}: {', '.join(check.targets) or unseen}"


def _machine(check: Check) -> Pairs:
    rows = ((LABELS[key], glance_text(key, fact.value), fact.source) for key, fact in check.facts.items())
    return Pairs((*machine_rows(check.diagnosis), *rows))


def _wheel_cards(wheel: InspectedWheel) -> list[Card]:
    return [service_card(wheel.inspection, service) for service in wheel.services.values()]


def _install(check: Check) -> tuple[Block, ...]:
    if not check.choices and not check.diagnosis.no_amd_gpu:
        return (Text("The GPU is not visible: first make it so, or name it with `--target`, e.g. `--target gfx1151`."),)
    if not check.choices:
        return (Text("There is no AMD GPU to install for. Name one with `--target`, e.g. `--target gfx1151`."),)
    blocks: list[Block] = []
    for choices in check.choices:
        serving = choices.serving[:_SHOWN_CHOICES]
        cards = tuple(choice_card(choice, number) for number, choice in enumerate(serving, 1))
        none_known = Text(f"No entry knows a way to install PyTorch for {choices.target}.", Tone.WARNING)
        blocks.append(Section(f"PyTorch for {choices.target}", cards or (none_known,)))
    return tuple(blocks)


def _in_short(check: Check) -> tuple[Block, ...]:
    """Lay out the best way to install and what has to be set, in the order of the page."""
    best = tuple(block for choices in check.choices if choices.serving for block in best_way(choices))
    lines = [line for line in check.environment.lines if not line.optional]
    title = f"{check.environment.workload} on {check.diagnosis.about}"
    firm = Code(write(lines, "bash", title=title), "bash") if lines else Text("Nothing has to be set.")
    given = f"--target {check.diagnosis.hypothetical_target}"
    more = f"Other ways: `rocmend wheel choose {given} --all`."
    optional = f"What is worth measuring: `rocmend env --for {check.environment.workload} {given}`."
    return (
        Section("What to install", (*(best or (Text("No way is known."),)), Text(more, Tone.MUTED))),
        Section("What to set", (firm, Text(optional, Tone.MUTED))),
    )


def _settings(check: Check) -> tuple[Block, ...]:
    settings = check.environment
    text = write(settings.lines, "bash", title=f"{settings.workload} on {check.diagnosis.about}")
    target = check.diagnosis.hypothetical_target
    given = check.asked_with or (f"--target {target}" if target else "")
    command = f"rocmend env --for {settings.workload} --shell fish {given}".rstrip()
    hint = Text(f"For another workload or shell: `{command}`.", Tone.MUTED)
    return (Code(text, "bash"), hint)


def _probes(check: Check) -> tuple[Block, ...]:
    if check.probes is None:
        return (Text(check.not_probed, Tone.MUTED),)
    from rocmend.cli.views.probe import run_blocks, run_summary

    summary, tone = run_summary(check.probes)
    few = len(check.probes.results) < _MANY_PROBES
    more = (Text("These are quick ones; `rocmend probe` runs them all.", Tone.MUTED),) if few else ()
    return (Text(summary, tone), *run_blocks(check.probes), *more)


def _speeds(check: Check) -> tuple[Block, ...]:
    earlier = [
        Section(f"{one.title}, measured on {one.started_at[:10]}", (Text(f"{one.text} `rocmend report {one.group}`"),))
        for one in check.earlier
    ]
    if not check.speeds:
        return (*((Text(check.not_measured, Tone.MUTED),) if check.not_measured else ()), *earlier)
    from rocmend.cli.views.bench import run_blocks, run_summary

    more = Text("`rocmend bench` measures more: products, memory, networks, language models.", Tone.MUTED)
    runs = [Section(run.title, (Text(*run_summary(run)), *run_blocks(run))) for run in check.speeds]
    return (*runs, *earlier, more)


def _levels(check: Check) -> tuple[Block, ...]:
    rows: list[list[str | Cell]] = [
        [level.name, Cell("possible" if level.possible else "not here", _LEVEL_TONES[level.possible]), level.text]
        for level in check.levels
    ]
    return (table(["level of proof", "", ""], rows),)


def _levels_line(check: Check) -> str:
    """Say which levels of proof were possible, where there is no AMD GPU to prove anything on."""
    possible = [level.name for level in check.levels if level.possible]
    if not check.levels or "amd" in possible:
        return ""
    lacking = ", ".join(f"{level.name} ({level.text})" for level in check.levels if not level.possible)
    return f"Levels of proof that are possible here: {', '.join(possible) or 'none'}. Not here: {lacking}."


def _made(check: Check) -> Text:
    times = ", ".join(f"{name} {time_text(time_ms)}" for name, time_ms in check.stages.items())
    tried = "No operation was run on a GPU: this report says what is known and configured, not what was seen to work."
    if check.probes is not None:
        device = check.probes.subject.device_name
        tried = f"What stands under “What works” was run on {device}; all else says what is known and configured."
    read = f"Facts were read on {check.diagnosis.captured_at} from the machine's files and tools."
    if target := check.diagnosis.hypothetical_target:
        read = f"Nothing of {check.machine} was used: all of this follows from {target} alone."
    return Text(f"{read} {tried} Took: {times}.", Tone.MUTED)
