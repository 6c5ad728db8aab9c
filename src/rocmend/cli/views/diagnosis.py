"""How a diagnosis is laid out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rocmend.cli.views.entry import source_links
from rocmend.cli.views.machine import value_text
from rocmend.cli.views.overview import area_tiles, machine_pictures
from rocmend.cli.views.plan import decide_blocks, plan_blocks, steps_text
from rocmend.core.records import Finding, Severity
from rocmend.core.units import count_text, listed, size_text
from rocmend.doctor.areas import Area, areas
from rocmend.doctor.records import Diagnosis, GpuSummary, Undecided
from rocmend.machine.facts import Machine
from rocmend.report.document import Block, Card, Cell, Document, Pairs, Section, Text, Tone, table

TONE = {
    Severity.ERROR: Tone.ERROR,
    Severity.WARNING: Tone.WARNING,
    Severity.ADVICE: Tone.ADVICE,
    Severity.INFO: Tone.INFO,
}


def diagnosis_document(diagnosis: Diagnosis, machine: Machine, *, brief: bool = True) -> Document:
    """Lay out a diagnosis: the verdicts, what to do, the findings by severity, what could not be decided.

    Args:
        diagnosis: As doctor made it.
        machine: The facts.
        brief: The details are not shown: the footer says how to see them.
    """
    blocks: list[Block] = [overview(areas(machine, diagnosis), diagnosis)]
    if not diagnosis.hypothetical_target:
        rows = machine_rows(diagnosis) if diagnosis.gpus else python_rows(diagnosis)  # that there is none is said above
        blocks += [Pairs(rows)] if rows else []
    blocks += todo_blocks(diagnosis, machine)
    if diagnosis.findings:
        cards = tuple(finding_card(finding, diagnosis) for finding in diagnosis.findings)
        blocks.append(Section("What was found", cards))
    blocks += undecided_blocks(diagnosis)
    summary, tone = verdict(diagnosis)
    more = "`-v` shows risks, checks, undo and evidence; " if brief else ""
    footer = f"Nothing was changed. {more}`--explain ID` explains a finding"
    if diagnosis.plan.steps:
        footer += "; `--plan sh` prints a script that asks at each step. Run `rocmend doctor` again afterwards"
    footer += "."
    title = f"Diagnosis of {diagnosis.machine}"
    if target := diagnosis.hypothetical_target:
        title = diagnosis.about
        footer = (
            f"`rocmend wheel choose --target {target}` says what to install, `rocmend env --for pytorch --target "
            f"{target}` what to set, `rocmend targets {target}` which GPUs it is. Nothing was changed."
        )
    return Document(title, summary, tone, tuple(blocks), footer)


def overview(areas: Sequence[Area], diagnosis: Diagnosis) -> Block:
    """Return what comes first: the verdicts, or, of a GPU that is not here, what is known of it."""
    return area_tiles(areas, diagnosis.findings) if areas else Pairs(machine_rows(diagnosis))


def todo_blocks(diagnosis: Diagnosis, machine: Machine) -> list[Block]:
    """Lay out what to do, with the machine's pictures after the first of it."""
    todo = plan_blocks(diagnosis)
    pictures = machine_pictures(machine)
    drawn = [Section("In figures", pictures, beside=True)] if pictures else []
    return [*todo[:1], *drawn, *map(folded, todo[1:])]


def folded(block: Block) -> Block:
    """Return a section that stands as its title until it is opened; any other block as it is."""
    return msgspec.structs.replace(block, folded=True) if isinstance(block, Section) else block


def machine_rows(diagnosis: Diagnosis) -> tuple[tuple[str, str, str], ...]:
    """Return a line for each GPU, and one for the Python environment that the facts are of."""
    no_gpu = ("GPU", "no AMD GPU that the driver shows", "")
    return (*(gpu_rows(diagnosis.gpus) or (no_gpu,)), *python_rows(diagnosis))


def verdict(diagnosis: Diagnosis) -> tuple[str, Tone]:
    """Return the answer in a sentence, and its tone."""
    counts = {level: sum(item.severity is level for item in diagnosis.findings) for level in Severity}
    parts = [
        (count_text(counts[Severity.ERROR], "error"), counts[Severity.ERROR]),
        (count_text(counts[Severity.WARNING], "warning"), counts[Severity.WARNING]),
        (count_text(counts[Severity.ADVICE], "piece of advice", "pieces of advice"), counts[Severity.ADVICE]),
        (count_text(counts[Severity.INFO], "note"), counts[Severity.INFO]),
    ]
    named = [text for text, count in parts if count]
    if diagnosis.hypothetical_target:
        return _of_a_target(diagnosis, named), next((TONE[level] for level in Severity if counts[level]), Tone.INFO)
    tone = next((TONE[level] for level in Severity if counts[level]), Tone.GOOD)
    rest = f"{diagnosis.healthy} checks passed"
    if diagnosis.undecided:
        rest += f", {len(diagnosis.undecided)} could not be decided"
    told = f"{listed(named)}; {rest}." if named else f"Nothing wrong was found: {rest}."
    return f"This machine has no AMD GPU. {told}" if diagnosis.no_amd_gpu else told, tone


def _of_a_target(diagnosis: Diagnosis, named: list[str]) -> str:
    """Say what is known of a target that is not here; nothing of a machine was judged, so nothing is called well."""
    target = diagnosis.hypothetical_target
    found = f" {listed(named)} from the target alone." if named else ""
    count = len(_about_the_target(diagnosis))
    known = f"{count_text(count, 'known problem')} of {target} and " if count else ""
    checks = count_text(len(diagnosis.undecided) - count, "general check")
    scope = f"What is known of {target}; {diagnosis.machine} was not checked."
    return f"{scope}{found} {known}{checks} need a machine with a {target} GPU."


def _about_the_target(diagnosis: Diagnosis) -> list[Undecided]:
    return [item for item in diagnosis.undecided if item.gfx]


def _target_blocks(diagnosis: Diagnosis) -> list[Block]:
    target, known = diagnosis.hypothetical_target, _about_the_target(diagnosis)
    if not known:
        return []
    rows = [[Cell(item.severity.value, TONE[item.severity]), Cell(item.title), Cell(item.entry_id)] for item in known]
    title = f"Known problems of {target}, not checked here"
    told = Text("`rocmend doctor --explain ID` explains one.", Tone.MUTED)
    return [Section(title, (table(["severity", "problem", "id"], rows, key=1), told))]


def gpu_rows(gpus: tuple[GpuSummary, ...]) -> tuple[tuple[str, str, str], ...]:
    """Return a line for each GPU; equal ones share a line."""
    groups: dict[tuple[str, str], list[int]] = {}
    for gpu in gpus:
        groups.setdefault(_gpu_text(gpu), []).append(gpu.index)
    return tuple((_gpu_label(indices), text, note) for (text, note), indices in groups.items())


def python_rows(diagnosis: Diagnosis) -> tuple[tuple[str, str, str], ...]:
    """Return the line that says which Python environment was looked at, and why that one."""
    python = diagnosis.python
    return (("Python", f"{python.version}: {python.prefix}", python.found_by),) if python else ()


def _gpu_label(indices: list[int]) -> str:
    return f"GPU {indices[0]}" if len(indices) == 1 else f"GPUs {indices[0]} to {indices[-1]} ({len(indices)})"


def _gpu_text(gpu: GpuSummary) -> tuple[str, str]:
    facts = [
        gpu.gfx_target or "target unknown",
        f"{gpu.compute_units} CU" if gpu.compute_units else "",
        f"wave{gpu.wavefront_size}" if gpu.wavefront_size else "",
        f"{size_text(gpu.memory_ceiling_bytes)} usable" if gpu.memory_ceiling_bytes else "",
        f"{_three_digits(gpu.peak_fp16_tflops)} FP16 TFLOPS at boost" if gpu.peak_fp16_tflops else "",
        f"{gpu.bandwidth_gb_s:g} GB/s" if gpu.bandwidth_gb_s else "",
    ]
    service = {
        "native": "the installed torch has code for it",
        "generic": "the installed torch has generic code that serves it",
        "override": f"the installed torch would serve it with HSA_OVERRIDE_GFX_VERSION={gpu.torch_override}"
        if gpu.torch_override
        else "the installed torch has no code for it",
        "none": "the installed torch has no code for it",
    }.get(gpu.torch_service or "", "")
    return f"{gpu.name or 'AMD GPU'}: {', '.join(fact for fact in facts if fact)}", service


def _titled(finding: Finding, diagnosis: Diagnosis) -> str:
    """Return a finding's title, with the GPU that it is about where there are several."""
    index = finding.subject.removeprefix("gpu.")
    several = len(diagnosis.gpus) > 1 and index != finding.subject
    return f"{finding.title} (GPU {index})" if several else finding.title


def _status_text(finding: Finding) -> str:
    """Return what a finding's status means, in words; nothing for one that simply holds."""
    if finding.fixed_in:
        return f"Fixed in {', '.join(finding.fixed_in)}."
    return "Disputed: sources contradict each other." if finding.status == "disputed" else ""


def finding_card(finding: Finding, diagnosis: Diagnosis) -> Card:
    """Lay out one finding: what decided, and where the plan deals with it."""
    place = steps_text(finding.entry_id, diagnosis.plan)
    note = _status_text(finding)
    blocks: list[Block] = [Text(note)] if note else []
    if place:
        blocks.append(Text(f"To do: {place}."))
    if finding.evidence:
        blocks.append(Pairs(tuple((fact.key, value_text(fact.key, fact.value), "") for fact in finding.evidence)))
    details: list[Block] = [Text(finding.explanation)] if finding.explanation else []
    if finding.evidence:
        details.append(Pairs(tuple((fact.key, f"read from {fact.source}", "") for fact in finding.evidence)))
    if finding.sources:
        details.append(source_links(finding.sources))
    if finding.see:
        details.append(Text("See also: " + ", ".join(f"`{other}`" for other in finding.see)))
    return Card(
        _titled(finding, diagnosis),
        TONE[finding.severity],
        finding.severity.value,
        finding.entry_id,
        tuple(blocks),
        tuple(details),
        "Why, where it was read, and sources",
        folded=True,
        brief=f"{f'→ {place} ' if place else ''}({finding.entry_id}){f'. {note}' if note else ''}",
    )


def undecided_blocks(diagnosis: Diagnosis) -> list[Block]:
    """Lay out what could not be told, and what did not work."""
    blocks = _target_blocks(diagnosis) if diagnosis.hypothetical_target else decide_blocks(diagnosis.plan)
    if diagnosis.collector_problems:
        rows = [[run.name, run.status.value, run.reason] for run in diagnosis.collector_problems]
        blocks.append(Section("Collectors that did not finish", (table(["collector", "ended", "why"], rows),)))
    if diagnosis.knowledge_problems:
        lines = "\n".join(f"- {problem}" for problem in diagnosis.knowledge_problems)
        blocks.append(Section("Entries that could not be used", (Text(lines),)))
    return blocks


def _three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
