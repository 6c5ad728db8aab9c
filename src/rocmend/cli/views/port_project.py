"""How a project and the plan of its port are laid out."""

from __future__ import annotations

from collections.abc import Sequence

from rocmend.cli.porting import Ported
from rocmend.core.units import count_text
from rocmend.port.phases import Estimate, Phase
from rocmend.port.project import Project
from rocmend.report.document import Block, Cell, Pairs, Section, Text, Tone, table
from rocmend.report.visible import as_markdown

__all__ = ["project_blocks"]

_SHOWN = 4
_MOST_MISSING = 6


def project_blocks(done: Ported) -> list[Block]:
    """Return what a project is, the phases of its port, and the dependencies that matter to it."""
    project = done.project
    automatic = "" if not done.made else "rewritten" if done.written else "to rewrite"
    waits = not done.written and bool(done.changed or done.added)
    verification = "after --apply" if waits else "can be run"
    phases = _phases(project.phases, automatic, verification)
    blocks: list[Block] = [*_rocm(done), Pairs(_about(project)), Section("Plan", tuple(phases))]
    rows = [
        [Cell(f"{one.name} {one.version}".strip()), Cell(f"{one.path}:{one.line}"), Cell(one.note or one.role)]
        for one in project.dependencies
        if one.note or one.replacement
    ]
    if rows:
        blocks.append(Section("Dependencies that matter", (table(["package", "where", "on ROCm"], rows),)))
    return blocks


def _rocm(done: Ported) -> list[Block]:
    """Return what a project does for ROCm itself: additions have to agree with that."""
    found = done.project.rocm
    if not found.ways:
        return []
    targets = ", ".join(done.analysis.targets) or "AMD GPUs"
    lines = ["This project supports ROCm already:", *(f"- {as_markdown(way)}" for way in found.ways)]
    if found.missing:
        lines += ["", f"Missing on {targets}:", *(f"- {as_markdown(one)}" for one in found.missing[:_MOST_MISSING])]
        if len(found.missing) > _MOST_MISSING:
            lines.append(f"- and {len(found.missing) - _MOST_MISSING} more, listed below")
    return [Text("\n".join(lines))]


def _about(project: Project) -> tuple[tuple[str, str, str], ...]:
    entries = [one.name if one.kind == "script" else one.path or one.name for one in project.entry_points]
    vendored = [f"{path} ({count_text(count, 'source')})" for path, count in project.vendored.items()]
    rows = [
        ("Kind", project.kind.value, project.why),
        ("Files", _files(project), ""),
        ("Entry points", _listed(entries), ""),
        ("Python", project.requires_python, ""),
        ("Builds", _listed(project.builds), ""),
        ("Containers", _listed(project.containers), ""),
        ("Workflows", _listed(project.workflows), ""),
        ("For ROCm already", _listed(project.own_rocm), ""),
        ("Submodules", _listed(project.submodules), "each is ported on its own"),
        ("Others' code", _listed(vendored), ""),
    ]
    return tuple(row for row in rows if row[1])


def _files(project: Project) -> str:
    files = project.files
    parts = [
        f"{files.read:,} read",
        f"{files.manual - files.skipped:,} by hand" if files.manual > files.skipped else "",
        f"{files.skipped:,} not read" if files.skipped else "",
    ]
    return ", ".join(part for part in parts if part)


def _estimate(found: Estimate, automatic: str) -> str:
    counts = [
        (found.auto if automatic else 0, automatic),
        (found.suggested, "suggested"),
        (found.manual, "by hand"),
        (found.notes, "note" if found.notes == 1 else "notes"),
    ]
    return ", ".join(f"{count:,} {name}" for count, name in counts if count)


def _listed(items: Sequence[str]) -> str:
    shown = ", ".join(items[:_SHOWN])
    return f"{shown} and {len(items) - _SHOWN} more" if len(items) > _SHOWN else shown


def _phases(phases: Sequence[Phase], automatic: str, verification: str) -> list[Block]:
    last = phases[-1].number
    rows = [
        [
            Cell(str(phase.number)),
            Cell(phase.title),
            Cell(_estimate(phase.estimate, automatic) or (verification if phase.number == last else "nothing to do")),
            Cell(phase.reason),
        ]
        for phase in phases
        if phase.applies
    ]
    skipped = ", ".join(phase.title for phase in phases if not phase.applies)
    blocks: list[Block] = [table(["", "phase", "what", "why"], rows, key=1)]
    return [*blocks, Text(as_markdown(f"Not needed: {skipped}."), Tone.MUTED)] if skipped else blocks
