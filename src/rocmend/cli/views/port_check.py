"""How a project's port is laid out in the report of a check."""

from __future__ import annotations

import shlex

from rocmend.cli.port_check import CheckedProject
from rocmend.cli.views.port import findings_blocks, port_verdict, project_name
from rocmend.cli.views.port_project import project_blocks
from rocmend.cli.views.proof import ladder_blocks, proof_summary
from rocmend.port.verify.records import Status
from rocmend.report.document import Block, Card, Code, Section, Text, Tone
from rocmend.report.visible import as_markdown

__all__ = ["project_line", "project_section", "project_summary"]

_LONGEST_DIFF = 200_000
_MOST_FILES, _MOST_ISSUES = 200, 60
"""Of findings, in a report that is one page: files, and places of each."""


def project_section(checked: CheckedProject) -> Section:
    """Lay out the plan, the findings, the proofs and the patch."""
    summary, tone = port_verdict(checked.port)
    root = checked.port.analysis.root
    blocks: list[Block] = [Text(summary, tone), *project_blocks(checked.port)]
    blocks.append(Section("How far the port was proven", tuple(_proofs(checked))))
    blocks += findings_blocks(checked.port, most=(_MOST_FILES, _MOST_ISSUES))
    if checked.diff:
        blocks.append(_patch(checked.diff))
    undo = f"`rocmend port undo {root}` takes it back."
    unwritten = checked.port.changed or checked.port.added
    next_step = (
        f"`rocmend port {root} --apply` writes the port; {undo}" if unwritten else f"Where a port is applied, {undo}"
    )
    return Section(f"Port of {project_name(root)}", (*blocks, Text(next_step, Tone.MUTED)))


def project_line(checked: CheckedProject) -> tuple[str, Tone]:
    """Return the port of a project in a sentence for the head of the report, and its tone."""
    told, tone = port_verdict(checked.port)
    if checked.proof is not None and checked.proof.failed:
        tone = Tone.ERROR
    return f"Port of {project_name(checked.port.analysis.root)}: {told.partition('. ')[0].rstrip('.')}.", tone


def project_summary(checked: CheckedProject) -> Block:
    """Lay out the few lines for the terminal."""
    summary, tone = port_verdict(checked.port)
    return Card(
        f"Port of {project_name(checked.port.analysis.root)}",
        tone,
        "port",
        "",
        (Text(summary), Text(as_markdown(_reached(checked)))),
    )


def _reached(checked: CheckedProject) -> str:
    proof = checked.proof
    if proof is None:
        return f"Not proven: {checked.not_proven}"
    failed = [level.name for level in proof.levels if level.status is Status.FAILED]
    if failed:
        return f"Verification failed: {', '.join(failed)}."
    done = proof_summary(proof, "in a copy")
    open_ = [f"{level.name} ({level.status.value})" for level in proof.levels if level.status is not Status.PASSED]
    return f"{done} Not passed: {', '.join(open_)}." if open_ else done


def _proofs(checked: CheckedProject) -> list[Block]:
    if checked.proof is None:
        return [Text(as_markdown(f"Not proven: {checked.not_proven}"), Tone.WARNING)]
    root = checked.port.analysis.root
    rest = (
        "The levels that ran used a copy of the project; a check never executes the project's code: "
        f"`rocmend port verify {shlex.quote(root)} --list` shows what the others execute."
    )
    unwritten = checked.port.changed or checked.port.added
    first = [shlex.join(["rocmend", "port", root, "--apply"])] if unwritten else []
    return [*ladder_blocks(checked.proof, first=first), Text(rest, Tone.MUTED)]


def _patch(patch: str) -> Card:
    shown = patch if len(patch) <= _LONGEST_DIFF else patch[:_LONGEST_DIFF].rpartition("\n")[0]
    cut = () if shown == patch else (Text("The rest is left out: `rocmend port --diff` prints all of it.", Tone.MUTED),)
    text = Text(f"{patch.count(chr(10) + '+++ ') + patch.startswith('+++ ')} files.")
    return Card("The port as a patch", Tone.INFO, "", "", (text,), (Code(shown, "diff"), *cut), "The patch")
