"""Names that are parameters of a template."""

from __future__ import annotations

from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.functions import Function

__all__ = ["of_a_template", "template_parameter"]

_LONGEST_TEMPLATE = 400


def of_a_template(file: CudaFile, function: Function, name: bytes, since: int) -> bool:
    """Tell whether a name is a template's parameter between an offset and a function's body."""
    return any(
        since <= file.tokens[index].start < function.start and template_parameter(file, index)
        for index in file.names(name, shared=False)
    )


def template_parameter(file: CudaFile, at: int) -> bool:
    """Tell whether the name at an index is declared there as a parameter of a template."""
    depth = 0
    world = file.tokens[at].directive
    for _ in range(min(at, _LONGEST_TEMPLATE)):
        at -= 1
        if file.tokens[at].directive != world:
            return False
        text = file.tokens[at].text
        if text in (b">", b">>"):
            depth += len(text)
        elif text == b"<":
            if depth == 0:
                return file.tokens[at - 1].text == b"template"
            depth -= 1
        elif text in (b";", b"{", b"}", b"(", b")"):
            return False
    return False
