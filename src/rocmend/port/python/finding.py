"""What rules for Python report, made in one way."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rocmend.core.records import Severity
from rocmend.port.records import Edit, Outcome
from rocmend.port.rule import Found

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["gated", "told"]


def gated(  # noqa: PLR0913  the parts of a finding
    file: PythonFile,
    node: ast.AST,
    edits: tuple[Edit, ...],
    *,
    message: str,
    remedy: str,
    outcome: Outcome | None = None,
    severity: Severity | None = None,
    needs: tuple[str, ...] = ("is_rocm",),
) -> Found:
    """Return a finding with its rewrite; where none could be made, one for a person.

    Args:
        file: The file.
        node: The construct.
        edits: The rewrite; empty where the construct stands where none can be made.
        message: What it is.
        remedy: What a person does about it.
        outcome: That of the rewrite, where it is not the rule's.
        severity: That of the finding, where it is not the rule's.
        needs: The support units that the rewrite uses.
    """
    start, end = file.span(node)
    if not edits:
        return Found(start, end, message, (), Outcome.MANUAL, severity, remedy)
    return Found(start, end, message, edits, outcome, severity, remedy, needs)


def told(  # noqa: PLR0913  the parts of a finding
    file: PythonFile,
    node: ast.AST,
    message: str,
    *,
    outcome: Outcome,
    remedy: str = "",
    severity: Severity | None = None,
) -> Found:
    """Return a finding that is not rewritten."""
    start, end = file.span(node)
    return Found(start, end, message, (), outcome, severity, remedy)
