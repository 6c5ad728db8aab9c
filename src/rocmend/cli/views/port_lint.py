"""How findings in single files are laid out."""

from __future__ import annotations

from rocmend.cli.views.port import issues_table
from rocmend.core.units import count_text
from rocmend.port.records import Analysis
from rocmend.report.document import Block, Document, Section, Text, Tone

__all__ = ["lint_document"]


def lint_document(found: Analysis) -> Document:
    """Lay out every finding, file by file."""
    files = count_text(sum(found.looked_at.values()), "file")
    blocks: list[Block] = [
        Section(file.path, (issues_table(file.issues) if file.issues else Text(f"Not read: {file.skipped}"),))
        for file in found.files
    ]
    notes = (Text("\n".join(f"- {note}" for note in found.notes), Tone.MUTED),) if found.notes else ()
    if not blocks:
        if not found.looked_at:
            return Document("Port", "No file was read.", Tone.MUTED, notes)
        return Document("Port", f"Nothing needs a port: {files} read.", Tone.GOOD, notes)
    summary = f"{count_text(len(found.issues), 'finding')} in {count_text(len(blocks), 'file')}; {files} read."
    footer = "`rocmend port --explain ID` explains a rule; `rocmend port . --apply` makes what is marked `to rewrite`."
    return Document("Port", summary, Tone.WARNING, (*blocks, *notes), footer)
