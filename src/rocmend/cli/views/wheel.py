"""How the inspection of a wheel is laid out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from rocmend.codeobject.model import Component, FileReport, Inspection, TargetUse
from rocmend.codeobject.service import ComponentService, Service, Verdict
from rocmend.codeobject.versions import MatchState, VersionMatch
from rocmend.core.units import count_text, size_text
from rocmend.report.document import Bar, Bars, Block, Card, Cell, Code, Document, Pairs, Section, Text, Tone, table
from rocmend.report.visible import as_markdown

_TONE = {
    Verdict.NATIVE: Tone.GOOD,
    Verdict.GENERIC: Tone.GOOD,
    Verdict.OVERRIDE: Tone.WARNING,
    Verdict.NONE: Tone.ERROR,
    Verdict.UNKNOWN: Tone.WARNING,
    Verdict.NOT_APPLICABLE: Tone.INFO,
}
_WORDS = {
    Verdict.NATIVE: "runs natively",
    Verdict.GENERIC: "runs its generic code",
    Verdict.OVERRIDE: "runs with an override",
    Verdict.NONE: "does not run",
    Verdict.UNKNOWN: "could not be decided",
    Verdict.NOT_APPLICABLE: "carries no device code",
}
_MATCH_TONE = {
    MatchState.MATCH: Tone.GOOD,
    MatchState.MINOR_DIFFERS: Tone.WARNING,
    MatchState.MAJOR_DIFFERS: Tone.ERROR,
    MatchState.UNKNOWN: Tone.MUTED,
}
_SHOWN_FILES = 25
_SHOWN_TARGETS = 12
_DRAWN_TARGETS = 24


def inspection_document(
    inspection: Inspection, services: Sequence[Service], versions: VersionMatch | None, *, all_files: bool = False
) -> Document:
    """Lay out an inspection: the verdict for each target, then what was found."""
    blocks: list[Block] = [service_card(inspection, service) for service in services]
    if versions is not None:
        blocks.append(
            Card(
                f"Its ROCm and the system's: {versions.state}",
                _MATCH_TONE[versions.state],
                "",
                "",
                (Text(as_markdown(versions.reason)),),
            )
        )
    blocks.append(Section("What it is", (Pairs(_about(inspection)),)))
    code = _by_target(inspection, {service.target for service in services})
    if code is not None:
        blocks.append(Section("Device code by target", (code,)))
    if inspection.components:
        blocks.append(Section("Device code by part", (_components(inspection),)))
    if inspection.files:
        blocks.append(Section("Files", _files(inspection.files, all_files=all_files)))
    if inspection.notes:
        blocks.append(Section("Notes", tuple(Text(as_markdown(note)) for note in inspection.notes)))
    if inspection.problems:
        rows = [[problem.path, problem.message] for problem in inspection.problems]
        blocks.append(Section("Could not be read", (table(["file", "why"], rows),)))
    summary, tone = _summary(inspection, services)
    footer = "Nothing was imported or run: this says whether there is code for the GPU, not that it computes well."
    return Document(_name(inspection), summary, tone, tuple(blocks), footer)


def _name(inspection: Inspection) -> str:
    return f"{inspection.name} {inspection.version}".strip() or inspection.subject


def _summary(inspection: Inspection, services: Sequence[Service]) -> tuple[str, Tone]:
    if services:
        worst = max(services, key=lambda service: list(Verdict).index(service.verdict))
        return "; ".join(f"{service.target}: {_words(service)}" for service in services), _TONE[worst.verdict]
    if inspection.targets:
        return f"Carries code for {count_text(len(inspection.targets), 'AMD target')}.", Tone.INFO
    if inspection.problems:
        unread = count_text(len(inspection.problems), "file")
        return f"No AMD device code was found, but {unread} could not be read.", Tone.WARNING
    return "Carries no AMD device code.", Tone.WARNING


def service_card(inspection: Inspection, service: Service) -> Card:
    """Lay out the verdict for one target."""
    blocks: list[Block] = [Text(as_markdown(service.reason[:1].upper() + service.reason[1:]))]
    if service.only_with:
        which = service.only_with[-1]
        blocks.append(Text(f"`--hip {which}` judges for a PyTorch of HIP {which} (`torch.version.hip` names it)."))
    if service.environment:
        blocks.append(Code("\n".join(f"export {name}={value}" for name, value in service.environment.items()), "bash"))
    blocks += [Text(f"**Caution:** {as_markdown(caution)}") for caution in service.cautions]
    if len(service.components) > 1:
        rows = [[_part_name(part), _verdict(part), Cell(part.reason)] for part in service.components]
        blocks.append(table(["part", "verdict", "why"], rows))
    title = f"{_name(inspection)} on {service.target}: {_words(service)}"
    return Card(title, _TONE[service.verdict], service.verdict.value, "", tuple(blocks))


def _words(service: Service) -> str:
    if service.only_with:
        return f"runs only beside PyTorch for HIP {', '.join(service.only_with)}"
    return _WORDS[service.verdict]


def _part_name(part: Component | ComponentService) -> Cell:
    return Cell(part.name + (f" ({part.variant})" if part.variant else ""))


def _verdict(part: ComponentService) -> Cell:
    return Cell(part.verdict.value, _TONE[part.verdict])


def _about(inspection: Inspection) -> tuple[tuple[str, str, str], ...]:
    totals = inspection.totals
    rows = [
        ("kind", inspection.kind, inspection.path),
        ("built for", _built_for(inspection), ""),
        ("AMD targets", ", ".join(inspection.targets) or "none", ""),
        ("ROCm", inspection.rocm_version, ""),
        ("HIP", inspection.hip_version, ""),
        ("CUDA", inspection.cuda_version, ""),
        ("needs from the system", ", ".join(inspection.external), ""),
        (
            "holds",
            f"{count_text(totals.files, 'file')}, {size_text(totals.bytes)}; {size_text(totals.read_bytes)} read",
            f"{count_text(totals.code_objects, 'code object')}, {size_text(totals.code_object_bytes)}",
        ),
    ]
    return tuple(row for row in rows if row[1])


def _built_for(inspection: Inspection) -> str:
    if inspection.backends:
        return ", ".join(inspection.backends)
    if inspection.undecided:
        return "not known: files could not be read"
    if inspection.kind in {"wheel", "package"}:
        return "CPU or pure Python"
    return "no GPU"


def _targets_text(uses: Sequence[TargetUse]) -> str:
    names = [f"{use.target} ({use.objects})" for use in uses[:_SHOWN_TARGETS]]
    more = f" and {len(uses) - _SHOWN_TARGETS} more" if len(uses) > _SHOWN_TARGETS else ""
    return ", ".join(names) + more or "none"


def _by_target(inspection: Inspection, asked: Collection[str]) -> Bars | None:
    """Draw how much code there is for each target: bytes where they were read, else code objects."""
    sizes: Counter[str] = Counter()
    objects: Counter[str] = Counter()
    for part in inspection.components:
        for use in part.targets:
            sizes[use.target] += use.size_bytes
            objects[use.target] += use.objects
    if not objects:
        return None
    measured = any(sizes.values())
    amounts = sizes if measured else objects
    bars = tuple(
        Bar(
            target,
            amount,
            f"{size_text(amount)}, {count_text(objects[target], 'object')}"
            if measured
            else count_text(amount, "object"),
            Tone.GOOD if target.partition(":")[0] in asked else Tone.PLAIN,
        )
        for target, amount in amounts.most_common()
    )
    more = (
        f"; {len(bars) - _DRAWN_TARGETS} more targets are in the table of parts" if len(bars) > _DRAWN_TARGETS else ""
    )
    return Bars(bars[:_DRAWN_TARGETS], f"{'Bytes' if measured else 'Code objects'} for each target{more}")


def _components(inspection: Inspection) -> Block:
    rows = [
        [_part_name(part), Cell(str(part.files)), Cell(_targets_text(part.targets))] for part in inspection.components
    ]
    return table(["part", "files", "targets (code objects)"], rows)


def _files(files: Sequence[FileReport], *, all_files: bool) -> tuple[Block, ...]:
    shown = files if all_files else sorted(files, key=lambda file: -file.size_bytes)[:_SHOWN_FILES]
    rows = [[file.path, file.kind, size_text(file.size_bytes), _targets_text(file.targets)] for file in shown]
    blocks: list[Block] = [table(["file", "kind", "size", "targets (code objects)"], rows)]
    if len(shown) < len(files):
        blocks.append(Text(f"{len(files) - len(shown)} smaller files are left out; `--files` shows all.", Tone.MUTED))
    return tuple(blocks)
