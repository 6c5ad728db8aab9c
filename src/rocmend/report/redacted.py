"""Redact what is made to be shown, and say so: documents before they are rendered, other formats as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from rocmend.report.document import Bar, Device, Document, Pairs, Range, Table, Tile
from rocmend.report.junit import Case, Suite, render

if TYPE_CHECKING:
    from rocmend.core.redact import Redactor

_T = TypeVar("_T")

NOT_REDACTED = (
    "Not redacted: holds names, addresses and serial numbers of this machine, and secrets where there are any."
)
NONE_FOUND = "Looked for names, addresses and secrets: none found."
ADVICE = "Not redacted: for sharing use --format md, or `rocmend check -o report.html`."


def statement(redactor: Redactor | None) -> str:
    """Return the sentence that says whether, and what, was replaced."""
    if redactor is None:
        return NOT_REDACTED
    return f"Redacted: {redactor.told()}." if redactor.replaced else NONE_FOUND


def advised(document: Document, redactor: Redactor) -> Document:
    """Return a document for the terminal: as it is, and, where it holds something to redact, how to share it."""
    _replaced(document, redactor)
    if not redactor.replaced:
        return document
    return msgspec.structs.replace(document, footer="\n\n".join(part for part in (document.footer, ADVICE) if part))


def redacted(document: Document, redactor: Redactor | None) -> Document:
    """Return a document with what identifies replaced, and a last line that says whether it was.

    Args:
        document: As it was computed.
        redactor: None leaves everything as it is but for that line.
    """
    made = document if redactor is None else _replaced(document, redactor)
    if redactor is not None and redactor.learned:  # names that stand before the text which tells what they are
        made = _replaced(made, redactor)
    footer = "\n\n".join(part for part in (made.footer, statement(redactor)) if part)
    return msgspec.structs.replace(made, footer=footer)


def _replaced(value: _T, redactor: Redactor) -> _T:
    """Replace in every text of a record; what a row or column is called says what is in it."""
    made: Any = value
    if type(value) is str:
        made = redactor.text(str(value))
    elif isinstance(value, Pairs):
        rows = tuple(
            (redactor.text(label), redactor.field(label, text), redactor.text(note)) for label, text, note in value.rows
        )
        made = Pairs(rows)
    elif isinstance(value, Table):
        made = _table(value, redactor)
    elif isinstance(value, tuple):
        made = tuple(_replaced(one, redactor) for one in value)
    elif isinstance(value, msgspec.Struct):
        fields = {name: _replaced(getattr(value, name), redactor) for name in value.__struct_fields__}
        if isinstance(value, Tile | Bar | Range | Device):
            fields["text"] = redactor.field(value.label, value.text)
        made = msgspec.structs.replace(value, **fields)
    return cast("_T", made)


def _table(table: Table, redactor: Redactor) -> Table:
    rows = []
    for row in table.rows:
        names = table.columns if len(row) != _NAME_AND_VALUE else ("", row[0].text)
        cells = zip(names, row, strict=False)
        rows.append(
            tuple(
                msgspec.structs.replace(
                    cell,
                    text=redactor.field(name, cell.text),
                    ref=redactor.text(cell.ref),
                    note=redactor.field(name, cell.note),
                )
                for name, cell in cells
            )
        )
    columns = tuple(map(redactor.text, table.columns))
    return msgspec.structs.replace(table, columns=columns, rows=tuple(rows), caption=redactor.text(table.caption))


_NAME_AND_VALUE = 2
"""Columns of a table whose first says what the second is."""


def sarif(text: str, redactor: Redactor | None) -> str:
    """Return a SARIF log redacted; each run's properties say whether it is."""
    log = msgspec.json.decode(text)
    if redactor is not None:
        log = redactor.json(log)
    for run in log["runs"]:
        run["properties"] = {**run.get("properties", {}), "redaction": statement(redactor)}
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def json_lines(text: str, redactor: Redactor | None) -> str:
    """Return JSON Lines redacted; a line has no place to say so."""
    if redactor is None:
        return text
    rows = (redactor.json(msgspec.json.decode(line)) for line in text.splitlines() if line)
    return "".join(msgspec.json.encode(row).decode() + "\n" for row in rows)


def junit(suite: Suite, redactor: Redactor | None) -> str:
    """Return JUnit XML redacted; a property of its suite says whether it is."""
    made = suite if redactor is None else suite._replace(cases=tuple(_case(case, redactor) for case in suite.cases))
    return render(made.cases, name=made.name, started_at=made.started_at, properties={"redaction": statement(redactor)})


def _case(case: Case, redactor: Redactor) -> Case:
    return case._replace(
        name=redactor.text(case.name),
        classname=redactor.text(case.classname),
        message=redactor.text(case.message),
        output=redactor.text(case.output),
    )


OTHER_FORMATS = {"sarif": sarif, "jsonl": json_lines}
"""What redacts the formats that are computed as text."""
