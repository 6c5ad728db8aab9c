"""How an audit of an environment, and the install plan that follows from it, are laid out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rocmend.cli.views import port_sarif
from rocmend.cli.views.diagnosis import TONE
from rocmend.core.records import Severity
from rocmend.core.units import count_text
from rocmend.port.build.audit import Audit, AuditFinding
from rocmend.port.build.install import InstallPlan, LeftOut
from rocmend.report import sarif
from rocmend.report.document import Block, Card, Cell, Document, Pairs, Section, Text, Tone, table

__all__ = ["audit_document", "audit_sarif"]


def audit_document(audit: Audit, plan: InstallPlan, script: Path | None) -> Document:
    """Lay out an audit and its plan."""
    have = audit.environment
    rows = [
        ("Python", have.python, have.executable),
        ("Installed", count_text(len(have.packages), "package"), have.prefix),
    ]
    blocks: list[Block] = [Pairs(tuple(rows)), *(_card(one) for one in audit.findings)]
    blocks.append(Section("Install plan", tuple(_plan(plan))))
    serious = sum(one.severity in {Severity.ERROR, Severity.WARNING} for one in audit.findings)
    summary = (
        f"{count_text(serious, 'finding')} to settle before anything is installed."
        if serious
        else "Nothing stands in the way."
    )
    tone = TONE[min((one.severity for one in audit.findings), key=lambda one: one.rank)] if serious else Tone.GOOD
    footer = (
        f"The plan as a script: {script}. Read it, then run it."
        if script
        else "`--script FILE` writes the plan as a script."
    )
    return Document("Environment, before a project is installed", summary, tone, tuple(blocks), footer)


def audit_sarif(audit: Audit) -> str:
    """Return a SARIF log of an audit, with a notification for each file that was not read."""
    ids = sorted({one.id for one in audit.findings})
    first = {one.id: one for one in reversed(audit.findings)}
    known = [{"id": name, "shortDescription": {"text": first[name].message}} for name in ids]
    results = [_result(one, ids.index(one.id)) for one in audit.findings]
    unread = [port_sarif.notification(one.path, f"{one.path} {one.reason}") for one in audit.project.unread]
    return sarif.log(known, results, **port_sarif.about_the_run(unread))


def _result(one: AuditFinding, number: int) -> dict[str, Any]:
    return {
        "ruleId": one.id,
        "ruleIndex": number,
        "level": sarif.level(one.severity),
        "message": {"text": f"{one.message} {one.remedy}".rstrip()},
        "locations": [{"logicalLocations": [{"fullyQualifiedName": one.source or "environment", "kind": "resource"}]}],
        "partialFingerprints": {"rocmend/v1": f"{one.id}:{one.message}"},
    }


def _card(one: AuditFinding) -> Card:
    blocks: list[Block] = [Text(one.remedy)] if one.remedy else []
    if one.source:
        blocks.append(Text(f"Source: {one.source}", Tone.MUTED))
    return Card(one.message, TONE[one.severity], one.severity.value, one.id, tuple(blocks))


def _plan(plan: InstallPlan) -> Iterable[Block]:
    rows = [
        ("First, for builds", ", ".join(plan.build), ""),
        ("With what they need", ", ".join(plan.plain), "held to the PyTorch that is there"),
        ("The project", ", ".join(plan.folders), " ".join(plan.options)),
    ]
    shown = tuple(row for row in rows if row[1])
    if shown:
        yield Pairs(shown)
    elif not (plan.unread or plan.by_hand or plan.left_out):
        yield Text("No requirements file, `pyproject.toml` or `setup.py` of the project names a package.")
    if plan.unread:
        rows_of = [[Cell(one.path), Cell(one.reason)] for one in plan.unread]
        yield Section("Not read, and not in the plan", (table(["file", "why"], rows_of),), Tone.WARNING)
    for title, left in (("Chosen by a person", plan.by_hand), ("Left out", plan.left_out)):
        if left:
            yield Section(title, (_left(left),))


def _left(left: Iterable[LeftOut]) -> Block:
    return table(["what", "why"], [[Cell(one.text), Cell(one.reason)] for one in left])
