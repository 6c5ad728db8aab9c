"""How a diagnosis is laid out."""

from __future__ import annotations

from rocmend.cli.views.entry import remedy_blocks, source_links
from rocmend.cli.views.machine import value_text
from rocmend.core.records import Finding, Severity
from rocmend.core.units import count_text, size_text
from rocmend.doctor.records import Diagnosis, GpuSummary, Undecided
from rocmend.report.document import Block, Card, Cell, Document, Pairs, Section, Text, Tone, table

TONE = {
    Severity.ERROR: Tone.ERROR,
    Severity.WARNING: Tone.WARNING,
    Severity.ADVICE: Tone.ADVICE,
    Severity.INFO: Tone.INFO,
}


def diagnosis_document(diagnosis: Diagnosis) -> Document:
    """Lay out a diagnosis: the GPUs, the findings by severity, what could not be told."""
    blocks: list[Block] = [Pairs(gpu_rows(diagnosis.gpus))] if diagnosis.gpus else []
    blocks += [finding_card(finding) for finding in diagnosis.findings]
    blocks += undecided_blocks(diagnosis)
    summary, tone = verdict(diagnosis)
    footer = "Nothing was changed. `rocmend doctor --explain ID` tells all about a finding, `-v` about all of them."
    title = diagnosis.about if diagnosis.hypothetical_target else f"Diagnosis of {diagnosis.machine}"
    return Document(title, summary, tone, tuple(blocks), footer)


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
    rest = f"{diagnosis.healthy} checks found nothing"
    if diagnosis.undecided:
        rest += f", {len(diagnosis.undecided)} could not be decided"
    if not named:
        return f"Nothing wrong was found: {rest}.", tone
    return f"{_listed(named)}; {rest}.", tone


def _of_a_target(diagnosis: Diagnosis, named: list[str]) -> str:
    """Say what is known of a target that is not here; nothing of a machine was judged, so nothing is called well."""
    target = diagnosis.hypothetical_target
    found = f" {_listed(named)} from the target alone." if named else ""
    count = len(_about_the_target(diagnosis))
    known = f"{count_text(count, 'known problem')} of {target} and " if count else ""
    checks = count_text(len(diagnosis.undecided) - count, "general check")
    return (
        f"Nothing of {diagnosis.machine} was judged.{found} {known}{checks} can be decided only on a machine with it."
    )


def _about_the_target(diagnosis: Diagnosis) -> list[Undecided]:
    return [item for item in diagnosis.undecided if item.gfx]


def _target_blocks(diagnosis: Diagnosis) -> list[Block]:
    target, known = diagnosis.hypothetical_target, _about_the_target(diagnosis)
    if not known:
        return []
    rows = [[Cell(item.severity.value, TONE[item.severity]), Cell(item.entry_id)] for item in known]
    title = f"Known problems of {target}, not checked here"
    return [Section(title, (table(["severity", "explain with `rocmend doctor --explain`"], rows),))]


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def gpu_rows(gpus: tuple[GpuSummary, ...]) -> tuple[tuple[str, str, str], ...]:
    """Return a line for each GPU; equal ones share a line."""
    groups: dict[tuple[str, str], list[int]] = {}
    for gpu in gpus:
        groups.setdefault(_gpu_text(gpu), []).append(gpu.index)
    return tuple((_gpu_label(indices), text, note) for (text, note), indices in groups.items())


def _gpu_label(indices: list[int]) -> str:
    return f"GPU {indices[0]}" if len(indices) == 1 else f"GPUs {indices[0]} to {indices[-1]} ({len(indices)})"


def _gpu_text(gpu: GpuSummary) -> tuple[str, str]:
    facts = [
        gpu.gfx_target or "target unknown",
        f"{gpu.compute_units} CU" if gpu.compute_units else "",
        f"wave{gpu.wavefront_size}" if gpu.wavefront_size else "",
        f"{size_text(gpu.memory_ceiling_bytes)} usable" if gpu.memory_ceiling_bytes else "",
        f"{gpu.peak_fp16_tflops:.3g} FP16 TFLOPS peak" if gpu.peak_fp16_tflops else "",
        f"{gpu.bandwidth_gb_s:g} GB/s" if gpu.bandwidth_gb_s else "",
    ]
    service = {
        "native": "the installed torch has code for it",
        "generic": "the installed torch has generic code that serves it",
        "override": f"the installed torch would serve it with HSA_OVERRIDE_GFX_VERSION={gpu.torch_override}",
        "none": "the installed torch has no code for it",
    }.get(gpu.torch_service or "", "")
    return f"{gpu.name or 'AMD GPU'}: {', '.join(fact for fact in facts if fact)}", service


def finding_card(finding: Finding) -> Card:
    """Lay out one finding."""
    evidence = Pairs(tuple((fact.key, value_text(fact.key, fact.value), fact.source) for fact in finding.evidence))
    blocks: list[Block] = [*remedy_blocks(finding.remedies)]
    if finding.evidence:
        blocks.append(evidence)
    if finding.sources:
        blocks.append(source_links(finding.sources[:1]))
    details: list[Block] = [Text(finding.explanation)] if finding.explanation else []
    if len(finding.sources) > 1:
        details.append(source_links(finding.sources[1:]))
    if finding.see:
        details.append(Text("See also: " + ", ".join(f"`{other}`" for other in finding.see)))
    label = finding.severity.value if finding.status == "active" else f"{finding.severity}, {finding.status}"
    title = f"{finding.title} ({finding.subject})" if finding.subject.startswith("gpu.") else finding.title
    return Card(
        title,
        TONE[finding.severity],
        label,
        finding.entry_id,
        tuple(blocks),
        tuple(details),
        "Why, and who else says so",
    )


def undecided_blocks(diagnosis: Diagnosis) -> list[Block]:
    """Lay out what could not be told, and what did not work."""
    blocks: list[Block] = []
    if diagnosis.hypothetical_target:
        blocks += _target_blocks(diagnosis)
    elif diagnosis.undecided:
        blocks.append(Section("Could not be decided", _undecided_texts(diagnosis.undecided)))
    if diagnosis.collector_problems:
        rows = [[run.name, run.status.value, run.reason] for run in diagnosis.collector_problems]
        blocks.append(Section("Collectors that did not finish", (table(["collector", "ended", "why"], rows),)))
    if diagnosis.knowledge_problems:
        lines = "\n".join(f"- {problem}" for problem in diagnosis.knowledge_problems)
        blocks.append(Section("Entries that could not be used", (Text(lines),)))
    return blocks


def _undecided_texts(undecided: tuple[Undecided, ...]) -> tuple[Text, ...]:
    """Group by what stood in the way: one unreadable file usually leaves several questions open."""
    groups: dict[str, list[Undecided]] = {}
    for item in undecided:
        reasons = dict.fromkeys(missing.reason for missing in item.missing if missing.reason)
        groups.setdefault("; ".join([*reasons, *item.notes]), []).append(item)
    texts = []
    for reason, items in groups.items():
        keys = dict.fromkeys(missing.key for item in items for missing in item.missing)
        known = f"**{', '.join(keys)}** not known: {reason}." if keys else f"{reason}."
        texts.append(Text(f"{known} Leaves open: {', '.join(f'`{item.entry_id}`' for item in items)}.", Tone.MUTED))
    return tuple(texts)
